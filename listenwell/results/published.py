"""Numbers that papers printed, read from published.csv, each with its source and conditions.

A published number stands beside ours only where system and metric are the same; the others are rows of
their own. CoMAE and CoBERT were measured on Reddit (PEC), which cannot be downloaded: their numbers stand
beside ours on other corpora without a difference.
"""

import csv
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class Published:
    """One published number."""

    task: str
    system: str
    metric: str
    """A name of metrics.yaml; the value is in its unit."""
    value: float
    source: str
    conditions: str
    beside: str = ""
    """Which of our rows it is compared with, where that has another name."""


def _read() -> tuple[Published, ...]:
    text = files("listenwell.results").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(Published(value=float(row.pop("value")), **row) for row in csv.DictReader(text.splitlines()))


PUBLISHED: tuple[Published, ...] = _read()
"""Every published number, in the order of the papers."""
