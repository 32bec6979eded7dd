"""Perplexity by token, by word, and bits by byte: always all three, with the tokenizer named.

By token it depends on the tokenizer: a vocabulary of longer pieces has a higher perplexity for the same
model of the text. By word and by byte it can be compared between systems (Jelinek et al. 1977 define it;
Gao et al. 2020, The Pile, print bits by byte).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from listenwell.errors import InputError
from listenwell.metrics.checks import check_pairs

_SUMS = ("nll", "tokens", "words", "bytes")


@dataclass(frozen=True)
class Perplexity:
    """Sums over replies, from which the three figures follow; sums can be added, whatever the batches."""

    nll: float
    """Negative log-likelihood of all tokens together, in nats."""
    tokens: int
    """Tokens predicted, the end mark of each reply included: a model must also know when to stop."""
    words: int
    """Words of the replies as they stand between white space; the end mark is no word."""
    bytes: int
    """UTF-8 bytes of the replies; the end mark has none."""
    tokenizer: str
    """Whose tokens these are, such as "SmolLM2 BPE"; two figures by token compare only if this is equal."""

    def __post_init__(self) -> None:
        if math.isnan(self.nll) or min(self.nll, self.tokens, self.words, self.bytes) < 0:
            raise InputError(
                f"A perplexity cannot be made of {self}.", "Give sums that are numbers and not below zero."
            )
        if not self.tokenizer.strip():
            raise InputError("The perplexity has no tokenizer.", "Name it: figures by token depend on it.")

    @property
    def by_token(self) -> float:
        """exp of the mean negative log-likelihood of a token."""
        return _exp(self.nll, self.tokens, "tokens")

    @property
    def by_word(self) -> float:
        """exp of the negative log-likelihood for each word."""
        return _exp(self.nll, self.words, "words")

    @property
    def bits_per_byte(self) -> float:
        """Bits that the model needs for each UTF-8 byte."""
        return _mean(self.nll, self.bytes, "bytes") / math.log(2)

    def __add__(self, other: "Perplexity") -> "Perplexity":
        if self.tokenizer != other.tokenizer:
            raise InputError(
                f"Perplexities of the tokenizers {self.tokenizer!r} and {other.tokenizer!r} cannot be added.",
                "Measure both with one tokenizer.",
            )
        sums = {name: getattr(self, name) + getattr(other, name) for name in _SUMS}
        return replace(self, **sums)


def perplexity_of(
    nlls: Sequence[float], token_counts: Sequence[int], texts: Sequence[str], tokenizer: str
) -> Perplexity:
    """The perplexity of replies: every token weighs the same, however the replies were batched.

    Args:
        nlls: for each reply the sum over its tokens, in nats; not the mean.
        token_counts: for each reply the number of those tokens, its end mark included.
    """
    check_pairs(nlls, texts, "replies")
    check_pairs(token_counts, texts, "replies")
    return Perplexity(
        nll=math.fsum(nlls),
        tokens=int(sum(token_counts)),
        words=sum(len(text.split()) for text in texts),
        bytes=sum(len(text.encode()) for text in texts),
        tokenizer=tokenizer,
    )


def _mean(nll: float, count: int, unit: str) -> float:
    if not count:
        raise InputError(f"There are no {unit} to divide by.", "Give at least one reply that is not empty.")
    return nll / count


def _exp(nll: float, count: int, unit: str) -> float:
    mean = _mean(nll, count, unit)
    return math.exp(mean) if mean < 709 else math.inf  # e**709 is the last that a float holds
