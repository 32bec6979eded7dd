"""The one decoder: from logits to tokens, the same for every generator and every engine.

Top-p sampling (Holtzman et al. 2020) with temperature, as CoMAE decodes (§6.2: p = 0.9, 0.7). Several replies
are made in one batch, each by its own seed; a reply does not depend on those beside it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from listenwell.errors import InputError
from listenwell.generators.base import Begun
from listenwell.generators.ending import Ending
from listenwell.runtime.base import Runtime


@dataclass(frozen=True)
class Decoding:
    """How tokens are chosen; every switch that can move a number is named here."""

    temperature: float = 0.7
    """Below 1 prefers likely tokens; 0 always takes the likeliest (greedy)."""
    top_p: float = 0.9
    """Sample among the likeliest tokens that hold this share of probability."""
    top_k: int = 256
    """Of so many of the likeliest tokens at most (Fan et al. 2018)."""
    max_tokens: int = 60
    """A reply ends here at the latest."""
    repetition_penalty: float = 1.1
    """Divides the score of tokens the reply already holds (Keskar et al. 2019); 1 is none."""
    no_repeat: int = 0
    """No run of so many tokens stands twice in a reply (Paulus et al. 2018, §2.5); 0 allows all."""

    ending: Ending = field(default_factory=Ending)
    """Where a reply stops before the limit."""

    def __post_init__(self) -> None:
        limits = {
            "temperature": (0.0, 5.0),
            "top_p": (1e-6, 1.0),
            "top_k": (1, 10**9),
            "max_tokens": (1, 4096),
            "repetition_penalty": (0.1, 10.0),
            "no_repeat": (0, 100),
        }
        for name, (low, high) in limits.items():
            if not low <= getattr(self, name) <= high:  # also catches NaN
                raise InputError(
                    f"{name} is {getattr(self, name)}.", f"Give a number from {low:g} to {high:g}."
                )


def probabilities(logits: np.ndarray, decoding: Decoding) -> np.ndarray:
    """The distribution that is sampled from: temperature, then the top-p nucleus.

    Args:
        logits: (tokens,) scores; -inf for what is forbidden.
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


@dataclass
class Row:
    """A reply in the making."""

    seed: int
    tokens: list[int] = field(default_factory=list)
    """Without the one that stops it."""
    log_likelihood: float = 0.0
    """Of its tokens, and of the one that stopped it, as the model itself sees them: at temperature 1."""
    finished: bool = False
    """Whoever reads along can end it by setting this."""

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)


def decode(runtime: Runtime, begun: Begun, rows: Sequence[Row], decoding: Decoding) -> Iterator[Row]:
    """Make replies side by side; gives a row each time that it has one token more.

    Args:
        runtime: the engine.
        begun: what stands before the replies.
        rows: the replies, empty still.
        decoding: how tokens are chosen.
    """
    state, stop, limit = begun.state, begun.stop, min(decoding.max_tokens, begun.room)
    forbidden = runtime.vocabulary.special_ids - stop
    silent = runtime.vocabulary.blank_ids | stop  # at the beginning, so that no reply is empty
    active = list(rows)
    for count in range(limit):
        likely = runtime.likeliest(state, decoding.top_k)
        for place, row in enumerate(active):
            tokens, scores = likely.tokens[place], likely.scores[place]
            allowed = _allowed(tokens, scores, row, forbidden if count else forbidden | silent, decoding)
            if not np.isfinite(allowed).any():  # none of the likeliest may be said: look at all
                scores = runtime.logits(state)[place]
                tokens = np.arange(len(scores))
                allowed = _allowed(tokens, scores, row, forbidden if count else forbidden | silent, decoding)
            chosen = sample(probabilities(allowed, decoding), float(row.random.random()))
            row.log_likelihood += float(scores[chosen] - likely.totals[place])
            if (token := int(tokens[chosen])) in stop:
                row.finished = True
                continue
            row.tokens.append(token)
            yield row
        going_on = [place for place, row in enumerate(active) if not row.finished]
        if not going_on:
            return
        if len(going_on) < len(active):
            state = runtime.pick(state, going_on)
            active = [active[place] for place in going_on]
        if count + 1 < limit:
            state = runtime.step(state, [[row.tokens[-1]] for row in active])


def _allowed(
    tokens: np.ndarray, scores: np.ndarray, row: Row, forbidden: frozenset[int], decoding: Decoding
) -> np.ndarray:
    """The scores, lowered for what the reply holds already; -inf for what may not be said."""
    found, held, penalty = scores.copy(), set(row.tokens), decoding.repetition_penalty
    blocked = _would_repeat(row.tokens, decoding.no_repeat)
    for place, token in enumerate(tokens.tolist()):
        if token in forbidden or token in blocked:
            found[place] = -np.inf
        elif penalty != 1 and token in held:
            found[place] = found[place] / penalty if found[place] > 0 else found[place] * penalty
    return found


def _would_repeat(tokens: Sequence[int], size: int) -> set[int]:
    """Tokens that would make the last `size` of a reply stand in it twice."""
    if not size or len(tokens) < size:
        return set()
    last = tokens[len(tokens) - size + 1 :]
    return {
        tokens[place + size - 1]
        for place in range(len(tokens) - size + 1)
        if tokens[place : place + size - 1] == last
    }
