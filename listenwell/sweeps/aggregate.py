"""From a study's runs to the ledger: one result a row, the mean over its seeds with their spread.

Runs are only averaged where they measured the same thing: the same items, under the same conditions.
"""

import hashlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from listenwell.errors import InputError
from listenwell.metrics.ranking import over_seeds
from listenwell.results.store import Result, file_name, read_result, write_result
from listenwell.sweeps.compare import compare
from listenwell.sweeps.factor_prediction_pairs import factor_prediction_pairs
from listenwell.sweeps.grid import Plan

SEEDS = "seeds"
"""The condition that names the seeds of a mean."""
_MAY_DIFFER = ("steps", "seconds")
"""Conditions that are measured, not set: a run may stop early."""
_SAME = ("task", "corpus", "split", "count", "data")
"""Fields that say what was measured."""


@dataclass(frozen=True)
class Aggregated:
    """What was put into the ledger."""

    files: tuple[Path, ...]
    lacking: tuple[str, ...]
    """Rows with missing seeds, one line each; only where a part was allowed."""


def aggregate(
    plans: Sequence[Plan], folder: Path, only: Sequence[str] = (), partial: bool = False
) -> Aggregated:
    """Write a result file for every row of the studies.

    Args:
        plans: the studies.
        folder: the ledger's folder, such as results/.
        only: some rows; all where none are named.
        partial: take the seeds that are there, and say so; otherwise a missing one is an error.
    """
    found, lacking = [], []
    for plan in plans:
        rows = [row for row, _ in plan.sweep.runs if not only or row in only]
        for row in rows:
            results = {
                run.seed: read_result(run.result) for run in plan.runs if run.row == row and run.is_finished()
            }
            if missing := [seed for seed in plan.seeds_of(row) if seed not in results]:
                lacking.append(f"{plan.sweep.name}: {row}, seed {', '.join(map(str, missing))}")
            if results:
                found.append(row_result(plan, row, results))
        if not only:
            pairs = (compare(plan, ours, theirs) for ours, theirs in plan.sweep.compare)
            found += [result for result in pairs if result is not None]
            found += factor_prediction_pairs(plan)
    if lacking and not partial:
        raise InputError(
            f"These runs have no result yet: {'; '.join(lacking)}.",
            "Run the study again, or give --partial for the mean of what is there.",
        )
    files = [_write(result, folder) for result in found]
    return Aggregated(tuple(files), tuple(lacking))


def row_result(plan: Plan, row: str, results: Mapping[int, Result]) -> Result:
    """One result from those of a row's seeds.

    The mean of every metric with its sample standard deviation, what is true of all of them, and a sum over
    their checkpoints. A single seed has no spread and keeps its number.
    """
    where, seeds = f"{plan.sweep.name}: {row}", sorted(results)
    each = [results[seed] for seed in seeds]
    for field in _SAME:
        _check_same(where, field, {seed: str(getattr(results[seed], field)) for seed in seeds})
    _check_same(where, "metrics", {seed: ", ".join(dict(results[seed].metrics)) for seed in seeds})
    figures = {name: over_seeds([dict(one.metrics)[name] for one in each]) for name, _ in each[0].metrics}
    several = len(each) > 1
    said = ", ".join(map(str, seeds))
    if len(seeds) < (planned := len(plan.seeds_of(row))):
        said += f" alone, of {planned} planned"
    return Result(
        task=plan.sweep.table or each[0].task,
        system=row,
        metrics=tuple((name, figure.mean) for name, figure in figures.items()),
        spreads=tuple((name, figure.spread) for name, figure in figures.items()) if several else (),
        corpus=each[0].corpus,
        split=each[0].split,
        count=each[0].count,
        data=each[0].data,
        units=each[0].units,
        conditions=tuple({**_conditions(where, results), SEEDS: said}.items()),
        seed=None if several else seeds[0],
        checkpoint=_over_checkpoints(each),
        command=_command(plan, row),
        versions=tuple(_versions(each).items()),
        commit=_one_or_mixed(one.commit or "unknown" for one in each),
        machine=_one_or_mixed(one.machine for one in each),
        time=max(one.time for one in each),
    )


def _conditions(where: str, results: Mapping[int, Result]) -> dict[str, str]:
    """What was the same in all runs; what differs is an error, but for what is measured."""
    by_seed = {seed: dict(result.conditions) for seed, result in sorted(results.items())}
    kept = {}
    for name in dict.fromkeys(name for said in by_seed.values() for name in said):
        if name == "seed":
            continue
        values = {seed: said.get(name, "–") for seed, said in by_seed.items()}
        if name in _MAY_DIFFER:
            kept[name] = _span(values.values())
        else:
            _check_same(where, name, values)
            kept[name] = next(iter(values.values()))
    return kept


def _check_same(where: str, what: str, values: Mapping[int, str]) -> None:
    if len(set(values.values())) > 1:
        said = "; ".join(f"seed {seed}: {value}" for seed, value in values.items())
        raise InputError(
            f"{where}: {what!r} differs between the seeds ({said}).",
            "Remove the folders of the runs that are wrong, and run the study again.",
        )


def _span(values: Iterable[str]) -> str:
    """One value, or the smallest and the largest."""
    different = sorted(set(values), key=lambda value: (not value.isdecimal(), len(value), value))
    return different[0] if len(different) == 1 else f"{different[0]} to {different[-1]}"


def _over_checkpoints(results: Iterable[Result]) -> str | None:
    """A sum over the sums of the seeds' checkpoints, in the order of the seeds."""
    sums = [result.checkpoint for result in results if result.checkpoint]
    return hashlib.sha256("\n".join(sums).encode()).hexdigest() if sums else None


def _one_or_mixed(values: Iterable[str]) -> str:
    different = list(dict.fromkeys(values))
    return different[0] if len(different) == 1 else f"mixed: {', '.join(different)}"


def _versions(results: Sequence[Result]) -> dict[str, str]:
    """Each package's version; several where the runs had different ones."""
    names = dict.fromkeys(name for result in results for name, _ in result.versions)
    return {
        name: _one_or_mixed(dict(result.versions).get(name, "none") for result in results) for name in names
    }


def _command(plan: Plan, row: str) -> str:
    """The command that makes this row again, without a place on this machine."""
    file = plan.file.name if plan.file.is_absolute() else str(plan.file)
    return shlex.join(["listenwell", "study", file, "--only", row])


def _write(result: Result, folder: Path) -> Path:
    """Write into the ledger; a file of another row is never replaced."""
    file = folder / file_name(result)
    if file.is_file():
        old = read_result(file)
        if (old.task, old.system) != (result.task, result.system):
            raise InputError(
                f"{file} holds the row {old.system!r} of {old.task!r}.",
                f"Rename the row {result.system!r}, whose file would be the same.",
            )
    write_result(result, file)
    return file
