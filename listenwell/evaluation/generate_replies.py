"""`python -m listenwell.evaluation.generate_replies`: thousands of replies of a generator, on a machine that is bare.

replies makes replies.jsonl, which `listenwell evaluate --replies` measures elsewhere; perplexity and planning
write their results at once. Several workers share a GPU.
"""

import argparse
import sys
from pathlib import Path

from listenwell.corpora.sampling import Sampling
from listenwell.errors import InputError, ListenwellError
from listenwell.evaluation.generator_results import (
    Row,
    evaluate_perplexity,
    evaluate_planning,
    generate_all,
    keep_likelihood,
)
from listenwell.evaluation.systems import FACTORS, GOLD, PREDICTED, Asked, System
from listenwell.evaluation.workers import Job
from listenwell.results.store import file_name, write_result


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks; a known error becomes one line and exit code 1."""
    chosen = _parser().parse_args(arguments)
    try:
        _run(chosen)
    except ListenwellError as error:
        print(f"listenwell: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m listenwell.evaluation.generate_replies", description=__doc__
    )
    parser.add_argument("task", choices=("replies", "perplexity", "planning"))
    parser.add_argument("model", help="a generator's name, such as planned or comae")
    parser.add_argument("--weights", type=Path, help="a run, or a checkpoint")
    parser.add_argument("--recipe", type=Path, help="a YAML file with the generator's settings")
    parser.add_argument("--out", type=Path, required=True, help="the folder for replies and results")
    parser.add_argument("--factors", nargs="+", choices=FACTORS, default=[PREDICTED])
    parser.add_argument("--whole", action="store_true", help="the whole listener, not the generator alone")
    parser.add_argument("--without", nargs="+", default=[], help="of the whole listener: parts switched off")
    parser.add_argument("--likelihood", action="store_true", help="with replies: keep the perplexity too")
    parser.add_argument("--corpus", default="empathetic_dialogues")
    parser.add_argument("--split", default="test")
    parser.add_argument("--path", type=Path, help="the corpus's folder")
    parser.add_argument(
        "--annotated", type=Path, help="the folder of `listenwell annotate`, for gold factors"
    )
    parser.add_argument("--limit", type=int, help="a sample of this size")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--system", help="the row's name")
    parser.add_argument("--table", help="the table of the row, where it is not the usual one")
    parser.add_argument("--workers", type=int, default=1, help="processes that share the work")
    return parser


def _run(chosen: argparse.Namespace) -> None:
    who = System(
        chosen.model,
        chosen.weights,
        chosen.recipe,
        chosen.whole or bool(chosen.without),
        tuple(chosen.without),
    )
    asked = Asked(
        chosen.corpus, chosen.split, chosen.path, chosen.annotated, Sampling(chosen.limit, chosen.seed)
    )
    if chosen.likelihood and who.whole:
        raise InputError("--likelihood is of a generator alone.", "Leave out --whole and --without.")
    for factors in [GOLD] if chosen.task == "planning" else chosen.factors:
        # Replies of two kinds never stand in one folder; results have names of their own.
        several = chosen.task == "replies" and len(chosen.factors) > 1
        out = chosen.out / factors if several else chosen.out
        row = Row(Job(who, asked, factors, out), chosen.system, chosen.table, chosen.workers)
        if chosen.task == "replies":
            print(f"replies: {generate_all(row)}", flush=True)
            if chosen.likelihood:
                print(f"perplexity a token: {keep_likelihood(row).by_token:.3f}", flush=True)
            continue
        result = evaluate_perplexity(row) if chosen.task == "perplexity" else evaluate_planning(row)
        file = out / file_name(result)
        write_result(result, file)
        print(f"{result.system}: {dict(result.metrics)}\nresult: {file}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
