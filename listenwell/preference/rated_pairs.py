"""Preference pairs of two rated replies of a generator to one context, each with the plan it was made under.

Tuning on ratings alone makes a generator keep less to its plans. Plan-drift pairs counter it: two replies
that were rated alike and planned differently stand against each other, both under the plan of one of them.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from listenwell.dialogue import Dialogue, Factors
from listenwell.generators.plans import is_whole
from listenwell.preference.pairs import pair_of
from listenwell.preference.ratings import RatedContext
from listenwell.training.preference_pairs import Pair

RATED, PLAN_DRIFT = "rated", "plan_drift"
"""Sources of the rejected reply."""
GAP = 1.0
"""Least difference of the two overall ratings: smaller ones may be noise."""
EACH = 3
"""Pairs of a context at most: more would let few contexts dominate."""
NEAR = 0.5
"""Replies whose ratings differ by no more are rated alike."""

_Planned = tuple[float, str, Factors]


def rated_pairs(context: Dialogue, rated: RatedContext, gap: float = GAP, each: int = EACH) -> Iterator[Pair]:
    """The pairs of a context's planned replies whose ratings differ most.

    Args:
        context: what was replied to.
        rated: the replies and their ratings.
        gap: least difference of the two overall ratings.
        each: pairs at most.
    """
    couples = [couple for couple in combinations(_planned(rated), 2) if couple[0][0] - couple[1][0] >= gap]
    couples.sort(key=lambda couple: couple[1][0] - couple[0][0])
    for (_, chosen, plan), (_, rejected, other) in couples[:each]:
        for pair in pair_of(context, plan, chosen, rejected, RATED):
            yield replace(pair, rejected_plan=other if other != plan else None)


def plan_drift_pairs(context: Dialogue, rated: RatedContext, each: int) -> Iterator[Pair]:
    """Replies rated alike, the best first, each under its own plan against the other's words.

    Args:
        context: what was replied to.
        rated: the replies and their ratings.
        each: pairs at most.
    """
    pairs: list[Pair] = []
    for first, second in combinations(_planned(rated), 2):
        if first[0] - second[0] <= NEAR and _differ(first[2], second[2]):
            for (_, chosen, plan), (_, drifted, _) in ((first, second), (second, first)):
                pairs += pair_of(context, plan, chosen, drifted, PLAN_DRIFT)
    yield from pairs[:each]


def _planned(rated: RatedContext) -> list[_Planned]:
    """Overall rating, text and plan of the replies that have a plan, the best first; a person's has none."""
    planned = [
        (reply.overall, reply.text, reply.plan)
        for reply in rated.replies
        if reply.text is not None and reply.plan is not None and is_whole(reply.plan)
    ]
    return sorted(planned, key=lambda reply: -reply[0])


def _differ(first: Factors, second: Factors) -> bool:
    """Whether a reply that carries out the one plan can hardly carry out the other."""
    return first.act != second.act and first.mechanisms != second.mechanisms
