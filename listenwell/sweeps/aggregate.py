"""From a sweep's runs to result files: one a row, the mean over its seeds with their spread.

Runs are only averaged where they measured the same thing: the same items, under the same conditions.
"""

import hashlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from listenwell.errors import InputError
from listenwell.metrics.ranking import over_seeds
from listenwell.results.store import Result, file_name, read_result, write_result
from listenwell.sweeps.comparisons import compare, factor_prediction_pairs
from listenwell.sweeps.grid import Sweep

SEEDS = "seeds"
"""The condition that names the seeds of a mean."""
_MAY_DIFFER = ("steps", "seconds")
"""Conditions that are measured, not set: a run may stop early."""
_SAME = ("task", "corpus", "split", "count", "data")
"""Fields that say what was measured."""


@dataclass(frozen=True)
class Aggregated:
    """What was written."""

    files: tuple[Path, ...]
    lacking: tuple[str, ...]
    """Rows with missing seeds, one line each."""


def aggregate(
    sweeps: Sequence[Sweep], folder: Path, only: Sequence[str] = (), partial: bool = False
) -> Aggregated:
    """Write a result file for every row of the sweeps.

    Args:
        sweeps: grids of runs.
        folder: where result files are, such as results/.
        only: some rows; all where none are named.
        partial: take the seeds that are there, and say so; otherwise a missing one is an error.
    """
    results, lacking = [], []
    for sweep in sweeps:
        rows = [row for row, _ in sweep.config.runs if not only or row in only]
        for row in rows:
            by_seed = {
                run.seed: read_result(run.result)
                for run in sweep.runs
                if run.row == row and run.is_finished()
            }
            if missing := [seed for seed in sweep.seeds_of(row) if seed not in by_seed]:
                lacking.append(f"{sweep.config.name}: {row}, seed {', '.join(map(str, missing))}")
            if by_seed:
                results.append(row_result(sweep, row, by_seed))
        if not only:
            pairs = (compare(sweep, ours, theirs) for ours, theirs in sweep.config.compare)
            results += [result for result in pairs if result is not None]
            results += factor_prediction_pairs(sweep)
    if lacking and not partial:
        raise InputError(
            f"These runs have no result yet: {'; '.join(lacking)}.",
            "Run the sweep again, or give --partial for the mean of what is there.",
        )
    files = [_write(result, folder) for result in results]
    return Aggregated(tuple(files), tuple(lacking))


def row_result(sweep: Sweep, row: str, results: Mapping[int, Result]) -> Result:
    """One result from those of a row's seeds.

    The mean of every metric with its sample standard deviation, what is true of all of them, and a sum over
    their checkpoints. A single seed has no spread and keeps its number.
    """
    where, seeds = f"{sweep.config.name}: {row}", sorted(results)
    each = [results[seed] for seed in seeds]
    for field in _SAME:
        _check_same(where, field, {seed: str(getattr(results[seed], field)) for seed in seeds})
    _check_same(where, "metrics", {seed: ", ".join(dict(results[seed].metrics)) for seed in seeds})
    figures = {
        name: over_seeds([dict(result.metrics)[name] for result in each]) for name, _ in each[0].metrics
    }
    several = len(each) > 1
    described = ", ".join(map(str, seeds))
    if len(seeds) < (planned := len(sweep.seeds_of(row))):
        described += f" alone, of {planned} planned"
    versions = dict.fromkeys(name for result in each for name, _ in result.versions)
    sums = [result.checkpoint for result in each if result.checkpoint]
    return replace(
        each[0],
        task=sweep.config.table or each[0].task,
        system=row,
        metrics=tuple((name, figure.mean) for name, figure in figures.items()),
        spreads=tuple((name, figure.spread) for name, figure in figures.items()) if several else (),
        conditions=tuple({**_conditions(where, results), SEEDS: described}.items()),
        seed=None if several else seeds[0],
        checkpoint=hashlib.sha256("\n".join(sums).encode()).hexdigest() if sums else None,
        command=_command(sweep, row),
        versions=tuple(
            (name, _one_or_mixed(dict(result.versions).get(name, "none") for result in each))
            for name in versions
        ),
        commit=_one_or_mixed(result.commit or "unknown" for result in each),
        machine=_one_or_mixed(result.machine for result in each),
        time=max(result.time for result in each),
    )


def _conditions(where: str, results: Mapping[int, Result]) -> dict[str, str]:
    """What was the same in all runs; what differs is an error, but for what is measured."""
    by_seed = {seed: dict(result.conditions) for seed, result in sorted(results.items())}
    kept = {}
    for name in dict.fromkeys(name for conditions in by_seed.values() for name in conditions):
        if name == "seed":
            continue
        values = {seed: conditions.get(name, "–") for seed, conditions in by_seed.items()}
        if name in _MAY_DIFFER:
            kept[name] = _span(values.values())
        else:
            _check_same(where, name, values)
            kept[name] = next(iter(values.values()))
    return kept


def _check_same(where: str, what: str, values: Mapping[int, str]) -> None:
    if len(set(values.values())) > 1:
        listed = "; ".join(f"seed {seed}: {value}" for seed, value in values.items())
        raise InputError(
            f"{where}: {what!r} differs between the seeds ({listed}).",
            "Remove the folders of the runs that are wrong, and run the sweep again.",
        )


def _span(values: Iterable[str]) -> str:
    """One value, or the smallest and the largest."""
    different = sorted(set(values), key=lambda value: (not value.isdecimal(), len(value), value))
    return different[0] if len(different) == 1 else f"{different[0]} to {different[-1]}"


def _one_or_mixed(values: Iterable[str]) -> str:
    different = list(dict.fromkeys(values))
    return different[0] if len(different) == 1 else f"mixed: {', '.join(different)}"


def _command(sweep: Sweep, row: str) -> str:
    """The command that makes this row again, without a path of this machine."""
    file = sweep.file.name if sweep.file.is_absolute() else str(sweep.file)
    return shlex.join(["listenwell", "sweep", file, "--only", row])


def _write(result: Result, folder: Path) -> Path:
    """Write a result file; one of another row is never replaced."""
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
