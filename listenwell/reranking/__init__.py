"""Reranking: features of candidate replies and their weighted sum."""
