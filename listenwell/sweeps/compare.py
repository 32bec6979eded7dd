"""One row of a study against another, item by item: the gain and its confidence interval."""

from pathlib import Path

import numpy as np

from listenwell.errors import InputError
from listenwell.metrics import paired_bootstrap
from listenwell.rankers.scoring import RANKS
from listenwell.results.metric_registry import units
from listenwell.results.store import Result, environment, read_result
from listenwell.sweeps.grid import Plan

SEED, DRAWS = 0, 10_000


def compare(plan: Plan, ours: str, theirs: str) -> Result | None:
    """By how much a row finds more true replies first than another; None where runs are missing.

    An item's value is the share of seeds that found its true reply; items are drawn with replacement.

    Args:
        plan: the study, whose runs kept the rank of every true reply.
        ours: a row.
        theirs: the row it is compared with.
    """
    found = {row: _hits(plan, row) for row in (ours, theirs)}
    first, second = found[ours], found[theirs]
    if first is None or second is None:
        return None
    if len(first) != len(second):
        raise InputError(
            f"{plan.sweep.name}: {ours!r} and {theirs!r} measured different items.",
            "Give both the same test.",
        )
    gain = paired_bootstrap(list(first), list(second), SEED, DRAWS)
    one = read_result(next(run.result for run in plan.runs if run.row == ours))
    figures = {"gain": gain.difference, "gain_low": gain.low, "gain_high": gain.high, "gain_p": gain.p}
    about = environment() | {"commit": one.commit, "machine": one.machine}
    return Result(
        task=plan.sweep.table or one.task,
        system=f"{ours} over {theirs}",
        metrics=tuple(figures.items()),
        corpus=one.corpus,
        split=one.split,
        count=len(first),
        data=one.data,
        units=units(tuple(figures)),
        conditions=(
            ("gain", "R@1 of the first minus R@1 of the second, percent points"),
            ("interval", f"95 %, paired bootstrap over items, {DRAWS:,} draws, seed {SEED}"),
            ("seeds", ", ".join(map(str, plan.seeds_of(ours)))),
        ),
        checkpoint=one.checkpoint,
        **about,  # type: ignore[arg-type]
    )


def _hits(plan: Plan, row: str) -> np.ndarray | None:
    """For each item how many of the seeds found its true reply, in percent; None where one is missing."""
    runs = [run for run in plan.runs if run.row == row]
    if not runs:
        raise InputError(f"{plan.sweep.name} has no row {row!r}.", "Correct `compare` in the study's file.")
    files: list[Path] = [run.recipe.output / RANKS for run in runs if run.is_finished()]
    if len(files) < len(runs) or not all(file.is_file() for file in files):
        return None
    ranks = [np.load(file, allow_pickle=False) for file in files]
    if len({len(array) for array in ranks}) > 1:
        raise InputError(
            f"{plan.sweep.name}: the seeds of {row!r} measured different items.", "Run it again."
        )
    return np.asarray(100 * np.mean([array == 1 for array in ranks], axis=0))
