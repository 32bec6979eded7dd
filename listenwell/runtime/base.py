"""What a generator asks of an engine; another engine takes transformers' place by offering these names."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from listenwell.runtime.text import Vocabulary

if TYPE_CHECKING:
    import numpy as np

State = Any
"""What an engine remembers of the tokens so far (its key-value cache); only the engine looks inside."""


class Likeliest(NamedTuple):
    """The likeliest next tokens, the best first; of equal ones the first number first."""

    tokens: "np.ndarray"  # (rows, count) int64
    scores: "np.ndarray"  # (rows, count) float32
    totals: "np.ndarray"  # (rows,) float32: log of the summed exponentials of all scores, those left out too


def likeliest_of(logits: "np.ndarray", count: int) -> Likeliest:
    """The likeliest of scores that are at hand: (rows, vocabulary)."""
    import numpy as np

    count = min(count, logits.shape[1])
    found = np.argpartition(-logits, count - 1, axis=1)[:, :count]
    found.sort(axis=1)  # so that the stable order below is by number among equals
    scores = np.take_along_axis(logits, found, axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")
    highest = logits.max(axis=1, keepdims=True)
    totals = np.log(np.exp(logits - highest, dtype=np.float64).sum(axis=1)) + highest[:, 0]
    return Likeliest(
        np.take_along_axis(found, order, axis=1).astype(np.int64),
        np.take_along_axis(scores, order, axis=1),
        totals.astype(np.float32),
    )


class Runtime(Protocol):
    """A causal language model with its vocabulary."""

    vocabulary: Vocabulary
    context_length: int
    """How many tokens prompt and reply may have together."""

    def encode(self, text: str) -> list[int]:
        """The tokens of a text; what looks like a special token in it stays text."""
        ...

    def prefill(self, tokens: Sequence[int]) -> State:
        """Read a prompt: a state of one row."""
        ...

    def prefill_many(self, prompts: Sequence[Sequence[int]]) -> State:
        """Read several prompts, a row each."""
        ...

    def join(self, states: Sequence[State]) -> State:
        """The rows of several states as one; they may have read different numbers of tokens."""
        ...

    def pick(self, state: State, rows: Sequence[int]) -> State:
        """These rows, repeated, reordered or left out; the given state stays as it is."""
        ...

    def step(self, state: State, tokens: Sequence[Sequence[int]]) -> State:
        """Read more tokens in every row, as many in each; the given state cannot be used again."""
        ...

    def logits(self, state: State) -> "np.ndarray":
        """Scores of the next token: float32, (rows, vocabulary)."""
        ...

    def likeliest(self, state: State, count: int) -> "Likeliest":
        """The next tokens with the highest scores, as many in every row."""
        ...

    def log_likelihoods(self, prompt: Sequence[int], replies: Sequence[Sequence[int]]) -> "np.ndarray":
        """How likely each reply is after the prompt, in nats: (replies,) float32; the prompt is read once."""
        ...
