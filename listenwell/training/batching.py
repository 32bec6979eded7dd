"""Which examples are in which step: the same for a seed, however many processes share the work.

Everything here is plain numpy and the same on every process, so that each knows how many targets the
whole step has without asking the others: losses are weighted by tokens, a short last batch included.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from listenwell.training.recipe import BatchRecipe


class TrainingExample(Protocol):
    """Something to learn from: a sequence of tokens with one target or more."""

    @property
    def tokens(self) -> np.ndarray:
        """(length,) int32."""

    @property
    def weight(self) -> int:
        """How many targets it holds."""

    def __len__(self) -> int:
        """How many tokens it has."""


@dataclass(frozen=True)
class PackedRows:
    """Rows of tokens. Positions of different examples in a row never see each other."""

    tokens: np.ndarray  # (rows, length) int64
    segments: np.ndarray  # (rows, length) int32: number of the example in its row; 0 is padding
    positions: np.ndarray  # (rows, length) int64: index inside its own example
    starts: np.ndarray  # (examples,) int64: flat index of each example's first token, row after row

    @property
    def size(self) -> int:
        """Tokens that are no padding."""
        return int((self.segments > 0).sum())


class Batch(Protocol):
    """What a task's `collate` makes of rows of examples."""

    @property
    def size(self) -> int:
        """Tokens that are no padding."""

    @property
    def weight(self) -> int:
        """How many targets it holds."""


P = TypeVar("P", bound=TrainingExample)
B = TypeVar("B", bound=Batch)
Collate = Callable[[Sequence[P], Sequence[Sequence[int]], int, int], B]
"""Examples, rows of their numbers, the rows' width, and how many rows to fill up to with padding."""


@dataclass(frozen=True)
class Step(Generic[B]):
    """What one process computes of one step."""

    batches: tuple[B, ...]
    targets: int
    """Targets of the whole step, over all processes."""


class Epoch(Generic[P, B]):
    """One pass over the data: every example is in exactly one row of one step (a last example alone in none).

    Seed and number, from 0, fix the order.
    """

    def __init__(
        self, examples: Sequence[P], collate: Collate[P, B], recipe: BatchRecipe, seed: int, number: int
    ) -> None:
        self._examples, self._collate, self._recipe = examples, collate, recipe
        random = np.random.default_rng([seed, number])
        order = random.permutation(len(examples))
        lengths = np.array([len(examples[i]) for i in order])
        if recipe.batching == "examples":
            # Not by length: wrong answers from the same stage of a conversation would hide what tells stages
            # apart. A last example without others has no wrong answer: it is left out of this epoch.
            groups = _chunks([[int(index)] for index in order], recipe.examples)
            self._groups = [group for group in groups if len(group) > 1]
        elif recipe.batching == "packed":
            rows = [[int(order[i]) for i in row] for row in pack(lengths, recipe.row_tokens)]
            self._groups = _chunks(rows, recipe.tokens // recipe.row_tokens)
        else:
            self._groups = bucket(order, lengths, recipe.tokens, random)

    def __len__(self) -> int:
        return len(self._groups)

    def steps(
        self, first: int = 0, process: int = 0, processes: int = 1, part_tokens: int | None = None
    ) -> Iterator[Step[B]]:
        """The steps from number `first` on, each with the rows that fall to one of the processes.

        Args:
            first: where to begin.
            process: which of the processes this is.
            processes: how many share the rows of a step.
            part_tokens: compute at most so many tokens at once, where memory is short. Without it, every
                packed batch has the same shape, a short last one too, as a compiled model needs it.
        """
        packed = self._recipe.batching == "packed"
        for group in self._groups[first:]:
            targets = sum(self._examples[i].weight for row in group for i in row)
            longest = max(len(self._examples[i]) for row in group for i in row)
            width = self._recipe.row_tokens if packed else longest
            mine = group[process::processes]
            if self._recipe.batching == "examples":  # the examples of a batch need each other
                yield Step((self._collate(self._examples, mine, width, 0),) if mine else (), targets)
                continue
            size = -(-len(mine) // self._recipe.accumulate)
            height = self._rows(processes) if packed and part_tokens is None else 0
            if part_tokens is not None:
                size = min(size, max(1, part_tokens // width))
            parts = _chunks(mine, size) if mine else []
            yield Step(tuple(self._collate(self._examples, part, width, height) for part in parts), targets)

    def _rows(self, processes: int) -> int:
        """Rows of every packed batch."""
        share = -(-(self._recipe.tokens // self._recipe.row_tokens) // processes)
        return -(-share // self._recipe.accumulate)


def pack(lengths: np.ndarray, row_tokens: int, open_rows: int = 64) -> list[list[int]]:
    """First-fit packing in the given order: indices of the examples of each row.

    Only the latest `open_rows` rows are looked at, which keeps it linear and the order nearly random.
    """
    rows: list[list[int]] = []
    room: list[int] = []
    for index, length in enumerate(lengths):
        first = max(0, len(rows) - open_rows)
        row = next((i for i in range(first, len(rows)) if room[i] >= length), None)
        if row is None:
            rows.append([])
            room.append(row_tokens)
            row = len(rows) - 1
        rows[row].append(index)
        room[row] -= int(length)
    return rows


def bucket(
    order: np.ndarray, lengths: np.ndarray, tokens: int, random: np.random.Generator
) -> list[list[list[int]]]:
    """Groups of one-example rows of like length, at most `tokens` tokens with padding, in random order."""
    groups = by_length(lengths, tokens)
    return [[[int(order[index])] for index in groups[i]] for i in random.permutation(len(groups))]


def by_length(lengths: np.ndarray, tokens: int) -> list[list[int]]:
    """Groups of indices of like length, the shortest first, each at most `tokens` tokens with padding."""
    groups: list[list[int]] = []
    for index in np.argsort(lengths, kind="stable").tolist():
        if not groups or (len(groups[-1]) + 1) * int(lengths[index]) > tokens:
            groups.append([])
        groups[-1].append(index)
    return groups


def pack_rows(
    examples: Sequence[TrainingExample], rows: Sequence[Sequence[int]], width: int, height: int = 0
) -> PackedRows:
    """Rows of example numbers as arrays of one width; rows of padding fill up to `height`."""
    shape = (max(len(rows), height), width)
    tokens, positions = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    segments = np.zeros(shape, np.int32)
    starts: list[int] = []
    for number, row in enumerate(rows):
        begin = 0
        for segment, index in enumerate(row, start=1):
            example = examples[index]
            end = begin + len(example)
            tokens[number, begin:end] = example.tokens
            segments[number, begin:end] = segment
            positions[number, begin:end] = np.arange(len(example))
            starts.append(number * width + begin)
            begin = end
    return PackedRows(tokens, segments, positions, np.array(starts, np.int64))


def _chunks(items: list[list[int]], size: int) -> list[list[list[int]]]:
    return [items[i : i + size] for i in range(0, len(items), size)]
