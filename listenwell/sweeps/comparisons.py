"""Rows of a sweep against each other, item by item: gains in R@1, and CoMAE's Table 4.

A run of a ranker keeps the rank of every true reply; a run of CoMAE's family the rank of every test reply's
true factors (`papers.comae.training.RANKS`), each after the likeliest ones before it: where those are the
true ones, that is the paper's P(Y | X predicted).
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from listenwell.errors import InputError
from listenwell.evaluation.factor_prediction import (
    TASK,
    FactorPrediction,
    against,
    measure_planning,
    planning_conditions,
)
from listenwell.metrics import paired_bootstrap
from listenwell.rankers.scoring import RANKS
from listenwell.results.metric_registry import units
from listenwell.results.store import Result, environment, read_result
from listenwell.sweeps.grid import Sweep, SweepRun

SEED, DRAWS = 0, 10_000
FACTORS_FILE = "factors.npy"
BESIDE, AFTER = " ‖ ", " → "
_FIGURES = (
    *("cm_exact", "da_first", "da_share", "da_hits_1_after", "da_hits_3_after"),
    *("em_share", "em_hits_1_after", "em_hits_3_after"),
)


def compare(sweep: Sweep, ours: str, theirs: str) -> Result | None:
    """By how much a row finds more true replies first than another; None where runs are missing.

    An item's value is the share of seeds that found its true reply; items are drawn with replacement.
    """
    first, second = (_hits(sweep, row) for row in (ours, theirs))
    if first is None or second is None:
        return None
    if len(first) != len(second):
        raise InputError(
            f"{sweep.config.name}: {ours!r} and {theirs!r} measured different items.",
            "Give both the same test.",
        )
    gain = paired_bootstrap(list(first), list(second), SEED, DRAWS)
    result = read_result(next(run.result for run in sweep.runs if run.row == ours))
    figures = {"gain": gain.difference, "gain_low": gain.low, "gain_high": gain.high, "gain_p": gain.p}
    about: dict[str, Any] = environment() | {"commit": result.commit, "machine": result.machine}
    return Result(
        task=sweep.config.table or result.task,
        system=f"{ours} over {theirs}",
        metrics=tuple(figures.items()),
        corpus=result.corpus,
        split=result.split,
        count=len(first),
        data=result.data,
        units=units(tuple(figures)),
        conditions=(
            ("gain", "R@1 of the first minus R@1 of the second, percent points"),
            ("interval", f"95 %, paired bootstrap over items, {DRAWS:,} draws, seed {SEED}"),
            ("seeds", ", ".join(map(str, sweep.seeds_of(ours)))),
        ),
        checkpoint=result.checkpoint,
        **about,
    )


def _hits(sweep: Sweep, row: str) -> np.ndarray | None:
    """For each item how many of the seeds found its true reply, in percent; None where one is missing."""
    runs = [run for run in sweep.runs if run.row == row]
    if not runs:
        raise InputError(f"{sweep.config.name} has no row {row!r}.", "Correct `compare` in the sweep's file.")
    files: list[Path] = [run.recipe.output / RANKS for run in runs if run.is_finished()]
    if len(files) < len(runs) or not all(file.is_file() for file in files):
        return None
    ranks = [np.load(file, allow_pickle=False) for file in files]
    if len({len(array) for array in ranks}) > 1:
        raise InputError(
            f"{sweep.config.name}: the seeds of {row!r} measured different items.", "Run it again."
        )
    return np.asarray(100 * np.mean([array == 1 for array in ranks], axis=0))


def factor_prediction_pairs(sweep: Sweep) -> list[Result]:
    """Two rows of Table 4 for each pair X ‖ Y and X → Y whose first seeds are trained."""
    runs = {  # by the paper's name of a row, such as "DA ‖ EM" of "DA ‖ EM side by side (EmpTransfo)"
        run.row.split(" side by side")[0]: run
        for run in sweep.runs
        if run.seed == sweep.config.seeds[0]
        and run.is_finished()
        and (run.recipe.output / FACTORS_FILE).is_file()
    }
    results = []
    for member, run in runs.items():
        other = member.replace(BESIDE, AFTER) if BESIDE in member else member.replace(AFTER, BESIDE)
        if other != member and other in runs and len(member.split()) == 3:
            results.append(_row(run, member, runs[other], other))
    return results


def _row(run: SweepRun, member: str, beside: SweepRun, other: str) -> Result:
    base = read_result(run.result)
    mine, theirs = (read_ranks(each.recipe.output / FACTORS_FILE) for each in (run, beside))
    figures = {name: value for name, value in measure_planning(mine, theirs).items() if name in _FIGURES}
    conditions = {
        name: value for name, value in base.conditions if name not in ("hits and accuracies", "factors")
    }
    conditions |= planning_conditions(mine, other) | against(mine, theirs, other)
    return replace(
        base,
        task=TASK,
        system=member,
        metrics=tuple((name, round(value, 6)) for name, value in figures.items()),
        units=units(tuple(figures)),
        conditions=tuple(conditions.items()),
    )


def read_ranks(file: Path) -> list[FactorPrediction]:
    """A run's ranks: columns ER, IP, EX, act and emotion; 1 is the likeliest, 0 marks a factor it lacks."""
    try:
        ranks = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        raise InputError(f"{file} holds no ranks.", "Train the run again.") from None
    predictions = []
    for index, row in enumerate(ranks.tolist()):
        named = tuple(
            (level, row[column]) for level, column in (("act", 3), ("expressed_emotion", 4)) if row[column]
        )
        # Whether a mechanism was there is not kept: only whether the model was right about it.
        pairs = tuple((True, rank == 1) for rank in row[:3]) if row[0] else ()
        predictions.append(FactorPrediction(str(index), named, pairs))
    return predictions
