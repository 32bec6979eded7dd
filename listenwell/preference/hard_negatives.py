"""Hard negatives: pairs of a fitting reply and one that is wrong in a way generators are.

Replies of other conversations are too easy: what a generator says is always on topic. Both replies of a pair
are a person's, or both the generator's own, so that style does not give the answer away:

- `again`: a person's reply, and what they said earlier in the same conversation.
- `other`: a person's reply, and a person's reply to somebody else under the same plan.
- `mistaken`: the generator's reply under the person's plan, and under a plan for the opposite emotion.
- `forgot`: the generator's reply to the whole context, and to its last turn alone.
- `elsewhere`: the generator's reply, and its reply to somebody else with the same emotion.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from listenwell.dialogue import Example, Factors
from listenwell.labels import EMOTIONS, MIXED, PLEASANT
from listenwell.preference.pairs import Batch, PlannedReply, pair_of
from listenwell.training.preference_pairs import OTHER, Pair, conversation_key

AGAIN, MISTAKEN, FORGOT, ELSEWHERE = "again", "mistaken", "forgot", "elsewhere"
_OFFSET = 10_000_000
"""Keeps the seeds of one context's replies apart."""


def hard_negative_pairs(batch: Batch) -> Iterator[Pair]:
    """All pairs of a batch, by the types above."""
    contexts, indices, generator = batch.replies, batch.indices, batch.own
    fitting = generator.replies(contexts, indices)
    wrong = [(contexts[number][0], _opposite(batch, index)) for number, index in enumerate(indices)]
    mistaken = generator.replies(wrong, [index + _OFFSET for index in indices])
    long = [number for number, (example, _) in enumerate(contexts) if len(example.context.turns) > 2]
    short = [(_last_turn(contexts[number][0]), contexts[number][1]) for number in long]
    last_only = generator.replies(short, [indices[number] + 2 * _OFFSET for number in long]) if short else []
    forgot = dict(zip(long, last_only, strict=True))
    for number, (index, (example, plan)) in enumerate(zip(indices, contexts, strict=True)):
        context, reply = example.context, example.reply.text
        earlier = [turn.text for turn in context.turns if turn.speaker == context.listener]
        candidates = (
            (reply, earlier[-1] if earlier else None, AGAIN),
            (reply, batch.others.find(index, batch.seed), OTHER),
            (fitting[number], mistaken[number], MISTAKEN),
            (fitting[number], forgot.get(number), FORGOT),
            (fitting[number], _elsewhere(contexts, fitting, number), ELSEWHERE),
        )
        for chosen, rejected, source in candidates:
            yield from pair_of(context, plan, chosen, rejected, source)


def opposites(emotion: str) -> frozenset[str]:
    """The emotions of the other side; of those that can be either, all but itself."""
    if emotion in MIXED:
        return frozenset(EMOTIONS) - {emotion}
    same = PLEASANT if emotion in PLEASANT else frozenset(EMOTIONS) - PLEASANT
    return frozenset(EMOTIONS) - same - MIXED


def _opposite(batch: Batch, index: int) -> Factors:
    """The plan of a reply to the opposite emotion; any other plan where there is none."""
    plans = [plan for _, plan in batch.planned]
    first = int(np.random.default_rng([batch.seed, 41, index]).integers(len(plans)))
    far, rotated = opposites(plans[index].emotion or ""), [*plans[first:], *plans[:first]]
    return next((plan for plan in rotated if plan.emotion in far), rotated[-1])


def _last_turn(example: Example) -> Example:
    return replace(example, context=replace(example.context, turns=example.context.turns[-1:]))


def _elsewhere(contexts: Sequence[PlannedReply], replies: Sequence[str | None], number: int) -> str | None:
    """Of this batch, the next reply to somebody else with the same emotion."""
    keys = [(conversation_key(example.context), plan.emotion) for example, plan in contexts]
    conversation, emotion = keys[number]
    others = (*range(number + 1, len(contexts)), *range(number))
    is_alike = [key != conversation and other == emotion for key, other in keys]
    return next((replies[other] for other in others if is_alike[other]), None)
