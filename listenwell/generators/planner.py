"""Deciding what a reply should do: the exact chances of every plan, and draws from them.

With one pass of 8 rows and one of at most 72, the chain P(CM|x) P(DA|x,CM) P(EM|x,CM,DA) (CoMAE, Eq. 1) is
known for all 720 plans after an emotion, so a part that is forced also changes the parts before it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from listenwell.dialogue import Factors, Scored
from listenwell.generators.plans import CHOICES, LEVELS, PlanTokens
from listenwell.labels import EMOTIONS, MECHANISMS
from listenwell.runtime.base import Runtime, State

LEAST = 0.002
"""Mechanisms and acts that are together less likely than this, among those wanted, are not looked at further."""


@dataclass(frozen=True)
class Planned:
    """A plan and how likely the speaker finds it."""

    plan: Factors
    log_chance: float


@dataclass(frozen=True)
class Planner:
    """Reads plans off a speaker's next tokens.

    Args:
        runtime: the speaker's engine.
        tokens: the plan tokens in its vocabulary.
    """

    runtime: Runtime
    tokens: PlanTokens

    def emotions(self, state: State, heard: Sequence[Scored] = (), share: float = 0.0) -> np.ndarray:
        """How likely each of the 32 emotions is: (32,).

        Args:
            state: the dialogue, read up to where a plan begins; one row.
            heard: what the annotators heard, the likeliest ones.
            share: how much their word counts beside the speaker's own, 0 to 1.
        """
        own: np.ndarray = self._next(state, "emotion")[0]
        if not heard or not share:
            return own
        theirs = np.full(len(EMOTIONS), 1e-3)
        for score in heard:
            theirs[EMOTIONS.index(score.label)] = max(score.probability, 1e-3)
        mixed: np.ndarray = np.exp((1 - share) * np.log(own + 1e-9) + share * np.log(theirs / theirs.sum()))
        mixed /= mixed.sum()
        return mixed

    def chances(self, state: State, given: Factors) -> dict[str, np.ndarray]:
        """How likely the choices of the first level are that `given` leaves open; empty if it leaves none.

        The key is the level's name; under "mechanisms" stands the chance of each mechanism: (3,).
        """
        for level in LEVELS:
            if (value := getattr(given, level)) is None:
                found = self._next(state, level)[0]
                return {level: mechanism_chances(found) if level == "mechanisms" else found}
            state = self._after(state, level, [CHOICES[level].index(value)])
        return {}

    def draw(
        self, state: State, want: Factors, count: int, seed: int, temperature: float = 1.0
    ) -> list[Planned]:
        """Different plans, the likeliest first, the others drawn without replacement by their chances.

        Args:
            state: the dialogue, read up to where a plan begins; one row.
            want: parts of the plan that are fixed, the emotion among them.
            count: how many; there can be fewer.
            seed: of the draw.
            temperature: below 1 prefers likely plans.
        """
        emotion = EMOTIONS.check(str(want.emotion))
        table = self._table(self._after(state, "emotion", [EMOTIONS.index(emotion)]), want)
        plans = list(table)
        scores = np.array([table[plan] for plan in plans]) / temperature
        # Gumbel-top-k: the k largest of scores with Gumbel noise are a draw without replacement (Kool 2019).
        noise = np.random.default_rng([seed, 17]).gumbel(size=len(plans))
        first = int(scores.argmax())
        order = [first, *(place for place in np.argsort(-(scores + noise)).tolist() if place != first)]
        return [
            Planned(
                Factors(emotion=emotion, mechanisms=plans[p][0], act=plans[p][1], tone=plans[p][2]),
                float(table[plans[p]]),
            )
            for p in order[:count]
        ]

    def sample(self, state: State, count: int, seed: int) -> list[list[int]]:
        """Tokens of whole plans, each drawn on its own from the speaker's chances (some can be alike)."""
        random = np.random.default_rng([seed, 23])
        state = self.runtime.pick(state, [0] * count)
        drawn: list[list[int]] = [[] for _ in range(count)]
        for place, level in enumerate(LEVELS):
            chances = self._next(state, level)
            tokens = [
                self.tokens.numbers[place][int(random.choice(len(row), p=row / row.sum()))] for row in chances
            ]
            for plan, token in zip(drawn, tokens, strict=True):
                plan.append(token)
            if place + 1 < len(LEVELS):
                state = self.runtime.step(state, [[token] for token in tokens])
        return drawn

    def _table(self, state: State, want: Factors) -> Mapping[tuple[tuple[str, ...], str, str], float]:
        """Log chances of (mechanisms, act, tone) after an emotion, among those that are wanted."""
        sets, acts = CHOICES["mechanisms"], CHOICES["act"]
        may_set = _allowed("mechanisms", want)
        first = self._next(state, "mechanisms")[0]
        state = self._after(state, "mechanisms", may_set)
        second = first[may_set][:, None] * self._next(state, "act")  # (allowed sets, acts)
        may_act = np.isin(np.arange(len(acts)), _allowed("act", want))
        wanted = np.where(may_act, second, 0)
        kept = np.argwhere(wanted >= LEAST * wanted.sum())
        rows = self.runtime.pick(state, kept[:, 0].tolist())
        rows = self.runtime.step(rows, [[self.tokens.numbers[2][act]] for act in kept[:, 1].tolist()])
        tones = self._next(rows, "tone")
        table = {}
        for (place, act), chances in zip(kept.tolist(), tones, strict=True):
            for tone in _allowed("tone", want):
                names = (sets[may_set[place]], acts[act], CHOICES["tone"][tone])
                table[names] = float(np.log(wanted[place, act] * chances[tone] + 1e-30))
        return table  # type: ignore[return-value]

    def _next(self, state: State, level: str) -> np.ndarray:
        """The chances of a level's choices, when the next token must be one of them: (rows, choices)."""
        logits = self.runtime.logits(state)[:, list(self.tokens.numbers[LEVELS.index(level)])]
        weights: np.ndarray = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        return weights

    def _after(self, state: State, level: str, choices: Sequence[int]) -> State:
        """The state of one row, gone on with each of some choices: a row each."""
        numbers = self.tokens.numbers[LEVELS.index(level)]
        rows = self.runtime.pick(state, [0] * len(choices))
        return self.runtime.step(rows, [[numbers[choice]] for choice in choices])


def mechanism_chances(sets: np.ndarray) -> np.ndarray:
    """How likely each of ER, IP, EX is, from the chances of the 8 sets: (3,)."""
    holds = np.array([[name in chosen for name in MECHANISMS] for chosen in CHOICES["mechanisms"]])  # type: ignore[operator]
    chances: np.ndarray = sets @ holds
    return chances


def _allowed(level: str, want: Factors) -> list[int]:
    value = getattr(want, level)
    return list(range(len(CHOICES[level]))) if value is None else [CHOICES[level].index(value)]
