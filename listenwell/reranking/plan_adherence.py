"""Did replies realize their plans, and how much of each mechanism do they show? By the annotators."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from listenwell.annotators.replies import read_replies
from listenwell.dialogue import Candidate, Dialogue, Factors, Turn
from listenwell.labels import LEVELS, MECHANISMS

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator

Readings = Sequence[Turn | None]
"""What the annotators read in each candidate; None where nothing was planned, or it has no words."""


def read_candidates(
    annotator: "Annotator", dialogue: Dialogue, candidates: Sequence[Candidate]
) -> list[Turn | None]:
    """All candidates with plans and words, read in one go."""
    generations = [place for place, one in enumerate(candidates) if one.plan and one.text.strip()]
    found: list[Turn | None] = [None] * len(candidates)
    if not generations:
        return found
    read = read_replies(annotator, dialogue, [candidates[place].text for place in generations])
    for place, turn in zip(generations, read, strict=True):
        found[place] = turn
    return found


def plan_adherence(
    readings: Readings, candidates: Sequence[Candidate], want: Factors | None = None
) -> list[float | None]:
    """How likely each candidate does what its plan says, from 0 to 1; None where nothing was planned.

    Args:
        readings: of the candidates.
        candidates: the replies with their plans.
        want: what somebody asked for; then this alone counts, by its weakest part.
    """
    found: list[float | None] = [None] * len(candidates)
    for place, (turn, one) in enumerate(zip(readings, candidates, strict=True)):
        if turn is not None and one.plan is not None:
            found[place] = agreement(one.plan, turn) if want is None else weakest(want, turn)
    return found


def shown(readings: Readings, mechanism: str) -> list[float | None]:
    """How much of a mechanism each candidate shows: its likeliest level, 0 to 2 (EPITOME)."""
    found: list[float | None] = []
    for turn in readings:
        reading = turn.reading(mechanism) if turn else None
        level = reading.scores[0].label if reading and reading.scores else None
        found.append(None if level is None else float(LEVELS.labels.index(level)))
    return found


def agreement(plan: Factors, read: Turn) -> float | None:
    """The mean probability of the plan's factors; None where it has none that was read.

    Mechanisms are one factor: the mean over ER, IP, EX of the wanted yes or no, where weak and strong are yes
    (CoMAE §4.2). The user's emotion is not the reply's to realize.
    """
    known = _mechanisms(plan, read)
    parts = [*([sum(known) / len(known)] if known else []), *_act_and_tone(plan, read)]
    return sum(parts) / len(parts) if parts else None


def weakest(plan: Factors, read: Turn) -> float | None:
    """The least probability of the plan's parts, each mechanism one: one part amiss, and it was not done."""
    return min([*_mechanisms(plan, read), *_act_and_tone(plan, read)], default=None)


def _mechanisms(plan: Factors, read: Turn) -> list[float]:
    """How likely each mechanism that was read is there, or is not, as planned."""
    if plan.mechanisms is None:
        return []
    none = {name: _probability(read, name, LEVELS[0]) for name in MECHANISMS}
    return [
        1 - probability if name in plan.mechanisms else probability
        for name, probability in none.items()
        if probability is not None
    ]


def _act_and_tone(plan: Factors, read: Turn) -> list[float]:
    """How likely those of the two are that were planned and read."""
    wanted = (("act", plan.act), ("tone", plan.tone))
    found = [_probability(read, head, label) for head, label in wanted if label is not None]
    return [probability for probability in found if probability is not None]


def _probability(read: Turn, head: str, label: str) -> float | None:
    """A label's probability; None where the head was not asked."""
    if (reading := read.reading(head)) is None:
        return None
    return next((score.probability for score in reading.scores if score.label == label), 0.0)
