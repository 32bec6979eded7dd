"""Batches for the rankers: contexts, personas and replies that are each other's wrong answers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from listenwell.rankers.inputs import Text, stacked


@dataclass(frozen=True)
class RankingExample:
    """One reply with what it answers."""

    context: Text
    persona: Text
    reply: Text

    weight = 1

    @property
    def tokens(self) -> np.ndarray:
        """Everything that is read for it: (length,) int32."""
        return np.concatenate((self.context.tokens, self.persona.tokens, self.reply.tokens))

    def __len__(self) -> int:
        return len(self.context) + len(self.persona) + len(self.reply)


@dataclass(frozen=True)
class RankBatch:
    """Arrays of a batch, each by the names of `rankers.base.Words`."""

    context: dict[str, np.ndarray]
    persona: dict[str, np.ndarray] | None
    """None where nobody in the batch has one."""
    reply: dict[str, np.ndarray]
    allowed: np.ndarray  # (n, n) bool: false where another reply has the very same words as the true one
    size: int
    """Tokens that are no padding."""

    @property
    def weight(self) -> int:
        """How many contexts."""
        return len(self.allowed)


def collate(
    examples: Sequence[RankingExample], rows: Sequence[Sequence[int]], width: int, height: int = 0
) -> RankBatch:
    """Examples as one batch; width and height are of no use here, since the three parts differ in length."""
    chosen = [examples[index] for row in rows for index in row]
    first: dict[bytes, int] = {}
    numbers = np.array(
        [first.setdefault(example.reply.tokens.tobytes(), index) for index, example in enumerate(chosen)]
    )
    allowed = numbers[:, None] != numbers[None]
    np.fill_diagonal(allowed, True)
    has_persona = any(len(example.persona) for example in chosen)
    return RankBatch(
        stacked([example.context for example in chosen]),
        stacked([example.persona for example in chosen]) if has_persona else None,
        stacked([example.reply for example in chosen]),
        allowed,
        sum(map(len, chosen)),
    )
