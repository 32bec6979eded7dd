"""Batches of texts of similar length, limited by a token budget."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

CPU_TOKENS, GPU_TOKENS = 512, 65_536
"""Tokens in a batch, padding included. Small batches stay in a CPU's caches: 512 was the fastest."""


class TokenizedText(Protocol):
    """A text as tokens."""

    @property
    def tokens(self) -> np.ndarray:
        """(length,) integers."""

    @property
    def types(self) -> np.ndarray:
        """(length,) integers: 1 for tokens of the listener, 0 otherwise."""

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class TokenBatch:
    """The inputs of a BERT encoder, all (rows, length) int64."""

    tokens: np.ndarray
    types: np.ndarray
    positions: np.ndarray  # inside the text
    segments: np.ndarray  # the text's number in the batch, from 1; 0 is padding

    @classmethod
    def padded(cls, texts: Sequence[TokenizedText]) -> "TokenBatch":
        """One row per text, padded to the longest."""
        shape = len(texts), max(map(len, texts))
        tokens, types, segments = (np.zeros(shape, np.int64) for _ in range(3))
        for row, text in enumerate(texts):
            tokens[row, : len(text)], types[row, : len(text)] = text.tokens, text.types
            segments[row, : len(text)] = row + 1
        return cls(tokens, types, np.broadcast_to(np.arange(shape[1]), shape).copy(), segments)

    @property
    def mask(self) -> np.ndarray:
        """(rows, length) bool: False in padding."""
        return np.asarray(self.segments > 0)

    def packed(self) -> "TokenBatch":
        """The same texts in a single row without padding."""
        mask = self.mask
        arrays = (self.tokens, self.types, self.positions, self.segments)
        return TokenBatch(*(array[mask][None] for array in arrays))


def like_lengths(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Indices of texts of similar length, in batches of at most `tokens` tokens, padding included.

    The longest texts come first, so that insufficient memory shows at once; one that exceeds the budget is a
    batch of its own.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
