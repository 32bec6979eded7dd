"""Which examples of a split are used: all of them, or a sample that the conditions of a result can state."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from listenwell.dialogue import Example
from listenwell.errors import InputError

T = TypeVar("T")


@dataclass(frozen=True)
class Sampling:
    """How many items to take, and the seed of the draw."""

    limit: int | None = None
    """How many to draw without replacement; None, or as many as there are, takes all."""
    seed: int = 0
    """Of numpy's `default_rng`: the same seed draws the same items."""

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise InputError(f"The limit is {self.limit}.", "Give 1 or more, or leave it out.")
        if self.seed < 0:
            raise InputError(f"The seed is {self.seed}.", "Give a whole number from 0 up.")

    def draw(self, items: Sequence[T]) -> list[tuple[int, T]]:
        """Each drawn item with its index in the corpus, in corpus order."""
        if not items:
            raise InputError("There is nothing to measure.", "Name a split or a file that has replies.")
        if self.limit is None or self.limit >= len(items):
            return list(enumerate(items))
        import numpy as np

        indices = np.random.default_rng(self.seed).choice(len(items), size=self.limit, replace=False)
        return [(int(index), items[int(index)]) for index in np.sort(indices)]

    def describe(self, total: int, taken: int) -> str:
        """The sampling rule in words, for the conditions of a result."""
        if taken == total:
            return f"all {total:,}"
        rule = f"drawn by numpy default_rng({self.seed}) without replacement, in corpus order"
        return f"{taken:,} of {total:,}, {rule}"


def example_id(example: Example, index: int) -> str:
    """The conversation's id and the number of turns before the reply; the index where there is no id."""
    return f"{example.context.id}#{len(example.context.turns)}" if example.context.id else str(index)
