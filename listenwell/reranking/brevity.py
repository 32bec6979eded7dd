"""Brevity: a reply of two words listens to nobody."""

from listenwell.words import spoken_words

ENOUGH = 9
"""Words from where on a reply is not too short; half of people's replies have at least 11."""


def brevity(reply: str) -> float:
    """How much is missing of a reply of enough words, from 0 to 1: "Good luck." lacks most."""
    return max(0.0, 1 - len(spoken_words(reply)) / ENOUGH)
