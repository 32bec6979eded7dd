"""What a generator asks of an engine; another engine takes transformers' place by offering these names."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from listenwell.runtime.text import Vocabulary

if TYPE_CHECKING:
    import numpy as np

State = Any
"""What an engine remembers of the tokens so far (its key-value cache); only the engine looks inside."""


class Runtime(Protocol):
    """A causal language model with its vocabulary."""

    vocabulary: Vocabulary
    context_length: int
    """How many tokens prompt and reply may have together."""

    def encode(self, text: str) -> list[int]:
        """The tokens of a text; what looks like a special token in it stays text."""
        ...

    def prefill(self, tokens: Sequence[int], rows: int = 1) -> State:
        """Read a prompt once, for `rows` replies that go on from it."""
        ...

    def step(self, state: State, tokens: Sequence[int]) -> State:
        """Read one more token in every row."""
        ...

    def logits(self, state: State) -> "np.ndarray":
        """Scores of the next token: float32, (rows, vocabulary)."""
        ...
