"""Pairs to learn from by contrast: of a speaker's own replies to a context, two that raters told apart.

`python -m listenwell.evaluation.rated_pairs RATINGS… --split train --out FILE` reads folders of
`evaluation.ratings` with a listener's candidates, and writes a `rejected.Pair` a line, on a bare machine too.
Each reply keeps the plan that it was made under.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from listenwell.dialogue import Dialogue
from listenwell.errors import ListenwellError
from listenwell.evaluation.ratings import Rated, rated_contexts
from listenwell.generators.plans import is_whole
from listenwell.generators.rejected import Pair, add_pairs, pair_of

RATED = "rated"
"""Where such a pair's rejected reply comes from."""
GAP = 1.0
"""In points of the raters' last scale: nearer ones differ by chance."""
EACH = 3
"""So many pairs of a context: more would make few contexts count for most."""


def rated_pairs(context: Dialogue, rated: Rated, gap: float = GAP, each: int = EACH) -> Iterator[Pair]:
    """The pairs of one context's replies with plans that differ most.

    Args:
        context: what was replied to.
        rated: the replies, and what raters said of them.
        gap: least difference of the two overall ratings.
        each: so many at most.
    """
    known = [
        (float(rated.mean(shown)[-1]), shown.text, shown.plan)
        for shown in rated.entry.replies
        if shown.plan is not None and is_whole(shown.plan)  # a person's has none
    ]
    known.sort(key=lambda one: -one[0])
    apart = [(better, worse) for better, worse in combinations(known, 2) if better[0] - worse[0] >= gap]
    apart.sort(key=lambda pair: pair[1][0] - pair[0][0])
    for (_, chosen, plan), (_, rejected, other) in apart[:each]:
        for pair in pair_of(context, plan, chosen, rejected, RATED):
            yield replace(pair, rejected_plan=other if other != plan else None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make pairs as the command line says; gives the exit status."""
    parser = argparse.ArgumentParser(prog="python -m listenwell.evaluation.rated_pairs", description=__doc__)
    parser.add_argument("ratings", nargs="+", type=Path, help="folders of listenwell.evaluation.ratings")
    parser.add_argument("--split", default="train", help="which part of the corpus they answer")
    parser.add_argument("--gap", type=float, default=GAP, help="least difference of the two ratings")
    parser.add_argument("--each", type=int, default=EACH, help="so many pairs of a context at most")
    parser.add_argument("--out", type=Path, required=True, help="the JSONL file; goes after what it holds")
    asked = parser.parse_args(arguments)
    try:
        contexts = rated_contexts(asked.ratings, asked.split)
        pairs = [
            pair for context, one in contexts for pair in rated_pairs(context, one, asked.gap, asked.each)
        ]
        add_pairs(asked.out, pairs)
    except ListenwellError as error:
        print(f"listenwell: {error}", file=sys.stderr)
        return 1
    print(f"{asked.out}: {len(pairs):,} {RATED} pairs of {len(contexts):,} contexts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
