"""The heads that describe what a reply does."""

from listenwell.labels import MECHANISMS

REPLY_HEADS = ("act", "tone", *MECHANISMS)
"""Dialogue act, expressed emotion and EPITOME's three mechanisms."""
