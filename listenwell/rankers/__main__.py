"""`python -m listenwell.rankers RUN … --out FOLDER`: scores of every pool, on a machine that is bare.

`listenwell evaluate rankers` and `listenwell ensemble` find them there and need no second hour for them.
"""

import argparse
import sys
from pathlib import Path

from listenwell.errors import ListenwellError
from listenwell.metrics import recall_at
from listenwell.papers.rankers.ensemble import load_scorer
from listenwell.rankers.scoring import Pools, pool_scores, ranks

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m listenwell.rankers", description=__doc__)
    parser.add_argument("run", type=Path, nargs="+", help="or a checkpoint")
    parser.add_argument("--out", type=Path, required=True, help="the folder for the scores")
    parser.add_argument("--corpus", default="empathetic_dialogues")
    parser.add_argument("--split", nargs="+", default=["valid", "test"])
    parser.add_argument("--pools", type=int, help="only so many pools of each split")
    parser.add_argument("--unshuffled", action="store_true", help="the test split's neighbours too")
    chosen = parser.parse_args()
    try:
        for folder in chosen.run:
            scorer = load_scorer(folder)
            for split in chosen.split:
                for shuffled in (True, False) if chosen.unshuffled and split == "test" else (True,):
                    given = Pools(chosen.corpus, split, shuffled, most=chosen.pools)
                    found = recall_at(ranks(pool_scores(scorer, given, chosen.out)), 1)
                    print(f"{folder}: {given}: R@1 {found:.2f}", flush=True)
    except ListenwellError as error:
        print(f"listenwell: {error}", file=sys.stderr)
        sys.exit(1)
