"""Rows of replies as arrays: several share a row and none sees another, or each has a row of its own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from listenwell.papers.comae.inputs import COLUMNS, NOTHING, TrainingExample
from listenwell.training.batching import PackedRows, pack_rows


@dataclass(frozen=True)
class ComaeBatch(PackedRows):
    """Arrays of a batch; a flat index counts tokens row after row."""

    columns: np.ndarray  # (rows, length, COLUMNS) int64
    owners: np.ndarray  # (rows, length) int64: of a reply's token its example's number; else 0
    ends: np.ndarray  # (examples,) int64: flat index of each context's last token
    factors: np.ndarray  # (examples, SLOT_COUNT) int64
    sources: np.ndarray  # (targets,) int64: flat index of the token that predicts each target
    labels: np.ndarray  # (targets,) int64: the target tokens

    @property
    def weight(self) -> int:
        """How many tokens are predicted."""
        return len(self.labels)


def collate(
    examples: Sequence[TrainingExample], rows: Sequence[Sequence[int]], width: int, height: int = 0
) -> ComaeBatch:
    """Rows of example numbers as one batch; rows of padding fill up to `height`."""
    packed = pack_rows(examples, rows, width, height)
    chosen = [examples[index] for row in rows for index in row]
    columns = np.full((packed.tokens.size, COLUMNS), NOTHING, np.int64)
    columns[:, 0] = packed.tokens.flatten()
    owners = np.zeros(packed.tokens.size, np.int64)
    for number, (start, example) in enumerate(zip(packed.starts, chosen, strict=True), start=1):
        columns[start : start + len(example)] = example.columns
        owners[start + example.context : start + len(example)] = number
    return ComaeBatch(
        **vars(packed),
        columns=columns.reshape(*packed.tokens.shape, COLUMNS),
        owners=owners.reshape(packed.tokens.shape),
        ends=packed.starts + [example.context - 1 for example in chosen],
        factors=np.stack([example.factors for example in chosen]),
        sources=np.flatnonzero(owners),  # each token of the reply predicts the next one, START the first
        labels=np.concatenate([example.labels for example in chosen]),
    )
