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
    """First and last letters of the parts: whole words with a token above `least`, near ones joined.

    People mark phrases, not words: parts with no more than GAP words between them are one. `probabilities`
    are those of the text's first tokens.
    """
    shown = np.zeros(len(text), bool)
    for span, probability in zip(vocabulary.spans(text), probabilities, strict=False):
        if probability > least:
            first, end = span
            while _within_word(text, first):
                first -= 1
            while _within_word(text, end):
                end += 1
            shown[first:end] = True
    edges = np.flatnonzero(np.diff(np.concatenate(([0], shown.astype(int), [0]))))
    parts: list[tuple[int, int]] = []
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        if parts and len(text[parts[-1][1] : first].split()) <= GAP:
            parts[-1] = (parts[-1][0], int(end))
        else:
            parts.append((int(first), int(end)))
    return tuple(parts)


def marked_pieces(text: str, vocabulary: Vocabulary, parts: Sequence[tuple[int, int]]) -> np.ndarray:
    """Which tokens of a text lie in parts of it, which are first and last letters: (tokens,) bool."""
    spans = vocabulary.spans(text)
    inside = [any(begin < last and stop > first for first, last in parts) for begin, stop in spans]
    return np.array(inside, bool)


def _within_word(text: str, index: int) -> bool:
    """Whether the letters on both sides of an index belong to one word."""
    return 0 < index < len(text) and all(
        letter.isalnum() or letter in "'’" for letter in text[index - 1 : index + 1]
    )
