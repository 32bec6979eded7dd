"""`python -m listenwell.preference.pairwise_accuracy PAIRS`: how often a judge of replies takes the wrong one of two.

The pairs are those of `python -m listenwell.preference.hard_negatives`, of a split that nobody learned from. A
reader learns from such pairs, a ranker from whole pools: what each of them overlooks stands side by side.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from listenwell.errors import InputError, ListenwellError
from listenwell.files import hash_files
from listenwell.preference.pairs import Pair, read_pairs
from listenwell.rankers.ensemble import load_scorer
from listenwell.rankers.ranker import READER
from listenwell.rankers.scorer import Scorer
from listenwell.results.metric_registry import units
from listenwell.results.store import Result, environment, file_name, write_result

READING, ERRORS = "reading", "pair_errors"


def errors_by_kind(pairs: Sequence[Pair], margins: np.ndarray) -> dict[str, float]:
    """In percent of the pairs, in all and of each kind, those whose wrong reply is not below the other.

    Args:
        pairs: a fitting reply and a wrong one each.
        margins: how far the fitting one is above: (pairs,).
    """
    if not pairs:
        raise InputError("There is no pair to measure on.", "Make some: listenwell.preference.hard_negatives")
    wrong, kinds = margins <= 0, np.array([pair.source for pair in pairs])
    by_kind = {
        f"{ERRORS} {kind}": 100 * float(wrong[kinds == kind].mean()) for kind in sorted(set(kinds.tolist()))
    }
    return {ERRORS: 100 * float(wrong.mean()), **by_kind}


def evaluate_reading(scorer: Scorer, system: str, file: Path, corpus: str, split: str) -> Result:
    """One row of the ledger.

    Args:
        witness: a reader or any other ranker.
        system: the row's name.
        file: the pairs.
        corpus: what they were made from.
        split: which part of it.
    """
    pairs = read_pairs(file)
    kinds = Counter(pair.source for pair in pairs)  # who made them, the file does not say
    scores = [scorer.score([pair.context], [pair.chosen, pair.rejected])[0] for pair in pairs]
    figures = errors_by_kind(pairs, np.array([fitting - wrong for fitting, wrong in scores]))
    return Result(
        task=READING,
        system=system,
        metrics=tuple(figures.items()),
        corpus=corpus,
        split=split,
        count=len(pairs),
        data=hash_files([file]),
        units=units(tuple(figures)),
        conditions=(
            ("judge", scorer.name),
            ("pairs", ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))),
        ),
        checkpoint=scorer.key,
        **environment(),  # type: ignore[arg-type]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure as the command line says; gives the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m listenwell.preference.pairwise_accuracy", description=__doc__
    )
    parser.add_argument("pairs", type=Path, help="JSONL of listenwell.preference.hard_negatives")
    parser.add_argument("--ranker", type=Path, default=READER, help="a run, or a checkpoint")
    parser.add_argument("--system", default="reader", help="the row's name")
    parser.add_argument("--corpus", default="empathetic_dialogues", help="what the pairs were made from")
    parser.add_argument("--split", default="test", help="which part of it")
    parser.add_argument("--keep", type=Path, required=True, help="the folder for the result")
    asked = parser.parse_args(arguments)
    try:
        scorer = load_scorer(asked.ranker)
        result = evaluate_reading(scorer, asked.system, asked.pairs, asked.corpus, asked.split)
        write_result(result, asked.keep / file_name(result))
    except ListenwellError as error:
        print(f"listenwell: {error}", file=sys.stderr)
        return 1
    print(f"{result.system}: {dict(result.metrics)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
