"""Preference pairs of the generator's own candidates: the one the reranker puts first against the last.

Best of n against worst of n, both sampled under one plan, so that the reranker's preferences are learned and
not a person's style. The replies come from a listener with one plan and several candidates.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from listenwell.dialogue import Candidate, Dialogue
from listenwell.errors import InputError, ListenwellError
from listenwell.generators.plans import is_whole
from listenwell.preference.pairs import pair_of
from listenwell.reranking.config import FAULTS, TOTAL
from listenwell.training.preference_pairs import Pair, read_lines

ON_POLICY = "on_policy"
"""Source of the rejected reply."""
GAP = 1.5
"""Least difference of the two totals: smaller ones may be noise."""


def on_policy_pairs(replies: Path, contexts: Mapping[str, Dialogue], gap: float = GAP) -> Iterator[Pair]:
    """A pair of every reply whose candidates differ enough.

    Args:
        replies: replies.jsonl with candidates.
        contexts: of the replies, by the example's id.
        gap: least difference of the two totals.
    """
    for number, line in read_lines(replies):
        try:
            data = json.loads(line)
            candidates = [Candidate.from_dict(candidate) for candidate in data["candidates"]]
            context = contexts[data["id"]]
        except (ValueError, TypeError, KeyError, ListenwellError) as error:
            raise InputError(
                f"{replies}:{number} holds no candidates of a reply to this corpus: {error}",
                "Make the replies with --whole, several candidates, and the same corpus and split.",
            ) from None
        yield from _pairs(context, candidates, gap)


def _pairs(context: Dialogue, candidates: Sequence[Candidate], gap: float) -> Iterator[Pair]:
    """The best and the worst candidate under one plan; none where even the best has a fault."""
    best = candidates[0]
    others = [candidate for candidate in candidates[1:] if candidate.plan == best.plan]
    if best.plan is None or not is_whole(best.plan) or not others:
        return
    scores, worst = dict(best.scores), others[-1]
    if any(scores.get(fault) for fault in FAULTS) or scores[TOTAL] - dict(worst.scores)[TOTAL] < gap:
        return
    yield from pair_of(context, best.plan, best.text, worst.text, ON_POLICY)
