"""The decoder: from logits to tokens, the same for every generator and every engine.

Top-p sampling (Holtzman et al. 2020) with temperature, as CoMAE decodes (§6.2: p = 0.9, 0.7). Several replies
are made in one batch, each by its own seed; a reply does not depend on those beside it. Where beams are asked
for, `beams.py` searches instead.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from listenwell.errors import InputError
from listenwell.generators.base import Prefix
from listenwell.runtime.base import Runtime

_SENTENCE_END = re.compile(r"[.!?…。！？]+[\"'”’)\]]*(?=\s)")


@dataclass(frozen=True)
class Ending:
    """Where a reply ends: after a few whole sentences, not at a token count in the middle of a word."""

    max_sentences: int = 3
    soft_share: float = 0.6
    """Past this share of the token limit, the next sentence end is the last."""

    def __post_init__(self) -> None:
        if self.max_sentences < 1 or not 0 < self.soft_share <= 1:
            raise InputError(
                f"ending is {self.max_sentences} sentences with a soft_share of {self.soft_share}.",
                "Give max_sentences from 1 up and soft_share from above 0 to 1.",
            )

    def cut(self, text: str, shown: int, spent: float) -> int | None:
        """Where the reply ends in a text that starts without white space; None while it may go on.

        A sentence has ended when white space follows its mark, so "3.5" or "e.g.," do not end one.

        Args:
            text: the reply so far.
            shown: how much of it was shown already and cannot be taken back.
            spent: the share of the token limit that is used.
        """
        ends = [match.end() for match in _SENTENCE_END.finditer(text)]
        if (paragraph := text.find("\n\n")) >= 0:
            ends = [end for end in ends if end <= paragraph]
            return ends[self.max_sentences - 1] if len(ends) >= self.max_sentences else paragraph
        if len(ends) >= self.max_sentences:
            return ends[self.max_sentences - 1]
        return ends[-1] if ends and ends[-1] >= shown and spent > self.soft_share else None


@dataclass(frozen=True)
class Decoding:
    """How tokens are selected; every setting that can change a result is here."""

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
    beams: int = 0
    """Search for the likeliest replies, keeping so many at every step, and draw nothing: temperature, top_p,
    top_k and seeds have no say then. 0 samples; at least as many as the replies asked for."""
    beam_groups: int = 1
    """Share the beams out among so many groups that say different things (Vijayakumar et al. 2018)."""
    diversity: float = 0.0
    """What a token costs a group, in nats, for each beam of the groups before it that takes the same one at
    the same place; the paper finds 0.2 to 0.8 good."""
    length_penalty: float = 1.0
    """Beams are compared by log-likelihood / length ** this: 1 is the mean of a token, 0 the sum, which
    prefers short replies; above 1 prefers long ones."""

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
            "beams": (0, 64),
            "beam_groups": (1, 64),
            "diversity": (0.0, 100.0),
            "length_penalty": (-5.0, 5.0),
        }
        for name, (low, high) in limits.items():
            if not low <= getattr(self, name) <= high:  # also catches NaN
                raise InputError(
                    f"{name} is {getattr(self, name)}.", f"Give a number from {low:g} to {high:g}."
                )
        self._check_beams()

    def _check_beams(self) -> None:
        """Refuse settings of which one would undo the other, or do nothing in silence."""
        for name, unused in (("beam_groups", 1), ("diversity", 0), ("length_penalty", 1)):
            if not self.beams and (value := getattr(self, name)) != unused:
                raise InputError(f"{name} is {value:g}, but there are no beams.", "Give beams too.")
        if self.beams and self.beams % self.beam_groups:
            raise InputError(
                f"{self.beams} beams cannot be shared out evenly among {self.beam_groups} groups.",
                "Give a number of groups that divides the beams.",
            )
        if self.beam_groups > 1 and not self.diversity:
            raise InputError(
                f"{self.beam_groups} groups without diversity would all say the same.",
                "Give diversity, such as 0.5, or one group.",
            )
        if self.beam_groups == 1 and self.diversity:
            raise InputError(
                f"diversity is {self.diversity:g}, but there is one group of beams.",
                "Give beam_groups from 2 up.",
            )


def probabilities(logits: np.ndarray, decoding: Decoding) -> np.ndarray:
    """The distribution that is sampled from: temperature, then the top-p nucleus; -inf is forbidden."""
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
    """A reply that is being generated."""

    seed: int
    tokens: list[int] = field(default_factory=list)
    """Without the one that stops it."""
    log_likelihood: float = 0.0
    """Of its tokens, and of the one that stopped it, as the model itself sees them: at temperature 1."""
    finished: bool = False
    """A consumer ends the reply by setting this."""
    state_sum: np.ndarray | None = None
    """The sum of its tokens' hidden states, where they are kept; without the last one if it was cut there."""
    count: int = 0
    """How many tokens that sum holds."""

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    @property
    def hidden_state(self) -> np.ndarray | None:
        """The mean of its tokens' states: (width,)."""
        return None if self.state_sum is None else self.state_sum / self.count

    def add_state(self, hidden_state: np.ndarray) -> None:
        """Add the hidden state of one more token."""
        self.state_sum = hidden_state.copy() if self.state_sum is None else self.state_sum + hidden_state
        self.count += 1


def decode(runtime: Runtime, prefix: Prefix, rows: Sequence[Row], decoding: Decoding) -> Iterator[Row]:
    """Sample replies into empty rows, in one batch; yields a row each time that it has one more token."""
    state, stop, limit = prefix.state, prefix.stop, min(decoding.max_tokens, prefix.room)
    at_first, later = barred(runtime, stop)
    active = list(rows)
    for count in range(limit):
        forbidden = later if count else at_first
        likely = runtime.likeliest(state, decoding.top_k)
        for index, row in enumerate(active):
            tokens, scores = likely.tokens[index], likely.scores[index]
            left = allowed(tokens, scores, row.tokens, forbidden, decoding)
            if not np.isfinite(left).any():  # none of the likeliest is allowed: look at all
                scores = runtime.logits(state)[index]
                tokens = np.arange(len(scores))
                left = allowed(tokens, scores, row.tokens, forbidden, decoding)
            chosen = sample(probabilities(left, decoding), float(row.random.random()))
            row.log_likelihood += float(scores[chosen] - likely.totals[index])
            if (token := int(tokens[chosen])) in stop:
                row.finished = True
                continue
            row.tokens.append(token)
            yield row
        going_on = [index for index, row in enumerate(active) if not row.finished]
        if not going_on:
            return
        if len(going_on) < len(active):
            state = runtime.pick(state, going_on)
            active = [active[index] for index in going_on]
        if count + 1 < limit:
            state = runtime.step(state, [[row.tokens[-1]] for row in active])
            if prefix.keeps_hidden_states:
                for row, hidden_state in zip(active, runtime.hidden_states(state), strict=True):
                    row.add_state(hidden_state)


def barred(runtime: Runtime, stop: frozenset[int]) -> tuple[frozenset[int], frozenset[int]]:
    """Tokens that may not be said as a reply's first, so that none is empty, and those that never may."""
    special = runtime.vocabulary.special_ids
    return special | runtime.vocabulary.blank_ids | stop, special - stop


def allowed(
    tokens: np.ndarray,
    scores: np.ndarray,
    reply: Sequence[int],
    forbidden: frozenset[int],
    decoding: Decoding,
) -> np.ndarray:
    """The scores, lowered for what the reply holds already; -inf for what may not be said."""
    lowered, likely, penalty = scores.copy(), tokens.tolist(), decoding.repetition_penalty
    if penalty != 1 and (held := set(reply).intersection(likely)):
        mask = np.isin(tokens, list(held))
        lowered[mask] = np.where(lowered[mask] > 0, lowered[mask] / penalty, lowered[mask] * penalty)
    shut = forbidden.intersection(likely) | _would_repeat(reply, decoding.no_repeat).intersection(likely)
    if shut:
        lowered[np.isin(tokens, list(shut))] = -np.inf
    return lowered


def _would_repeat(tokens: Sequence[int], size: int) -> set[int]:
    """Tokens that would make the last `size` of a reply stand in it twice."""
    if not size or len(tokens) < size:
        return set()
    last = tokens[len(tokens) - size + 1 :]
    return {
        tokens[start + size - 1]
        for start in range(len(tokens) - size + 1)
        if tokens[start : start + size - 1] == last
    }
