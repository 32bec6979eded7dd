"""Pairs to learn from by contrast: of a speaker's own replies to a context, two that raters told apart.

`python -m listenwell.preference.rated_pairs RATINGS… --split train --out FILE` reads folders of
`preference.ratings` with a listener's candidates, and writes a `rejected.Pair` a line, on a bare machine too.
Each reply keeps the plan that it was made under.

Who learns only what is liked forgets what was planned. With `--strayed`, two replies that are liked alike and
were planned to do different things stand against each other too, both under the plan of one of them.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from listenwell.dialogue import Dialogue, Factors
from listenwell.errors import ListenwellError
from listenwell.generators.plans import is_whole
from listenwell.preference.pairs import Pair, add_pairs, pair_of
from listenwell.preference.ratings import Rated, rated_contexts

RATED = "rated"
"""Where such a pair's rejected reply comes from."""
PLAN_DRIFT = "plan_drift"
"""And of one that does something else than its pair's plan."""
GAP = 1.0
"""In points of the raters' last scale: nearer ones differ by chance."""
EACH = 3
"""So many pairs of a context: more would make few contexts count for most."""


NEAR = 0.5
"""Replies whose ratings are no farther apart are liked alike."""

_Known = tuple[float, str, Factors]


def rated_pairs(context: Dialogue, rated: Rated, gap: float = GAP, each: int = EACH) -> Iterator[Pair]:
    """The pairs of one context's replies with plans that differ most.

    Args:
        context: what was replied to.
        rated: the replies, and what raters said of them.
        gap: least difference of the two overall ratings.
        each: so many at most.
    """
    couples = combinations(_known(rated), 2)
    apart = [(better, worse) for better, worse in couples if better[0] - worse[0] >= gap]
    apart.sort(key=lambda pair: pair[1][0] - pair[0][0])
    for (_, chosen, plan), (_, rejected, other) in apart[:each]:
        for pair in pair_of(context, plan, chosen, rejected, RATED):
            yield replace(pair, rejected_plan=other if other != plan else None)


def plan_drift_pairs(context: Dialogue, rated: Rated, each: int) -> Iterator[Pair]:
    """Replies that are liked alike, the best ones first, each under its own plan against the other's words.

    Args:
        context: what was replied to.
        rated: the replies, and what raters said of them.
        each: so many at most.
    """
    found: list[Pair] = []
    for one, other in combinations(_known(rated), 2):
        if one[0] - other[0] <= NEAR and _differ(one[2], other[2]):
            for (_, chosen, plan), (_, plan_drift, _) in ((one, other), (other, one)):
                found += pair_of(context, plan, chosen, plan_drift, PLAN_DRIFT)
    yield from found[:each]


def _known(rated: Rated) -> list[_Known]:
    """Ratings, words and plans of replies that have one, the best first; a person's has none."""
    known = [
        (float(rated.mean(shown)[-1]), shown.text, shown.plan)
        for shown in rated.entry.replies
        if shown.plan is not None and is_whole(shown.plan)
    ]
    return sorted(known, key=lambda one: -one[0])


def _differ(one: Factors, other: Factors) -> bool:
    """Whether words that do the one can hardly do the other."""
    return one.act != other.act and one.mechanisms != other.mechanisms


def main(arguments: Sequence[str] | None = None) -> int:
    """Make pairs as the command line says; gives the exit status."""
    parser = argparse.ArgumentParser(prog="python -m listenwell.preference.rated_pairs", description=__doc__)
    parser.add_argument("ratings", nargs="+", type=Path, help="folders of listenwell.preference.ratings")
    parser.add_argument("--split", default="train", help="which part of the corpus they answer")
    parser.add_argument("--gap", type=float, default=GAP, help="least difference of the two ratings")
    parser.add_argument("--each", type=int, default=EACH, help="so many pairs of a context at most")
    parser.add_argument(
        "--plan-drift", type=int, default=0, help="so many besides that keep to plans, of a context"
    )
    parser.add_argument("--out", type=Path, required=True, help="the JSONL file; goes after what it holds")
    asked = parser.parse_args(arguments)
    try:
        contexts = rated_contexts(asked.ratings, asked.split)
        pairs = list[Pair]()
        for context, one in contexts:
            pairs += rated_pairs(context, one, asked.gap, asked.each)
            pairs += plan_drift_pairs(context, one, asked.plan_drift)
        add_pairs(asked.out, pairs)
    except ListenwellError as error:
        print(f"listenwell: {error}", file=sys.stderr)
        return 1
    found = Counter(pair.source for pair in pairs)
    kinds = (
        ", ".join(f"{found[source]:,} {source}" for source in (RATED, PLAN_DRIFT) if source in found) or "no"
    )
    print(f"{asked.out}: {kinds} pairs of {len(contexts):,} contexts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
