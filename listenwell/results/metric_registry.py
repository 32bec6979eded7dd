"""Every metric that result files hold (metrics.yaml), and the numbers that papers printed (published.csv)."""

import csv
from dataclasses import dataclass, replace
from importlib.resources import files

import yaml

SAMPLE = 500
"""Diversity falls as a set of replies grows, so it is also measured on samples of this size."""


@dataclass(frozen=True)
class Metric:
    """What a number is called, what it is measured in, and which direction is better."""

    name: str
    label: str
    unit: str = "percent"
    group: str = "other"
    """The table it stands in: a key of GROUPS."""
    decimals: int = 2
    better: str = "higher"
    """"higher", "lower", or "" where neither is."""
    note: str = ""
    """What the label does not say."""

    def show(self, value: float | None) -> str:
        """The value as tables print it; a dash where it was not measured."""
        if value is None:
            return "–"
        return f"{value:.{self.decimals}f}".replace("-", "−")

    @property
    def heading(self) -> str:
        """The label with its unit, where the label does not say it."""
        unit = _SHORT_UNITS.get(self.unit, self.unit)
        return f"{self.label} ({unit})" if unit else self.label


_SHORT_UNITS = {
    "percent": "%",
    "cosine, −1 to 1": "cosine",
    "compound, −1 to 1": "−1 to 1",
    "perplexity": "",
    "bits": "",
    "p": "",
    "level, 0 to 2": "0 to 2",
    "rating, 1 to 5": "1 to 5",
    "correlation, −1 to 1": "−1 to 1",
}


def _text(name: str) -> str:
    return files("listenwell.results").joinpath(name).read_text(encoding="utf-8")


def _read() -> tuple[dict[str, Metric], dict[str, str]]:
    groups = yaml.safe_load(_text("metrics.yaml"))
    metrics = {
        name: Metric(name, group=group, **fields)
        for group, table in groups.items()
        for name, fields in table["metrics"].items()
    }
    return metrics, {group: table["title"] for group, table in groups.items()}


METRICS, GROUPS = _read()
"""The metrics by name, and the titles of their tables by group, both in the order of the pages."""


def metric(name: str, unit: str = "") -> Metric:
    """A metric by its name; "R@1 on PEC" is R@1 measured on another corpus.

    An unknown metric is shown by its own name, in the unit its result gives.
    """
    if name in METRICS:
        return METRICS[name]
    known, separator, corpus = name.partition(" on ")
    if separator and known in METRICS:
        base = METRICS[known]
        return replace(base, name=name, label=f"{base.label} on {corpus}", note="")
    return Metric(name, name.replace("_", " "), unit, better="")


def units(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The units of some metrics, as a result holds them."""
    return tuple((name, unit) for name in names if (unit := metric(name).unit))


@dataclass(frozen=True)
class Published:
    """One published number.

    It stands beside ours only where system and metric are the same. CoMAE and CoBERT were measured on Reddit
    (PEC), which cannot be downloaded: their numbers stand beside ours on other corpora without a difference.
    """

    task: str
    system: str
    metric: str
    """A name of metrics.yaml; the value is in its unit."""
    value: float
    source: str
    conditions: str
    beside: str = ""
    """Which of our rows it is compared with, where that has another name."""


PUBLISHED: tuple[Published, ...] = tuple(
    Published(value=float(row.pop("value")), **row)
    for row in csv.DictReader(_text("published.csv").splitlines())
)
"""Every published number, in the order of the papers."""
