"""The one decoder: from logits to tokens, the same for every generator and every engine.

Top-p sampling (Holtzman et al. 2020) with temperature, as CoMAE decodes (§6.2: p = 0.9, 0.7).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from listenwell.errors import InputError
from listenwell.generators.base import Prompt
from listenwell.generators.ending import Ending
from listenwell.runtime.base import Runtime


@dataclass(frozen=True)
class Decoding:
    """How tokens are chosen; every switch that can move a number is named here."""

    temperature: float = 0.7
    """Below 1 prefers likely tokens; 0 always takes the likeliest (greedy)."""
    top_p: float = 0.9
    """Sample among the likeliest tokens that hold this share of probability."""
    max_tokens: int = 60
    """A reply ends here at the latest."""
    repetition_penalty: float = 1.1
    """Divides the score of tokens the reply already holds (Keskar et al. 2019); 1 is none."""

    ending: Ending = field(default_factory=Ending)
    """Where a reply stops before the limit."""

    def __post_init__(self) -> None:
        limits = {
            "temperature": (0.0, 5.0),
            "top_p": (1e-6, 1.0),
            "max_tokens": (1, 4096),
            "repetition_penalty": (0.1, 10.0),
        }
        for name, (low, high) in limits.items():
            if not low <= getattr(self, name) <= high:  # also catches NaN
                raise InputError(
                    f"{name} is {getattr(self, name)}.", f"Give a number from {low:g} to {high:g}."
                )


def probabilities(logits: np.ndarray, decoding: Decoding) -> np.ndarray:
    """The distribution that is sampled from: temperature, then the top-p nucleus.

    Args:
        logits: (vocabulary,) scores; -inf for what is forbidden.
        decoding: temperature and top_p.
    """
    scores = logits.astype(np.float64)
    if decoding.temperature == 0:
        greedy = np.zeros_like(scores)
        greedy[int(scores.argmax())] = 1.0
        return greedy
    scores = (scores - scores.max()) / decoding.temperature
    weights: np.ndarray = np.exp(scores)
    weights /= weights.sum()
    # By score, not by weight: scores that differ can have weights that round to the same.
    order = np.argsort(-scores, kind="stable")
    # A token belongs to the nucleus when those before it do not yet hold the share top_p.
    before = np.concatenate(([0.0], np.cumsum(weights[order])[:-1]))
    weights[order[before >= decoding.top_p]] = 0.0
    weights /= weights.sum()
    return weights


def sample(weights: np.ndarray, draw: float) -> int:
    """The token at a point in [0, 1) of the distribution: the same draw gives the same token everywhere."""
    total = np.cumsum(weights)
    return min(int(np.searchsorted(total, draw * total[-1], side="right")), len(weights) - 1)


def generate(runtime: Runtime, prompt: Prompt, decoding: Decoding, seed: int) -> Iterator[int]:
    """Tokens of one reply, one by one, without the one that stops it.

    Args:
        runtime: the engine.
        prompt: what stands before the reply, and what ends it; a reply cannot begin with its end.
        decoding: how tokens are chosen.
        seed: the same seed gives the same reply.
    """
    random = np.random.default_rng(seed)
    special = np.array(sorted(runtime.vocabulary.special_ids - prompt.stop), dtype=np.int64)
    silent = np.array(sorted(runtime.vocabulary.blank_ids | prompt.stop), dtype=np.int64)
    state = runtime.prefill(prompt.tokens)
    reply: list[int] = []
    room = min(decoding.max_tokens, runtime.context_length - len(prompt.tokens))
    while len(reply) < room:
        logits = runtime.logits(state)[0].copy()
        logits[special] = -np.inf
        if not reply:  # so that no reply is empty
            logits[silent] = -np.inf
        if reply and decoding.repetition_penalty != 1:
            seen = np.unique(np.array(reply))
            kept = logits[seen]
            logits[seen] = np.where(
                kept > 0, kept / decoding.repetition_penalty, kept * decoding.repetition_penalty
            )
        token = sample(probabilities(logits, decoding), float(random.random()))
        if token in prompt.stop:
            return
        reply.append(token)
        yield token
        if len(reply) < room:
            state = runtime.step(state, [token])
