"""Rows of replies as arrays: several share a row and none sees another, or each has a row of its own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from listenwell.papers.comae.inputs import COLUMNS, NOTHING, TrainingExample


@dataclass(frozen=True)
class ComaeBatch:
    """Arrays of a batch; a flat index counts tokens row after row."""

    columns: np.ndarray  # (rows, length, COLUMNS) int64
    segments: np.ndarray  # (rows, length) int64: number of the example in its batch, from 1; 0 is padding
    positions: np.ndarray  # (rows, length) int64: index inside its own example
    owners: np.ndarray  # (rows, length) int64: of a reply's token its example's number; else 0
    ends: np.ndarray  # (examples,) int64: flat index of each context's last token
    factors: np.ndarray  # (examples, SLOT_COUNT) int64
    sources: np.ndarray  # (targets,) int64: flat index of the token that predicts each target
    labels: np.ndarray  # (targets,) int64: the target tokens
    size: int
    """Tokens that are no padding."""

    @property
    def weight(self) -> int:
        """How many tokens are predicted."""
        return len(self.labels)


def collate(
    examples: Sequence[TrainingExample], rows: Sequence[Sequence[int]], width: int, height: int = 0
) -> ComaeBatch:
    """Rows of example numbers as one batch; rows of padding fill up to `height`."""
    chosen = [examples[index] for row in rows for index in row]
    lengths = np.array([len(example) for example in chosen], np.int64)
    starts = np.array(
        [
            number * width + begin
            for number, row in enumerate(rows)
            for begin in np.cumsum([0, *(len(examples[index]) for index in row[:-1])])
        ],
        np.int64,
    )
    contexts = np.array([example.context for example in chosen], np.int64)
    numbers = np.arange(1, len(chosen) + 1)
    inside = _ranges(lengths)
    indices = np.repeat(starts, lengths) + inside
    count = max(len(rows), height) * width
    columns = np.zeros((count, COLUMNS), np.int64)
    columns[:, 1:] = NOTHING
    columns[indices] = np.concatenate([example.columns for example in chosen])
    segments, positions, owners = (np.zeros(count, np.int64) for _ in range(3))
    segments[indices], positions[indices] = np.repeat(numbers, lengths), inside
    is_reply = inside >= np.repeat(contexts, lengths)
    owners[indices] = np.repeat(numbers, lengths) * is_reply
    shape = (-1, width)
    return ComaeBatch(
        columns.reshape(*shape, COLUMNS),
        segments.reshape(shape),
        positions.reshape(shape),
        owners.reshape(shape),
        starts + contexts - 1,
        np.stack([example.factors for example in chosen]),
        indices[is_reply],  # each token of the reply predicts the next one, START the first
        np.concatenate([example.labels for example in chosen]),
        int(lengths.sum()),
    )


def by_length(examples: Sequence[TrainingExample], tokens: int) -> Iterator[tuple[list[int], ComaeBatch]]:
    """Every example once in a row of its own, with others of like length; their numbers, and the batch.

    Args:
        examples: what is to be measured.
        tokens: of a batch at most, with padding.
    """
    order = sorted(range(len(examples)), key=lambda number: len(examples[number]))
    group: list[int] = []
    for number in order:
        if group and (len(group) + 1) * len(examples[number]) > tokens:
            yield group, _rows_of_one(examples, group)
            group = []
        group.append(number)
    if group:
        yield group, _rows_of_one(examples, group)


def _rows_of_one(examples: Sequence[TrainingExample], group: Sequence[int]) -> ComaeBatch:
    return collate(examples, [[number] for number in group], len(examples[group[-1]]))


def _ranges(lengths: np.ndarray) -> np.ndarray:
    """0, 1, … up to each length, one after the other."""
    begins = np.cumsum(lengths) - lengths
    offsets: np.ndarray = np.arange(int(lengths.sum())) - np.repeat(begins, lengths)
    return offsets
