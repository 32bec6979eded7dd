"""Words of a text and where each stands in it, so that what a judge finds can be shown."""

import unicodedata
from dataclasses import dataclass

from listenwell.metrics import expanded, words


@dataclass(frozen=True, slots=True)
class Word:
    """A word in lower case and its place in the text."""

    text: str
    start: int
    end: int


def placed(text: str) -> list[Word]:
    """The words of a text and their places; a contraction gives two words that share its place."""
    letters, found, used = _letters(text), list[Word](), 0
    for token in words(text):
        own = letters[used : used + len(token)] or letters[-1:]
        used += len(token)
        found += [Word(part, own[0][0], own[-1][1]) for part in _parts(token)]
    return found


_LOOSE = {
    "dont": "do not",
    "didnt": "did not",
    "doesnt": "does not",
    "wasnt": "was not",
    "werent": "were not",
    "havent": "have not",
    "couldnt": "could not",
    "wouldnt": "would not",
    "cant": "can not",
    "weve": "we have",
}
"""Contractions that people write without the apostrophe, beside those of the metrics."""


def _parts(token: str) -> list[str]:
    return (_LOOSE.get(token) or expanded(token)).split()


def _letters(text: str) -> list[tuple[int, int]]:
    """The place of each character of a text's words: blanks have none, a few letters become two in lower
    case, and an accent belongs to the letter before it."""
    found, start = list[tuple[int, int]](), 0
    for end in range(1, len(text) + 1):
        if end < len(text) and unicodedata.combining(text[end]):
            continue
        letter = unicodedata.normalize("NFC", text[start:end].lower())
        found += [(start, end)] * (0 if letter.isspace() else len(letter))
        start = end
    return found
