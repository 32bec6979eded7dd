"""Batches for a causal language model: which tokens are predicted, and from where."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from listenwell.training.batching import PackedRows, pack_rows


@dataclass(frozen=True)
class Encoded:
    """One sequence: its tokens, and which of them are to be predicted."""

    tokens: np.ndarray  # (length,) int32
    targets: np.ndarray  # (length,) bool; the first is never one
    replies: int = 0
    """How many texts the targets spell."""
    words: int = 0
    """Words of these texts, between white space."""
    bytes: int = 0
    """UTF-8 bytes of these texts."""

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def weight(self) -> int:
        """How many tokens are predicted."""
        return int(self.targets.sum())


@dataclass(frozen=True)
class TokenBatch(PackedRows):
    """Rows of tokens, and the targets among them."""

    sources: np.ndarray  # (targets,) int64: flat index of the position that predicts each target
    labels: np.ndarray  # (targets,) int64: the target tokens

    @property
    def weight(self) -> int:
        """How many tokens are predicted."""
        return len(self.labels)


def collate(
    sequences: Sequence[Encoded], rows: Sequence[Sequence[int]], width: int, height: int = 0
) -> TokenBatch:
    """Rows of sequence numbers as one batch; rows of padding fill up to `height`."""
    packed = pack_rows(sequences, rows, width, height)
    chosen = [sequences[index] for row in rows for index in row]
    empty = np.zeros(0, np.int64)
    # A token is predicted at the position before it.
    sources = [
        start + np.flatnonzero(sequence.targets) - 1
        for start, sequence in zip(packed.starts, chosen, strict=True)
    ]
    labels = [sequence.tokens[sequence.targets] for sequence in chosen]
    return TokenBatch(
        **vars(packed),
        sources=np.concatenate(sources or [empty]).astype(np.int64),
        labels=np.concatenate(labels or [empty]).astype(np.int64),
    )
