"""Batches for the annotators: rows of texts, and for each head which of them it has labels for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from listenwell.annotators.views import Input
from listenwell.training.batching import PackedRows, pack_rows


@dataclass(frozen=True)
class ClassifierExample(Input):
    """One text and what is known of it."""

    targets: Mapping[str, np.ndarray] = field(default_factory=dict)
    """By head: (labels,) float32, the target probabilities."""
    marks: np.ndarray | None = None
    """(length, marked heads) int8: 1 where a word shows the head's level, 0 where not, -1 where unknown."""
    pooled: np.ndarray | None = None
    """(width,) float32: what the encoder makes of it, where that is known because only heads learn."""

    weight = 1


@dataclass(frozen=True)
class ClassifierBatch(PackedRows):
    """Rows of texts with their targets."""

    types: np.ndarray  # (rows, length) int64
    owners: np.ndarray  # (rows * length,) int64: the text each token belongs to; padding: the number of texts
    targets: Mapping[str, tuple[np.ndarray, np.ndarray]]
    """By head: (known,) numbers of the texts it has labels for, and (known, labels) target probabilities."""
    marks: tuple[np.ndarray, np.ndarray] | None
    """(words,) flat indices of words' tokens, and (words, marked heads) 0 or 1."""
    pooled: np.ndarray | None = None
    """(texts, width), where the encoder need not be run."""

    @property
    def weight(self) -> int:
        """How many texts."""
        return len(self.starts)


def collate(
    examples: Sequence[ClassifierExample], rows: Sequence[Sequence[int]], width: int, height: int = 0
) -> ClassifierBatch:
    """Rows of example numbers as one batch; rows of padding fill up to `height`."""
    packed = pack_rows(examples, rows, width, height)
    chosen = [examples[index] for row in rows for index in row]
    types = np.zeros(packed.tokens.size, np.int64)
    owners = np.full(packed.tokens.size, len(chosen), np.int64)
    known_already = [example.pooled for example in chosen if example.pooled is not None]
    known: dict[str, tuple[list[int], list[np.ndarray]]] = {}
    positions, marks = list[np.ndarray](), list[np.ndarray]()
    for number, (start, example) in enumerate(zip(packed.starts, chosen, strict=True)):
        types[start : start + len(example)] = example.types
        owners[start : start + len(example)] = number
        for head, target in example.targets.items():
            numbers, targets = known.setdefault(head, ([], []))
            numbers.append(number)
            targets.append(target)
        if example.marks is not None:
            words = np.flatnonzero(example.marks[:, 0] >= 0)
            positions.append(start + words)
            marks.append(example.marks[words])
    return ClassifierBatch(
        **vars(packed),
        types=types.reshape(packed.tokens.shape),
        owners=owners,
        targets={head: (np.array(n), np.stack(of_head)) for head, (n, of_head) in known.items()},
        marks=(np.concatenate(positions), np.concatenate(marks)) if positions else None,
        pooled=np.stack(known_already) if len(known_already) == len(chosen) > 0 else None,
    )
