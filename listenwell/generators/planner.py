"""Deciding what a reply should do: the exact chances of every plan, and draws from them.

With one pass of 8 rows and one of at most 72, the chain P(CM|x) P(DA|x,CM) P(EM|x,CM,DA) (CoMAE, Eq. 1) is
known for all 720 plans after an emotion, so a part that is forced also changes the parts before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from listenwell.dialogue import Factors, Scored
from listenwell.generators.plans import CHOICES, LEVELS, SETS, PlanTokens
from listenwell.labels import ACTS, EMOTIONS, MECHANISMS, TONES, contradicts
from listenwell.runtime.base import Runtime, State

LEAST = 0.002
"""Mechanisms and acts less likely than this together, among those wanted, are not looked at further."""
OTHERS, INTERPRETATION = "others", "interpretation"

Table = dict[tuple[tuple[str, ...], str, str], float]
"""Mechanisms, act and tone to the log of their chance."""


@dataclass(frozen=True)
class Draw:
    """How plans are drawn."""

    count: int = 1
    """How many for each dialogue; there can be fewer."""
    temperature: float = 1.0
    """Below 1 prefers likely plans."""
    mechanism_bias: float = 0.0
    """What a plan gains, in nats, for each mechanism of empathy that it uses."""
    interpretation_bias: float = 0.0
    """What it gains besides for interpretation."""
    others_penalty: float = 0.0
    """What a plan loses, in nats, for the act `others`: none of those that a listener could mean."""
    opposite_penalty: float = 0.0
    """What it loses for a tone on the wrong side of what is felt (`labels.contradicts`)."""
    beam: int = len(SETS) * len(ACTS)
    """Of so many of the likeliest mechanisms, and of those with an act, what follows is looked at."""


@dataclass(frozen=True)
class Planned:
    """A plan and how likely the generator finds it."""

    plan: Factors
    log_probability: float


@dataclass(frozen=True)
class Drafts:
    """Plans, and the dialogues as far as the planner has read them on for these."""

    plans: list[list[Planned]]
    """For each dialogue, the best first."""
    state: State
    """A row for each plan, those of the first dialogue first: read up to its act, its tone comes next."""


@dataclass(frozen=True)
class Planner:
    """Reads plans off a speaker's next tokens.

    Args:
        runtime: the speaker's engine.
        tokens: the plan tokens in its vocabulary.
    """

    runtime: Runtime
    tokens: PlanTokens

    def emotions(
        self, state: State, heard: Sequence[Sequence[Scored]] = (), share: float = 0.0
    ) -> np.ndarray:
        """How likely each of the 32 emotions is: (rows, 32).

        Args:
            state: dialogues, read up to where a plan begins; a row each.
            heard: what the annotators heard in each, the likeliest emotions; empty where nobody listened.
            share: how much their word counts beside the speaker's own, 0 to 1.
        """
        own = self._next(state, "emotion")
        theirs = np.full(own.shape, 1e-3)
        for row, scores in enumerate(heard):
            for score in scores:
                theirs[row, EMOTIONS.index(score.label)] = max(score.probability, 1e-3)
        theirs /= theirs.sum(axis=1, keepdims=True)
        mixed: np.ndarray = np.exp((1 - share) * np.log(own + 1e-9) + share * np.log(theirs))
        listened = np.array([bool(scores) for scores in heard] or [False] * len(own))
        found: np.ndarray = np.where(listened[:, None], mixed / mixed.sum(axis=1, keepdims=True), own)
        return found

    def plan_dropout(self, state: State) -> np.ndarray:
        """The log of the chance that each row goes on with a word instead of a plan: (rows,)."""
        logits = self.runtime.logits(state).astype(np.float64)
        every = np.logaddexp.reduce(logits, axis=1)
        logits[:, list(self.tokens.numbers[0])] = -np.inf
        found: np.ndarray = np.logaddexp.reduce(logits, axis=1) - every
        return found

    def factor_probabilities(self, state: State, given: Factors) -> dict[str, np.ndarray]:
        """How likely the choices of the first level are that `given` leaves open; empty if it leaves none.

        The key is the level's name; under "mechanisms" stands the chance of each mechanism: (3,).
        """
        for level in LEVELS:
            if (value := getattr(given, level)) is None:
                found = self._next(state, level)[0]
                return {level: mechanism_probabilities(found) if level == "mechanisms" else found}
            state = self._after(state, level, [(0, CHOICES[level].index(value))])
        return {}

    def draw(
        self, state: State, wants: Sequence[Factors], seeds: Sequence[int], how: Draw
    ) -> list[list[Planned]]:
        """Different plans for each dialogue, the best first, the others drawn without replacement.

        Args:
            state: dialogues, read up to where a plan begins; a row each.
            wants: parts of the plans that are fixed, the emotion always among them; one for each row.
            seeds: of the draws, one for each row.
            how: how many, and by what beside their chances.
        """
        return self.draft(state, wants, seeds, how).plans

    def draft(self, state: State, wants: Sequence[Factors], seeds: Sequence[int], how: Draw) -> Drafts:
        """What `draw` gives, and what was read on the way: whoever words the plans need not read it again."""
        felt = [(row, EMOTIONS.index(str(want.emotion))) for row, want in enumerate(wants)]
        tables, acts, rows = self._tables(self._after(state, "emotion", felt), wants, how.beam)
        plans = [
            _drawn(table, str(want.emotion), seed, how)
            for table, want, seed in zip(tables, wants, seeds, strict=True)
        ]
        places = [
            rows[row, one.plan.mechanisms, one.plan.act] for row, some in enumerate(plans) for one in some
        ]
        return Drafts(plans, self.runtime.pick(acts, places))

    def sample(self, state: State, count: int, seeds: Sequence[int]) -> list[list[list[int]]]:
        """Tokens of whole plans, each drawn on its own from the speaker's chances (some can be alike).

        Args:
            state: dialogues, read up to where a plan begins; a row each.
            count: how many plans of each.
            seeds: one for each row.
        """
        randoms = [np.random.default_rng([seed, 23]) for seed in seeds]
        state = self.runtime.pick(state, [row for row in range(len(seeds)) for _ in range(count)])
        drawn: list[list[int]] = [[] for _ in range(count * len(seeds))]
        for place, level in enumerate(LEVELS):
            numbers = self.tokens.numbers[place]
            for row, probabilities in enumerate(self._next(state, level)):
                chosen = randoms[row // count].choice(
                    len(probabilities), p=probabilities / probabilities.sum()
                )
                drawn[row].append(numbers[int(chosen)])
            if place + 1 < len(LEVELS):
                state = self.runtime.step(state, [plan[-1:] for plan in drawn])
        return [drawn[row * count : (row + 1) * count] for row in range(len(seeds))]

    def _tables(
        self, state: State, wants: Sequence[Factors], beam: int
    ) -> tuple[list[Table], State, dict[tuple[int, object, object], int]]:
        """For each row, after its emotion: the log chances of mechanisms, act and tone that are wanted.

        Also the rows read on up to their acts, and where in these a row with mechanisms and act stands.
        """
        first = self._next(state, "mechanisms")
        sets = [(row, chosen) for row, want in enumerate(wants) for chosen in _allowed("mechanisms", want)]
        sets = _likeliest(sets, first, range(len(wants)), beam)
        state = self._after(state, "mechanisms", sets)
        second = np.array([first[place] for place in sets])[:, None] * self._next(state, "act")
        for place, (row, _) in enumerate(sets):
            left_out = set(range(len(ACTS))) - set(_allowed("act", wants[row]))
            second[place, sorted(left_out)] = 0
        sums = np.bincount([row for row, _ in sets], second.sum(axis=1))
        kept = [
            (place, act)
            for place, (row, _) in enumerate(sets)
            for act in np.flatnonzero(second[place] > LEAST * sums[row]).tolist()
        ]
        kept = _likeliest(kept, second, [row for row, _ in sets], beam)
        state = self._after(state, "act", kept)
        tables: list[Table] = [{} for _ in wants]
        rows = dict[tuple[int, object, object], int]()
        for number, ((place, act), probabilities) in enumerate(
            zip(kept, self._next(state, "tone"), strict=True)
        ):
            row, chosen = sets[place]
            rows[row, SETS[chosen], ACTS[act]] = number
            for tone in _allowed("tone", wants[row]):
                likely = float(np.log(second[place, act] * probabilities[tone] + 1e-30))
                tables[row][SETS[chosen], ACTS[act], TONES[tone]] = likely
        return tables, state, rows

    def _next(self, state: State, level: str) -> np.ndarray:
        """The chances of a level's choices, when the next token must be one of them: (rows, choices)."""
        logits = self.runtime.logits(state)[:, list(self.tokens.numbers[LEVELS.index(level)])]
        weights: np.ndarray = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        return weights

    def _after(self, state: State, level: str, choices: Sequence[tuple[int, int]]) -> State:
        """Rows gone on with choices of a level: a new row for each (row, choice)."""
        numbers = self.tokens.numbers[LEVELS.index(level)]
        rows, tokens = [row for row, _ in choices], [[numbers[choice]] for _, choice in choices]
        return self.runtime.branch(state, rows, tokens)


def _drawn(table: Table, emotion: str, seed: int, how: Draw) -> list[Planned]:
    plans = list(table)
    leaning = [
        how.mechanism_bias * len(mechanisms)
        + how.interpretation_bias * (INTERPRETATION in mechanisms)
        - how.others_penalty * (act == OTHERS)
        - how.opposite_penalty * contradicts(tone, emotion)
        for mechanisms, act, tone in plans
    ]
    scores = (np.array([table[plan] for plan in plans]) + leaning) / how.temperature
    # The k largest of scores with Gumbel noise are a draw without replacement (Kool et al. 2019).
    noise = np.random.default_rng([seed, 17]).gumbel(size=len(plans))
    first = int(scores.argmax())
    order = [first, *(place for place in np.argsort(-(scores + noise)).tolist() if place != first)]
    return [Planned(Factors(emotion, *plans[place]), table[plans[place]]) for place in order[: how.count]]


def mechanism_probabilities(sets: np.ndarray) -> np.ndarray:
    """How likely each of ER, IP, EX is, from the chances of the 8 sets: (3,)."""
    holds = np.array([[name in chosen for name in MECHANISMS] for chosen in SETS])
    probabilities: np.ndarray = sets @ holds
    return probabilities


def _likeliest(
    choices: list[tuple[int, int]], probabilities: np.ndarray, rows: Sequence[int], most: int
) -> list[tuple[int, int]]:
    """Of (place, choice) those that are among so many of the likeliest of their row, in their order."""
    found: dict[int, list[tuple[int, int]]] = {}
    for one in sorted(choices, key=lambda one: -probabilities[one]):
        found.setdefault(rows[one[0]], []).append(one)
    kept = {one for several in found.values() for one in several[:most]}
    return [one for one in choices if one in kept]


def _allowed(level: str, want: Factors) -> list[int]:
    value = getattr(want, level)
    return list(range(len(CHOICES[level]))) if value is None else [CHOICES[level].index(value)]
