"""From a sweep's runs to result files: one a row, the mean over its seeds with their spread.

Runs are only averaged where they measured the same thing: the same items, under the same conditions.
"""

import hashlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from listenwell.errors import InputError
from listenwell.metrics.ranking import over_seeds
from listenwell.results.store import Result, file_name, read_result, write_result
from listenwell.sweeps.comparisons import compare, factor_prediction_pairs
from listenwell.sweeps.grid import Sweep

_MAY_DIFFER = ("steps", "seconds")
"""Conditions that are measured, not set: a run may stop early."""
_SAME = ("task", "corpus", "split", "count", "data")
"""Fields that say what was measured."""


class Aggregated(NamedTuple):
    """The files that were written, and a line for each row with missing seeds."""

    files: tuple[Path, ...]
    lacking: tuple[str, ...]


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
        for row in (row for row, _ in sweep.config.runs if not only or row in only):
            runs = [run for run in sweep.runs if run.row == row]
            by_seed = {run.seed: read_result(run.result) for run in runs if run.is_finished()}
            if missing := [str(run.seed) for run in runs if run.seed not in by_seed]:
                lacking.append(f"{sweep.config.name}: {row}, seed {', '.join(missing)}")
            if by_seed:
                results.append(row_result(sweep, row, by_seed))
        if not only:
            gains = (compare(sweep, ours, theirs) for ours, theirs in sweep.config.compare)
            results += [result for result in gains if result is not None]
            results += factor_prediction_pairs(sweep)
    if lacking and not partial:
        raise InputError(
            f"These runs have no result yet: {'; '.join(lacking)}.",
            "Run the sweep again, or give --partial for the mean of what is there.",
        )
    return Aggregated(tuple(_write(result, folder) for result in results), tuple(lacking))


def row_result(sweep: Sweep, row: str, results: Mapping[int, Result]) -> Result:
    """One result from those of a row's seeds.

    The mean of every metric with its sample standard deviation, what is true of all of them, and a sum over
    their checkpoints. A single seed has no spread and keeps its number.
    """
    where, seeds = f"{sweep.config.name}: {row}", sorted(results)
    each = [results[seed] for seed in seeds]
    fields = [{name: str(getattr(result, name)) for name in _SAME} for result in each]
    names = [{"metrics": ", ".join(dict(result.metrics))} for result in each]
    conditions = [{**dict(result.conditions), "seed": ""} for result in each]
    for facts in (fields, names):
        _common(where, seeds, facts)
    common = _common(where, seeds, conditions)
    del common["seed"]
    described = ", ".join(map(str, seeds))
    if len(seeds) < (planned := len(sweep.seeds_of(row))):
        described += f" alone, of {planned} planned"
    figures = {
        name: over_seeds([dict(result.metrics)[name] for result in each]) for name, _ in each[0].metrics
    }
    several = len(each) > 1
    versions = dict.fromkeys(name for result in each for name, _ in result.versions)
    sums = [result.checkpoint for result in each if result.checkpoint]
    # The command that makes this row again, without a path of this machine.
    file = sweep.file.name if sweep.file.is_absolute() else str(sweep.file)
    return replace(
        each[0],
        task=sweep.config.table or each[0].task,
        system=row,
        metrics=tuple((name, figure.mean) for name, figure in figures.items()),
        spreads=tuple((name, figure.spread) for name, figure in figures.items()) if several else (),
        conditions=tuple({**common, "seeds": described}.items()),
        seed=None if several else seeds[0],
        checkpoint=hashlib.sha256("\n".join(sums).encode()).hexdigest() if sums else None,
        command=shlex.join(["listenwell", "sweep", file, "--only", row]),
        versions=tuple(
            (name, _one_or_mixed(dict(result.versions).get(name, "none") for result in each))
            for name in versions
        ),
        commit=_one_or_mixed(result.commit or "unknown" for result in each),
        machine=_one_or_mixed(result.machine for result in each),
        time=max(result.time for result in each),
    )


def _common(where: str, seeds: Sequence[int], facts: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What was the same in all runs; what differs is an error, but for what is measured."""
    common = {}
    for name in dict.fromkeys(name for own in facts for name in own):
        values = [own.get(name, "–") for own in facts]
        # Numbers by their size, the shortest first.
        different = sorted(set(values), key=lambda value: (not value.isdecimal(), len(value), value))
        if len(different) > 1 and name not in _MAY_DIFFER:
            listed = "; ".join(f"seed {seed}: {value}" for seed, value in zip(seeds, values, strict=True))
            raise InputError(
                f"{where}: {name!r} differs between the seeds ({listed}).",
                "Remove the folders of the runs that are wrong, and run the sweep again.",
            )
        common[name] = different[0] if len(different) == 1 else f"{different[0]} to {different[-1]}"
    return common


def _one_or_mixed(values: Iterable[str]) -> str:
    different = list(dict.fromkeys(values))
    return different[0] if len(different) == 1 else f"mixed: {', '.join(different)}"


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
