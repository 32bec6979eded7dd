"""Which sequences stand in which step: the same for a seed, however many processes share the work.

Everything here is plain numpy and the same on every process, so that each knows how many targets the
whole step has without asking the others: losses are weighted by tokens, a short last batch included.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from listenwell.training.recipe import BatchRecipe


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


@dataclass(frozen=True)
class Batch:
    """Rows of tokens. Positions of different sequences in a row never see each other."""

    tokens: np.ndarray  # (rows, length) int64
    segments: np.ndarray  # (rows, length) int32: number of the sequence in its row; 0 is padding
    positions: np.ndarray  # (rows, length) int64: place inside its own sequence
    sources: np.ndarray  # (targets,) int64: flat index of the position that predicts each target
    labels: np.ndarray  # (targets,) int64: the target tokens

    @property
    def size(self) -> int:
        """Tokens that are no padding."""
        return int((self.segments > 0).sum())


@dataclass(frozen=True)
class Step:
    """What one process computes of one step."""

    batches: tuple[Batch, ...]
    targets: int
    """Targets of the whole step, over all processes."""


class Epoch:
    """One pass over the data: every sequence is in exactly one row of one step.

    Args:
        sequences: the data.
        recipe: how rows and steps are made.
        seed: together with `number` it fixes the order.
        number: which epoch, from 0.
    """

    def __init__(self, sequences: Sequence[Encoded], recipe: BatchRecipe, seed: int, number: int) -> None:
        self._sequences, self._recipe = sequences, recipe
        random = np.random.default_rng([seed, number])
        order = random.permutation(len(sequences))
        lengths = np.array([len(sequences[i]) for i in order])
        if recipe.batching == "packed":
            rows = [[int(order[i]) for i in row] for row in pack(lengths, recipe.row_tokens)]
            self._groups = _chunks(rows, recipe.tokens // recipe.row_tokens)
        else:
            self._groups = bucket(order, lengths, recipe.tokens, random)

    def __len__(self) -> int:
        return len(self._groups)

    def steps(
        self, first: int = 0, process: int = 0, processes: int = 1, part_tokens: int | None = None
    ) -> Iterator[Step]:
        """The steps from number `first` on, each with the rows that fall to one of the processes.

        Args:
            first: where to begin.
            process: which of the processes this is.
            processes: how many share the rows of a step.
            part_tokens: compute at most so many tokens at once, where memory is short. Without it, every
                packed batch has the same shape, a short last one too, as a compiled model likes it.
        """
        packed = self._recipe.batching == "packed"
        for group in self._groups[first:]:
            targets = sum(int(self._sequences[i].targets.sum()) for row in group for i in row)
            longest = max(len(self._sequences[i]) for row in group for i in row)
            width = self._recipe.row_tokens if packed else longest
            mine = group[process::processes]
            size = -(-len(mine) // self._recipe.accumulate)
            height = self._rows(processes) if packed and part_tokens is None else 0
            if part_tokens is not None:
                size = min(size, max(1, part_tokens // width))
            parts = _chunks(mine, size) if mine else []
            yield Step(tuple(collate(self._sequences, part, width, height) for part in parts), targets)

    def _rows(self, processes: int) -> int:
        """Rows of every packed batch."""
        share = -(-(self._recipe.tokens // self._recipe.row_tokens) // processes)
        return -(-share // self._recipe.accumulate)


def pack(lengths: np.ndarray, row_tokens: int, open_rows: int = 64) -> list[list[int]]:
    """First-fit packing in the given order: indices of the sequences of each row.

    Only the latest `open_rows` rows are looked at, which keeps it linear and the order nearly random.
    """
    rows: list[list[int]] = []
    room: list[int] = []
    for index, length in enumerate(lengths):
        first = max(0, len(rows) - open_rows)
        place = next((i for i in range(first, len(rows)) if room[i] >= length), None)
        if place is None:
            rows.append([])
            room.append(row_tokens)
            place = len(rows) - 1
        rows[place].append(index)
        room[place] -= int(length)
    return rows


def bucket(
    order: np.ndarray, lengths: np.ndarray, tokens: int, random: np.random.Generator
) -> list[list[list[int]]]:
    """Groups of one-sequence rows of like length, at most `tokens` tokens with padding, in random order."""
    by_length = np.argsort(lengths, kind="stable")
    groups: list[list[list[int]]] = [[]]
    for index in by_length:
        if groups[-1] and (len(groups[-1]) + 1) * int(lengths[index]) > tokens:
            groups.append([])
        groups[-1].append([int(order[index])])
    return [groups[i] for i in random.permutation(len(groups)) if groups[i]]


def collate(
    sequences: Sequence[Encoded], rows: Sequence[Sequence[int]], width: int, height: int = 0
) -> Batch:
    """Rows of sequence numbers as arrays of one width; rows of padding fill up to `height`."""
    shape = (max(len(rows), height), width)
    tokens, positions = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    segments = np.zeros(shape, np.int32)
    sources: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    for number, row in enumerate(rows):
        begin = 0
        for segment, index in enumerate(row, start=1):
            sequence = sequences[index]
            end = begin + len(sequence)
            tokens[number, begin:end] = sequence.tokens
            segments[number, begin:end] = segment
            positions[number, begin:end] = np.arange(len(sequence))
            wanted = np.flatnonzero(sequence.targets)
            sources.append(number * width + begin + wanted - 1)  # a token is predicted one place before it
            labels.append(sequence.tokens[wanted])
            begin = end
    empty = np.zeros(0, np.int64)
    return Batch(
        tokens,
        segments,
        positions,
        np.concatenate(sources or [empty]).astype(np.int64),
        np.concatenate(labels or [empty]).astype(np.int64),
    )


def _chunks(items: list[list[int]], size: int) -> list[list[list[int]]]:
    return [items[i : i + size] for i in range(0, len(items), size)]
