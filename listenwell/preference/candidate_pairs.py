"""Preference pairs of two candidates of a generator for one context, by the reranker or by ratings.

On-policy pairs set the candidate that the reranker puts first against the last, both sampled under one plan,
so that the reranker's preferences are learned and not a person's style. Rated pairs set two rated replies
against each other, each with the plan it was made under. Tuning on ratings alone makes a generator keep less
to its plans. Plan-drift pairs counter it: two replies that were rated alike and planned differently stand
against each other, both under the plan of one of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from listenwell.conversation_state import with_state
from listenwell.dialogue import MANNER, Dialogue, Example, Factors, Turn
from listenwell.errors import InputError
from listenwell.generators.plans import is_whole, known_plans
from listenwell.labels import MANNERS
from listenwell.preference.pairs import pair_of
from listenwell.preference.rating_sheets import candidates_of
from listenwell.preference.ratings import RatedContext
from listenwell.reranking.config import FAULTS, TOTAL
from listenwell.training.preference_pairs import Pair

ON_POLICY, RATED, PLAN_DRIFT = "on_policy", "rated", "plan_drift"
"""Sources of the rejected reply."""
WRITER, NEGATIVE = "writer", "negative"
"""Systems of ratings: who wrote our own conversations, and hard negatives written to their replies."""
WRITER_GAP = 1.5
PLAIN = MANNERS[1]
TOTAL_GAP, GAP = 1.5, 1.0
"""Least difference of the reranker's totals, or of the overall ratings: smaller ones may be noise."""
EACH = 3
"""Pairs of a context at most: more would let few contexts dominate."""
NEAR = 0.5
"""Replies whose ratings differ by no more are rated alike."""


def on_policy_pairs(
    replies: Path, contexts: Mapping[str, Dialogue], gap: float = TOTAL_GAP
) -> Iterator[Pair]:
    """The best and the worst candidate under the best one's plan; none where even the best has a fault.

    Args:
        replies: replies.jsonl of a listener with one plan and several candidates.
        contexts: of the replies, by the example's id.
        gap: least difference of the two totals.
    """
    for name, (best, *others) in candidates_of(replies).items():
        if name not in contexts:
            advice = "Name the corpus and split of these replies."
            raise InputError(f"{replies.name} replies to {name}, which the corpus does not have.", advice)
        alike = [candidate for candidate in others if candidate.plan == best.plan]
        if best.plan is None or not is_whole(best.plan) or not alike:
            continue
        scores, worst = dict(best.scores), alike[-1]
        if any(scores.get(fault) for fault in FAULTS) or scores[TOTAL] - dict(worst.scores)[TOTAL] < gap:
            continue
        yield from pair_of(contexts[name], best.plan, best.text, worst.text, ON_POLICY)


def rated_pairs(context: Dialogue, rated: RatedContext, gap: float = GAP, each: int = EACH) -> Iterator[Pair]:
    """The pairs of a context's planned replies whose ratings differ most, `each` at most."""
    couples = [couple for couple in combinations(_planned(rated), 2) if couple[0][0] - couple[1][0] >= gap]
    couples.sort(key=lambda couple: couple[1][0] - couple[0][0])
    for (_, chosen, plan), (_, rejected, other) in couples[:each]:
        for pair in pair_of(context, plan, chosen, rejected, RATED):
            yield replace(pair, rejected_plan=other if other != plan else None)


def plan_drift_pairs(context: Dialogue, rated: RatedContext, each: int) -> Iterator[Pair]:
    """Replies rated alike, the best first, each under its own plan against the other's; `each` at most."""
    pairs: list[Pair] = []
    for first, second in combinations(_planned(rated), 2):
        # A reply that carries out one of these plans can hardly carry out the other.
        differ = first[2].act != second[2].act and first[2].mechanisms != second[2].mechanisms
        if first[0] - second[0] <= NEAR and differ:
            for (_, chosen, plan), (_, drifted, _) in ((first, second), (second, first)):
                pairs += pair_of(context, plan, chosen, drifted, PLAN_DRIFT)
    yield from pairs[:each]


def plain_and_stateful(context: Dialogue) -> Dialogue:
    """A context in the plain manner, with its state."""
    return replace(with_state(context), notes=(*with_state(context).notes, (MANNER, PLAIN)))


def writer_pairs(contexts: Sequence[tuple[Dialogue, RatedContext]]) -> Iterator[Pair]:
    """The writers' replies of our own conversations against the worst sample and against hard negatives.

    Their plans are predicted by the annotators; a hard negative stands under the plan of the writer's reply.
    """
    written = [
        (context, rated, reply)
        for context, rated in contexts
        for reply in rated.replies
        if WRITER in reply.systems and reply.text
    ]
    examples = [
        Example(replace(context, emotion=None), Turn(context.listener, str(reply.text)))
        for context, _, reply in written
    ]
    for (context, rated, best), (_, plan) in zip(written, known_plans(examples), strict=True):
        worse = [reply for reply in rated.replies if best.overall - reply.overall >= WRITER_GAP]
        sampled = min((reply for reply in worse if reply.plan), key=lambda reply: reply.overall, default=None)
        if sampled and sampled.plan and is_whole(sampled.plan):
            for pair in pair_of(context, plan, best.text, sampled.text, WRITER):
                yield replace(pair, rejected_plan=sampled.plan if sampled.plan != plan else None)
        for reply in worse:
            if any(system.startswith(NEGATIVE) for system in reply.systems):
                yield from pair_of(context, plan, best.text, reply.text, NEGATIVE)


def _planned(rated: RatedContext) -> list[tuple[float, str, Factors]]:
    """Overall rating, text and plan of the replies that have a plan, the best first; a person's has none."""
    planned = [
        (reply.overall, reply.text, reply.plan)
        for reply in rated.replies
        if reply.text is not None and reply.plan is not None and is_whole(reply.plan)
    ]
    return sorted(planned, key=lambda reply: -reply[0])
