"""The words of a reply that show a mechanism (EPITOME §4: rationales), from chances of word pieces."""

from collections.abc import Sequence

import numpy as np

from listenwell.runtime.text import Vocabulary


def shown_parts(
    text: str, vocabulary: Vocabulary, chances: np.ndarray, least: float = 0.5
) -> tuple[str, ...]:
    """Parts of a text, in order: whole words with a piece above `least`, neighbours joined.

    Args:
        text: the reply.
        vocabulary: what cut it into pieces.
        chances: (pieces,), how likely each of its first pieces shows the mechanism.
        least: from which chance on a piece counts.
    """
    shown = np.zeros(len(text), bool)
    for (first, end), chance in zip(vocabulary.spans(text), chances, strict=False):
        if chance > least:
            shown[_word_start(text, first) : _word_end(text, end)] = True
    for place in range(1, len(text) - 1):
        if text[place].isspace() and shown[place - 1] and shown[place + 1]:
            shown[place] = True
    edges = np.flatnonzero(np.diff(np.concatenate(([0], shown.astype(int), [0]))))
    return tuple(text[first:end] for first, end in zip(edges[::2], edges[1::2], strict=True))


def marked_pieces(text: str, vocabulary: Vocabulary, parts: Sequence[tuple[int, int]]) -> np.ndarray:
    """Which pieces of a text lie in given parts of it, which are first and last letters: (pieces,) bool."""
    spans = vocabulary.spans(text)
    inside = [any(begin < last and stop > first for first, last in parts) for begin, stop in spans]
    return np.array(inside, bool)


def _word_start(text: str, place: int) -> int:
    while 0 < place < len(text) and text[place - 1].isalnum() and text[place].isalnum():
        place -= 1
    return place


def _word_end(text: str, place: int) -> int:
    while 0 < place < len(text) and text[place - 1].isalnum() and text[place].isalnum():
        place += 1
    return place
