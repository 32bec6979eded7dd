"""The figures of the results pages: the same results give the same pictures.

matplotlib is imported only when something is drawn.
"""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from listenwell.evaluation.report.charts import corpus_bars, metric_bars, question_bars, scatter
from listenwell.evaluation.report.names import display_name, read_yaml
from listenwell.evaluation.report.ranking_figures import by_sentences, by_share, transfer
from listenwell.results.drawing import KINDS, STYLE, need_matplotlib, save
from listenwell.results.metric_registry import PUBLISHED
from listenwell.results.store import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


_SAMPLE = re.compile(r", \d+ contexts$")
"""Ends the name of a row that was measured on a sample; the same system's row of all contexts is shown."""


@dataclass(frozen=True)
class Figure:
    """A picture: its file's name, what it shows, and how it is drawn."""

    name: str
    caption: str
    task: str
    metrics: tuple[str, ...]
    """The metrics it shows; one that ends with a space stands for all that begin so."""
    canvas: "Callable[[Sequence[Result], tuple[str, ...]], Canvas]"
    systems: str = ".*"
    """The pattern of the systems it shows."""

    def rows(self, results: Sequence[Result]) -> list[Result]:
        """The rows it shows: those that have one of its metrics."""
        return [
            result
            for result in results
            if result.task == self.task
            and self._values(result.metrics)
            and re.fullmatch(self.systems, result.system)
            and not _SAMPLE.search(result.system)
        ]

    def digest(self, results: Sequence[Result]) -> str:
        """A digest of all that is drawn; it is written into the files."""
        drawn = [
            [display_name(row.system), row.corpus, self._values(row.metrics), self._values(row.spreads)]
            for row in self.rows(results)
        ]
        papers = [
            (entry.system, entry.value)
            for entry in PUBLISHED
            if entry.task == self.task and self._values([(entry.metric, entry.value)])
        ]
        return hashlib.sha256(json.dumps([self.caption, drawn, papers]).encode()).hexdigest()[:16]

    def _values(self, pairs: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
        prefixes = tuple(name for name in self.metrics if name.endswith(" "))
        return [(name, value) for name, value in pairs if name in self.metrics or name.startswith(prefixes)]


def figures_of(results: Sequence[Result]) -> list[Figure]:
    """The figures that have at least one row to show."""
    return [figure for figure in FIGURES if figure.rows(results)]


def draw(results: Sequence[Result], folder: Path) -> list[Path]:
    """Write every figure as SVG and PNG; returns the files."""
    need_matplotlib()
    import matplotlib

    files = []
    with matplotlib.rc_context(STYLE):
        for figure in figures_of(results):
            canvas = figure.canvas(figure.rows(results), figure.metrics)
            files += save(canvas, folder, figure.name, f"listenwell results {figure.digest(results)}")
    return files


def old_figures(results: Sequence[Result], folder: Path) -> list[Path]:
    """The files that are missing or were drawn from other results; needs no matplotlib."""
    return [
        file
        for figure in figures_of(results)
        for file in (folder / f"{figure.name}.{kind}" for kind in KINDS)
        if not file.is_file() or figure.digest(results).encode() not in file.read_bytes()
    ]


_CANVASES = {
    canvas.__name__: canvas
    for canvas in (metric_bars, corpus_bars, question_bars, scatter, by_sentences, by_share, transfer)
}
FIGURES = tuple(
    Figure(name, metrics=tuple(fields.pop("metrics")), canvas=_CANVASES[fields.pop("canvas")], **fields)
    for name, fields in read_yaml("figures.yaml").items()
)
"""Every figure, in the order of the pages."""
