"""Words in a row that two texts share, and sentences: what the judges of repeating and copying compare."""

import re
from collections.abc import Iterator, Sequence

from listenwell.metrics import words

_END = re.compile(r"(?<=[.!?…。！？])\s+")


def sentences(text: str) -> list[tuple[str, ...]]:
    """The words of each sentence, punctuation left out; those without a word are none."""
    parts = (spoken(part) for part in _END.split(text.strip()))
    return [part for part in parts if part]


def spoken(text: str) -> tuple[str, ...]:
    """The words of a text without punctuation."""
    return tuple(word for word in words(text) if word[0].isalnum())


def grams(tokens: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    """All runs of n words."""
    return (tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1))


def longest_run(first: Sequence[str], second: Sequence[str]) -> int:
    """How many words in a row the two have in common at most."""
    best, before = 0, [0] * (len(second) + 1)
    for word in first:
        row = [0] * (len(second) + 1)
        for place, other in enumerate(second, start=1):
            if word == other:
                row[place] = before[place - 1] + 1
                best = max(best, row[place])
        before = row
    return best
