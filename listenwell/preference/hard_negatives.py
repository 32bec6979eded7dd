"""Pairs that teach a judge what a generator gets wrong: a fitting reply, and beside it one that is near.

Replies of other talks are too easy: what a generator says is always about the matter. What is set against each
other here are a person's replies, or the speaker's own, so that no style gives the answer away:

- `again`: what the person said at this place, and what they said earlier in the same talk: the talk went on.
- `other`: what the person said, and what a person said to somebody else, to do and express the same.
- `mistaken`: the speaker's own reply under the person's plan, and under a plan for the opposite feeling.
- `forgot`: the speaker's own reply to the whole talk, and to its last turn alone.
- `elsewhere`: the speaker's own reply, and its own reply to somebody else who felt the same.

`python -m listenwell.preference.hard_negatives CHECKPOINT …` writes a `rejected.Pair` a line, as `rejected` does.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from listenwell.dialogue import Example, Factors
from listenwell.labels import EMOTIONS, MIXED, PLEASANT
from listenwell.preference.pairs import OTHER, Others, Own, Pair, Planned, main, pair_of, talk_of

AGAIN, MISTAKEN, FORGOT, ELSEWHERE = "again", "mistaken", "forgot", "elsewhere"
_FAR = 10_000_000
"""Apart from each other: the numbers that fix what is drawn for one place."""


def hard_negative_pairs(
    known: Sequence[Planned], places: Sequence[int], own: Own, others: Others, seed: int
) -> Iterator[Pair]:
    """All pairs of some places; see above. A `rejected.Pairing`."""
    asked = [known[place] for place in places]
    fitting = own.replies(asked, places)
    wrong = [
        (example, _opposite(known, place, seed)) for place, (example, _) in zip(places, asked, strict=True)
    ]
    mistaken = own.replies(wrong, [place + _FAR for place in places])
    long = [number for number, (example, _) in enumerate(asked) if len(example.context.turns) > 2]
    short = [(_last_turn(asked[number][0]), asked[number][1]) for number in long]
    late = own.replies(short, [places[number] + 2 * _FAR for number in long]) if short else []
    forgot = dict(zip(long, late, strict=True))
    for number, (place, (example, plan)) in enumerate(zip(places, asked, strict=True)):
        context, said = example.context, example.reply.text
        earlier = [turn.text for turn in context.turns if turn.speaker == context.listener]
        found = (
            (said, earlier[-1] if earlier else None, AGAIN),
            (said, others.find(place, seed), OTHER),
            (fitting[number], mistaken[number], MISTAKEN),
            (fitting[number], forgot.get(number), FORGOT),
            (fitting[number], _elsewhere(asked, fitting, number), ELSEWHERE),
        )
        for chosen, rejected, source in found:
            yield from pair_of(context, plan, chosen, rejected, source)


def opposites(emotion: str) -> frozenset[str]:
    """The emotions of the other side; of those that can be either, all but itself."""
    if emotion in MIXED:
        return frozenset(EMOTIONS) - {emotion}
    same = PLEASANT if emotion in PLEASANT else frozenset(EMOTIONS) - PLEASANT
    return frozenset(EMOTIONS) - same - MIXED


def _opposite(known: Sequence[Planned], place: int, seed: int) -> Factors:
    """The plan of a reply to somebody who felt the opposite; any other plan where nobody did."""
    far = opposites(known[place][1].emotion or "")
    random = np.random.default_rng([seed, 41, place])
    first = int(random.integers(len(known)))
    for other in (*range(first, len(known)), *range(first)):
        plan: Factors = known[other][1]
        if plan.emotion in far:
            return plan
    return plan


def _last_turn(example: Example) -> Example:
    """The same as if nothing had been said before the last turn."""
    return replace(example, context=replace(example.context, turns=example.context.turns[-1:]))


def _elsewhere(asked: Sequence[Planned], replies: Sequence[str | None], number: int) -> str | None:
    """Of this batch, the next reply to somebody else who felt the same."""
    example, plan = asked[number]
    for other in (*range(number + 1, len(asked)), *range(number)):
        of_other, felt = asked[other][0], asked[other][1].emotion
        if felt == plan.emotion and talk_of(of_other.context) != talk_of(example.context):
            found: str | None = replies[other]
            return found
    return None


if __name__ == "__main__":
    sys.exit(main(pairing=hard_negative_pairs, module="listenwell.preference.hard_negatives"))
