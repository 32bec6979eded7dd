"""CoMAE's Table 4 from a study's runs: what each of two models foretells where both foretell what is before.

A run of the family leaves the rank of every test reply's true factors (`papers.comae.training.RANKS`), each after
the likeliest ones before it: where those are the true ones, that is the paper's P(Y | X foretold).
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from listenwell.errors import InputError
from listenwell.evaluation.factor_prediction import (
    TASK,
    FactorPrediction,
    against,
    measure_planning,
    planning_conditions,
)
from listenwell.results.metric_registry import units
from listenwell.results.store import Result, read_result
from listenwell.sweeps.grid import Plan, Run

FACTORS_FILE = "factors.npy"
BESIDE, AFTER = " ‖ ", " → "
_FIGURES = (
    *("cm_exact", "da_first", "da_share", "da_hits_1_after", "da_hits_3_after"),
    *("em_share", "em_hits_1_after", "em_hits_3_after"),
)


def factor_prediction_pairs(plan: Plan) -> list[Result]:
    """Two rows of Table 4 for each pair X ‖ Y and X → Y whose first seeds are trained."""
    runs = {_member(run): run for run in plan.runs if run.seed == plan.sweep.seeds[0] and _is_there(run)}
    found = []
    for member, run in runs.items():
        other = member.replace(BESIDE, AFTER) if BESIDE in member else member.replace(AFTER, BESIDE)
        if other != member and other in runs and len(member.split()) == 3:
            found.append(_row(run, member, runs[other], other))
    return found


def _row(run: Run, member: str, beside: Run, other: str) -> Result:
    base = read_result(run.result)
    mine, theirs = (read_ranks(one.recipe.output / FACTORS_FILE) for one in (run, beside))
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
    """A run's ranks: columns ER, IP, EX, act and tone; 1 is the likeliest, 0 is of a factor it lacks."""
    try:
        ranks = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        raise InputError(f"{file} holds no ranks.", "Train the run again.") from None
    found = []
    for place, row in enumerate(ranks.tolist()):
        named = tuple((level, row[column]) for level, column in (("act", 3), ("tone", 4)) if row[column])
        # Whether a mechanism was there is not kept: only whether the model was right about it.
        pairs = tuple((True, rank == 1) for rank in row[:3]) if row[0] else ()
        found.append(FactorPrediction(str(place), named, pairs))
    return found


def _member(run: Run) -> str:
    """The paper's name of a row, such as "DA ‖ EM" of "DA ‖ EM side by side (EmpTransfo)"."""
    return run.row.split(" side by side")[0]


def _is_there(run: Run) -> bool:
    return run.is_finished() and (run.recipe.output / FACTORS_FILE).is_file()
