"""`python -m listenwell.rankers RUN … --out FOLDER`: scores of every pool, on a machine that is bare.

`listenwell evaluate rankers` and `listenwell ensemble` find them there and need no second hour for them. With
--ensemble the runs are joined to one here, by the same functions, and its row of the ledger is written beside
the scores.
"""

import argparse
import sys
from pathlib import Path

from listenwell.errors import ListenwellError
from listenwell.evaluation.metrics import recall_at
from listenwell.rankers.ensemble import load_witness
from listenwell.rankers.scoring import Pools, pool_scores, ranks


def main() -> None:
    """Do what the command line asks."""
    chosen = _parser().parse_args()
    for folder in chosen.run:
        witness = load_witness(folder)
        for split in chosen.split:
            for shuffled in (True, False) if chosen.unshuffled and split == "test" else (True,):
                given = Pools(chosen.corpus, split, shuffled, most=chosen.pools)
                found = recall_at(ranks(pool_scores(witness, given, chosen.out)), 1)
                print(f"{folder}: {given}: R@1 {found:.2f}", flush=True)
    if chosen.ensemble:
        _join(chosen)


def _join(chosen: argparse.Namespace) -> None:
    """Fit an ensemble of the runs on validation pools, and measure it on the test split's."""
    from listenwell.evaluation.ledger import file_name, write_result
    from listenwell.evaluation.ranking import evaluate_rankers, fit_ensemble

    joined = fit_ensemble(
        chosen.run, Pools(chosen.corpus, "valid", most=chosen.pools), chosen.out, chosen.ensemble
    )
    for folder, weight in zip(chosen.run, joined.weights, strict=True):
        print(f"{weight:10.4f}  {folder}", flush=True)
    # Neighbours are measured too where all pools are.
    given = Pools(chosen.corpus, most=None if chosen.unshuffled else chosen.pools)
    result = evaluate_rankers([joined], "Ensemble", given, chosen.out)
    write_result(result, chosen.out / file_name(result))
    print(f"{result.system}: R@1 {result.metric('R@1'):.2f}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m listenwell.rankers", description=__doc__)
    parser.add_argument("run", type=Path, nargs="+", help="or a checkpoint")
    parser.add_argument("--out", type=Path, required=True, help="the folder for the scores")
    parser.add_argument("--corpus", default="empathetic_dialogues")
    parser.add_argument("--split", nargs="+", default=["valid", "test"])
    parser.add_argument("--pools", type=int, help="only so many pools of each split")
    parser.add_argument("--unshuffled", action="store_true", help="the test split's neighbours too")
    parser.add_argument("--ensemble", type=Path, help="join the runs here, and measure that")
    return parser


if __name__ == "__main__":
    try:
        main()
    except ListenwellError as error:
        print(f"listenwell: {error}", file=sys.stderr)
        sys.exit(1)
