"""All results as one table, a row for each metric value."""

import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from listenwell.results.store import Result, read_results, source

if TYPE_CHECKING:
    import pandas as pd


def load(folder: str | Path | None = None) -> "pd.DataFrame | list[dict[str, Any]]":
    """Every result of a folder as a table, one row for each metric value.

    The columns are those of `results/README.md`: task, system, source ("ours", "baseline" or "people"),
    corpus, split, metric, value, spread, unit, count, seed, settings (a mapping), data, checkpoint, commit,
    command, machine, time.

    Args:
        folder: the results folder; by default `results` here, else that of the source checkout.

    Returns:
        A pandas DataFrame where pandas is installed (`pip install "listenwell[bench]"`), otherwise a list of
        dicts with the same keys.
    """
    rows = list(metric_rows(read_results(_folder(folder))))
    if importlib.util.find_spec("pandas") is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows)


def metric_rows(results: Iterable[Result]) -> Iterator[dict[str, Any]]:
    """One dict for each metric value of some results."""
    for result in results:
        spreads, units = dict(result.spreads), dict(result.units)
        for name, value in result.metrics:
            yield {
                "task": result.task,
                "system": result.system,
                "source": source(result),
                "corpus": result.corpus,
                "split": result.split,
                "metric": name,
                "value": value,
                "spread": spreads.get(name),
                "unit": units.get(name, ""),
                "count": result.count,
                "seed": result.seed,
                "settings": dict(result.conditions),
                "data": result.data,
                "checkpoint": result.checkpoint or None,
                "commit": result.commit,
                "command": result.command,
                "machine": result.machine,
                "time": result.time,
            }


def _folder(folder: str | Path | None) -> Path:
    if folder is not None:
        return Path(folder)
    here = Path("results")
    return here if here.is_dir() else Path(__file__).resolve().parents[2] / "results"
