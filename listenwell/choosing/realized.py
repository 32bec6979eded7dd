"""Did replies realize their plans? The annotators read all candidates in one go."""

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from listenwell.annotators.replies import read_replies
from listenwell.dialogue import Candidate, Dialogue, Factors, Turn
from listenwell.labels import LEVELS, MECHANISMS

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator


def realized(
    annotator: "Annotator", dialogue: Dialogue, candidates: Sequence[Candidate], all_three: bool = False
) -> list[float | None]:
    """How likely each candidate does what its plan says, from 0 to 1; None where nothing was planned.

    Args:
        annotator: reads the candidates.
        dialogue: what was said before.
        candidates: the replies with their plans.
        all_three: as `agreement`'s.
    """
    planned = [place for place, one in enumerate(candidates) if one.plan and one.text.strip()]
    read = read_replies(annotator, dialogue, [candidates[place].text for place in planned])
    found: list[float | None] = [None] * len(candidates)
    for place, turn in zip(planned, read, strict=True):
        plan = candidates[place].plan
        found[place] = agreement(plan, turn, all_three) if plan else None
    return found


def agreement(plan: Factors, read: Turn, all_three: bool = False) -> float | None:
    """The mean probability of the plan's factors.

    Mechanisms are one factor: the mean over ER, IP, EX of the wanted yes or no, where weak and strong are yes
    (CoMAE §4.2). The user's emotion is not the reply's to realize.

    Args:
        plan: what was to be done.
        read: the reply with its readings.
        all_three: mechanisms count by their product instead, how likely none of the three is amiss.
    """
    parts = list[float]()
    if plan.mechanisms is not None:
        none = [_chance(read, name, LEVELS[0]) for name in MECHANISMS]
        if known := [
            1 - chance if name in plan.mechanisms else chance
            for name, chance in zip(MECHANISMS, none, strict=True)
            if chance is not None
        ]:
            parts.append(prod(known) if all_three else sum(known) / len(known))
    for head, wanted in (("act", plan.act), ("tone", plan.tone)):
        if wanted is not None and (chance := _chance(read, head, wanted)) is not None:
            parts.append(chance)
    return sum(parts) / len(parts) if parts else None


def _chance(read: Turn, head: str, label: str) -> float | None:
    """A label's probability; None where the head was not asked."""
    if (reading := read.reading(head)) is None:
        return None
    return next((score.probability for score in reading.scores if score.label == label), 0.0)
