"""Patterns of crisis, a small file for each kind, over text as `normal` writes it."""
