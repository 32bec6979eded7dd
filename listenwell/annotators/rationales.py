"""The words of a reply that show a mechanism: EPITOME's rationales (§4), from token probabilities."""

from collections.abc import Sequence

import numpy as np

from listenwell.runtime.text import Vocabulary

GAP = 2
"""Words between two parts that are still one."""


def shown_parts(
    text: str, vocabulary: Vocabulary, probabilities: np.ndarray, least: float = 0.5
) -> tuple[str, ...]:
    """Parts of a text, in order; as `shown_spans`, which says where they are."""
    return tuple(text[first:end] for first, end in shown_spans(text, vocabulary, probabilities, least))


def shown_spans(
    text: str, vocabulary: Vocabulary, probabilities: np.ndarray, least: float = 0.5
) -> tuple[tuple[int, int], ...]:
    """First and last letters of the parts: whole words with a piece above `least`, near ones joined.

    People mark phrases, not words: parts with no more than GAP words between them are one.

    Args:
        text: the reply.
        vocabulary: what cut it into pieces.
        probabilities: (pieces,), how likely each of its first pieces shows the mechanism.
        least: the probability above which a piece counts.
    """
    shown = np.zeros(len(text), bool)
    for (first, end), probability in zip(vocabulary.spans(text), probabilities, strict=False):
        if probability > least:
            shown[_word_start(text, first) : _word_end(text, end)] = True
    edges = np.flatnonzero(np.diff(np.concatenate(([0], shown.astype(int), [0]))))
    parts: list[tuple[int, int]] = []
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        if parts and len(text[parts[-1][1] : first].split()) <= GAP:
            parts[-1] = (parts[-1][0], int(end))
        else:
            parts.append((int(first), int(end)))
    return tuple(parts)


def marked_pieces(text: str, vocabulary: Vocabulary, parts: Sequence[tuple[int, int]]) -> np.ndarray:
    """Which pieces of a text lie in given parts of it, which are first and last letters: (pieces,) bool."""
    spans = vocabulary.spans(text)
    inside = [any(begin < last and stop > first for first, last in parts) for begin, stop in spans]
    return np.array(inside, bool)


def _word_start(text: str, index: int) -> int:
    while 0 < index < len(text) and _in_word(text[index - 1]) and _in_word(text[index]):
        index -= 1
    return index


def _word_end(text: str, index: int) -> int:
    while 0 < index < len(text) and _in_word(text[index - 1]) and _in_word(text[index]):
        index += 1
    return index


def _in_word(letter: str) -> bool:
    return letter.isalnum() or letter in "'’"
