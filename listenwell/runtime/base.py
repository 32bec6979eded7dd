"""What a generator asks of an engine."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from listenwell.runtime.text import Vocabulary

State = Any
"""What an engine remembers of the tokens so far (its key-value cache); only the engine looks inside."""


class TopTokens(NamedTuple):
    """The likeliest next tokens, the best first; of equal ones the first number first."""

    tokens: np.ndarray  # (rows, count) int64
    scores: np.ndarray  # (rows, count) float32
    totals: np.ndarray  # (rows,) float32: log of the summed exponentials of all scores, those left out too


_MEMBERS = 64


def top_tokens_of(logits: np.ndarray, count: int) -> TopTokens:
    """The likeliest of scores (rows, vocabulary) that are at hand, without a look at most of them.

    The `count`-th highest of the maxima of groups is a bound: at least `count` scores reach it, one in each
    of those groups, and not many more do. Members of a group stand apart: maxima of rows are found sooner.
    """
    rows, words = logits.shape
    count, groups = min(count, words), words // _MEMBERS
    tokens, scores = np.empty((rows, count), np.int64), np.empty((rows, count), np.float32)
    totals = np.empty(rows, np.float32)
    for row, row_logits in enumerate(logits):
        highest = row_logits.max()
        totals[row] = highest + np.log(np.exp(row_logits - highest).sum(dtype=np.float64))
        likely = np.arange(words)
        if count < groups:
            maxima = row_logits[: groups * _MEMBERS].reshape(_MEMBERS, groups).max(axis=0)
            likely = np.flatnonzero(row_logits >= np.partition(maxima, groups - count)[groups - count])
        # Stable: of equal scores the first number comes first.
        likely = likely[np.argsort(-row_logits[likely], kind="stable")[:count]]
        tokens[row], scores[row] = likely, row_logits[likely]
    return TopTokens(tokens, scores, totals)


def probe_layer(layers: int) -> int:
    """After so many of a model's layers its states tell most of what a text means.

    The first ones are about words, the last ones about the next token: of the shipped generator's thirty, a
    linear reward model works best on states after 18 to 22.
    """
    return max(1, 2 * layers // 3)


class Runtime(Protocol):
    """A causal language model with its vocabulary; engines inherit from it."""

    vocabulary: Vocabulary
    context_length: int
    """How many tokens prompt and reply may have together."""
    soft_prompt: tuple[int, ...]
    """Soft prompt tokens, which can be read but not generated (`generators.prefix_cache`); mostly none."""

    def use_gpu(self) -> None:
        """Move the weights to a GPU, where there is one and the engine can use it."""
        return

    def encode(self, text: str) -> list[int]:
        """The tokens of a text; what looks like a special token in it stays text."""
        return self.vocabulary.encode(text)

    def prefill(self, tokens: Sequence[int]) -> State:
        """Read a prompt: a state of one row."""
        return self.prefill_many([tokens])

    def prefill_many(self, prompts: Sequence[Sequence[int]]) -> State:
        """Read several prompts, a row each."""

    def join(self, states: Sequence[State]) -> State:
        """The rows of several states as one; they may have read different numbers of tokens."""

    def pick(self, state: State, rows: Sequence[int]) -> State:
        """These rows, repeated, reordered or left out; the given state stays as it is."""

    def step(self, state: State, tokens: Sequence[Sequence[int]]) -> State:
        """Read more tokens in every row, as many in each; the given state cannot be used again."""

    def branch(self, state: State, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> State:
        """What `step` gives after `pick`, for a look ahead at many ways to go on: in little memory, but not
        made for going on far; the given state stays as it is."""

    def logits(self, state: State) -> np.ndarray:
        """Scores of the next token: float32, (rows, vocabulary)."""

    def likeliest(self, state: State, count: int) -> "TopTokens":
        """The next tokens with the highest scores, as many in every row."""

    def hidden_states(self, state: State) -> np.ndarray:
        """Each row's last token after `probe_layer` layers: float32, (rows, width)."""

    def mean_hidden_states(self, prompt: Sequence[int], replies: Sequence[Sequence[int]]) -> np.ndarray:
        """The mean of the same over all tokens of each reply after the prompt: float32, (replies, width)."""

    @property
    def batch_size(self) -> int:
        """How many dialogues are best handed to it at once."""
        return 1

    def log_likelihoods(self, prompt: Sequence[int], replies: Sequence[Sequence[int]]) -> np.ndarray:
        """How likely each reply is after the prompt, in nats: (replies,) float32; the prompt is read once."""

    def log_likelihoods_each(
        self, requests: Sequence[tuple[Sequence[int], Sequence[Sequence[int]]]]
    ) -> list[np.ndarray]:
        """The same for several prompts, each with replies of its own: (replies,) for each."""
        return [self.log_likelihoods(prompt, replies) for prompt, replies in requests]
