"""The planner: the exact probability of every plan, and samples from them.

With one pass of 8 rows and one of at most 72, the chain P(CM|x) P(DA|x,CM) P(EM|x,CM,DA) (CoMAE, Eq. 1) is
computed for all 720 plans after an emotion, so a part that is forced also changes the parts before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from listenwell.dialogue import Factors, Scored
from listenwell.generators.plans import CHOICES, LEVELS, SETS, PlanTokens
from listenwell.labels import ACTS, EMOTIONS, EXPRESSED_EMOTIONS, GLAD_EMOTIONS, MECHANISMS, contradicts
from listenwell.runtime.base import Runtime, State

LEAST = 0.002
"""Pairs of mechanisms and act with a smaller share of the probability are not extended."""
OTHERS, INTERPRETATION = "others", "interpretation"

CARELESS_ACTS = frozenset({"suggesting", "encouraging", "wishing"})
"""Acts of cheering and advice, which a careful reply leaves out."""
CARELESS_PENALTY = 50.0
"""What such a plan loses, in nats: it is only drawn where no other is left."""
Care = Literal["", "loss", "risk"]
"""After a loss no tone is glad; for a person who may be at risk no act cheers or advises either."""

Table = dict[tuple[tuple[str, ...], str, str], float]
"""Mechanisms, act and expressed emotion to their log probability."""


@dataclass(frozen=True)
class Draw:
    """How plans are sampled; `planned.PlannedConfig` explains the settings."""

    count: int = 1
    """How many for each dialogue; there can be fewer."""
    temperature: float = 1.0
    mechanism_bias: float = 0.0
    interpretation_bias: float = 0.0
    others_penalty: float = 0.0
    opposite_penalty: float = 0.0
    beam: int = len(SETS) * len(ACTS)


@dataclass(frozen=True)
class Planned:
    """A plan and its probability."""

    plan: Factors
    log_probability: float


@dataclass(frozen=True)
class Drafts:
    """Plans, and the engine's state after them but for their last token."""

    plans: list[list[Planned]]
    """For each dialogue, the best first."""
    state: State
    """A row for each plan, those of the first dialogue first, up to and including the act."""


@dataclass(frozen=True)
class Planner:
    """Computes plans from the probabilities of a generator's next tokens; a state's rows are dialogues."""

    runtime: Runtime
    tokens: PlanTokens

    def emotions(
        self, state: State, annotated: Sequence[Sequence[Scored]] = (), share: float = 0.0
    ) -> np.ndarray:
        """The probability of each of the 32 emotions: (rows, 32).

        The annotators' likeliest emotions of a dialogue, if there are any, have the weight `share`.
        """
        own = self._next(state, "emotion")
        theirs = np.full(own.shape, 1e-3)
        for row, scores in enumerate(annotated):
            for score in scores:
                theirs[row, EMOTIONS.index(score.label)] = max(score.probability, 1e-3)
        theirs /= theirs.sum(axis=1, keepdims=True)
        mixed: np.ndarray = np.exp((1 - share) * np.log(own + 1e-9) + share * np.log(theirs))
        is_annotated = np.array([bool(scores) for scores in annotated] or [False] * len(own))
        result: np.ndarray = np.where(is_annotated[:, None], mixed / mixed.sum(axis=1, keepdims=True), own)
        return result

    def plan_dropout(self, state: State) -> np.ndarray:
        """The log probability that each row continues with text instead of a plan: (rows,)."""
        logits = self.runtime.logits(state).astype(np.float64)
        every = np.logaddexp.reduce(logits, axis=1)
        logits[:, list(self.tokens.numbers[0])] = -np.inf
        result: np.ndarray = np.logaddexp.reduce(logits, axis=1) - every
        return result

    def factor_probabilities(self, state: State, known: Factors) -> dict[str, np.ndarray]:
        """The probabilities of the first level that `known` leaves open; empty if it leaves none.

        The key is the level's name; for "mechanisms" the value is the probability of each mechanism: (3,).
        """
        for level in LEVELS:
            if (value := getattr(known, level)) is None:
                row = self._next(state, level)[0]
                return {level: mechanism_probabilities(row) if level == "mechanisms" else row}
            state = self._after(state, level, [(0, CHOICES[level].index(value))])
        return {}

    def draft(
        self,
        state: State,
        targets: Sequence[Factors],
        seeds: Sequence[int],
        how: Draw,
        care: Sequence[Care] = (),
    ) -> Drafts:
        """Different plans for each dialogue, the best first, the others sampled without replacement.

        A target, one for each row as the seeds, fixes parts of the plans, the emotion always among them. It
        may ask for what a row's `care` leaves out.
        """
        emotions = [(row, EMOTIONS.index(str(target.emotion))) for row, target in enumerate(targets)]
        tables, acts, rows = self._tables(self._after(state, "emotion", emotions), targets, how.beam)
        no_care: list[Care] = [""] * len(targets)
        plans = [
            _drawn(table, str(target.emotion), seed, how, own_care)
            for table, target, seed, own_care in zip(tables, targets, seeds, care or no_care, strict=True)
        ]
        indices = [
            rows[row, planned.plan.mechanisms, planned.plan.act]
            for row, own in enumerate(plans)
            for planned in own
        ]
        return Drafts(plans, self.runtime.pick(acts, indices))

    def sample(self, state: State, count: int, seeds: Sequence[int]) -> list[list[list[int]]]:
        """Tokens of `count` whole plans for each row, sampled from the generator's probabilities."""
        randoms = [np.random.default_rng([seed, 23]) for seed in seeds]
        state = self.runtime.pick(state, [row for row in range(len(seeds)) for _ in range(count)])
        drawn: list[list[int]] = [[] for _ in range(count * len(seeds))]
        for depth, level in enumerate(LEVELS):
            numbers = self.tokens.numbers[depth]
            for row, probabilities in enumerate(self._next(state, level)):
                chosen = randoms[row // count].choice(
                    len(probabilities), p=probabilities / probabilities.sum()
                )
                drawn[row].append(numbers[int(chosen)])
            if depth + 1 < len(LEVELS):
                state = self.runtime.step(state, [plan[-1:] for plan in drawn])
        return [drawn[row * count : (row + 1) * count] for row in range(len(seeds))]

    def _tables(
        self, state: State, targets: Sequence[Factors], beam: int
    ) -> tuple[list[Table], State, dict[tuple[int, object, object], int]]:
        """For each row, after its emotion: the log probabilities of mechanisms, act and expressed emotion.

        Also the state after the acts, and the row of each pair of mechanisms and act in it.
        """
        first = self._next(state, "mechanisms")
        sets = [
            (row, chosen) for row, target in enumerate(targets) for chosen in _allowed("mechanisms", target)
        ]
        sets = _likeliest(sets, first, range(len(targets)), beam)
        state = self._after(state, "mechanisms", sets)
        second = np.array([first[pair] for pair in sets])[:, None] * self._next(state, "act")
        for index, (row, _) in enumerate(sets):
            left_out = set(range(len(ACTS))) - set(_allowed("act", targets[row]))
            second[index, sorted(left_out)] = 0
        sums = np.bincount([row for row, _ in sets], second.sum(axis=1))
        kept = [
            (index, act)
            for index, (row, _) in enumerate(sets)
            for act in np.flatnonzero(second[index] > LEAST * sums[row]).tolist()
        ]
        kept = _likeliest(kept, second, [row for row, _ in sets], beam)
        state = self._after(state, "act", kept)
        tables: list[Table] = [{} for _ in targets]
        rows = dict[tuple[int, object, object], int]()
        for number, ((index, act), probabilities) in enumerate(
            zip(kept, self._next(state, "expressed_emotion"), strict=True)
        ):
            row, chosen = sets[index]
            rows[row, SETS[chosen], ACTS[act]] = number
            for expressed_emotion in _allowed("expressed_emotion", targets[row]):
                likely = float(np.log(second[index, act] * probabilities[expressed_emotion] + 1e-30))
                tables[row][SETS[chosen], ACTS[act], EXPRESSED_EMOTIONS[expressed_emotion]] = likely
        return tables, state, rows

    def _next(self, state: State, level: str) -> np.ndarray:
        """The probabilities of a level's values, given that the next token is one of them: (rows, values)."""
        logits = self.runtime.logits(state)[:, list(self.tokens.numbers[LEVELS.index(level)])]
        weights: np.ndarray = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        return weights

    def _after(self, state: State, level: str, choices: Sequence[tuple[int, int]]) -> State:
        """The state after values of a level: a new row for each (row, value)."""
        numbers = self.tokens.numbers[LEVELS.index(level)]
        rows, tokens = [row for row, _ in choices], [[numbers[choice]] for _, choice in choices]
        return self.runtime.branch(state, rows, tokens)


def _drawn(table: Table, emotion: str, seed: int, how: Draw, care: Care) -> list[Planned]:
    plans = list(table)
    biases = [
        how.mechanism_bias * len(mechanisms)
        + how.interpretation_bias * (INTERPRETATION in mechanisms)
        - how.others_penalty * (act == OTHERS)
        - how.opposite_penalty * contradicts(expressed_emotion, emotion)
        - CARELESS_PENALTY * (care == "risk" and act in CARELESS_ACTS)
        - CARELESS_PENALTY * (care != "" and expressed_emotion in GLAD_EMOTIONS)
        for mechanisms, act, expressed_emotion in plans
    ]
    scores = (np.array([table[plan] for plan in plans]) + biases) / how.temperature
    # The k largest of scores with Gumbel noise are a draw without replacement (Kool et al. 2019).
    noise = np.random.default_rng([seed, 17]).gumbel(size=len(plans))
    first = int(scores.argmax())
    order = [first, *(index for index in np.argsort(-(scores + noise)).tolist() if index != first)]
    return [Planned(Factors(emotion, *plans[index]), table[plans[index]]) for index in order[: how.count]]


def mechanism_probabilities(sets: np.ndarray) -> np.ndarray:
    """The probability of each of ER, IP, EX, from those of the 8 sets: (3,)."""
    holds = np.array([[name in chosen for name in MECHANISMS] for chosen in SETS])
    probabilities: np.ndarray = sets @ holds
    return probabilities


def _likeliest(
    choices: list[tuple[int, int]], probabilities: np.ndarray, rows: Sequence[int], most: int
) -> list[tuple[int, int]]:
    """Of (index, value) pairs the `most` likeliest of each row, in their order."""
    by_row: dict[int, list[tuple[int, int]]] = {}
    for pair in sorted(choices, key=lambda pair: -probabilities[pair]):
        by_row.setdefault(rows[pair[0]], []).append(pair)
    kept = {pair for pairs in by_row.values() for pair in pairs[:most]}
    return [pair for pair in choices if pair in kept]


def _allowed(level: str, target: Factors) -> list[int]:
    value = getattr(target, level)
    return list(range(len(CHOICES[level]))) if value is None else [CHOICES[level].index(value)]
