"""Evaluation by verb: generate replies, load outputs, score them; perplexity, plans, annotators, rankers."""
