"""Understanding: one encoder, many heads that read emotions, acts, intents and mechanisms from text."""

WINDOW = 256
"""Dialogues that are read together, so that texts of like length share a batch.

A stopped run goes on at the beginning of a window: what shares a batch moves the last digits of a
probability, so a run that went on gives the same bytes as an unbroken one."""
