"""The figures of the results page: drawn from result files, the same files giving the same picture.

Colours are Okabe and Ito's (2008), which people with any colour vision can tell apart; markers differ too.
matplotlib is imported when something is drawn, not before.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from listenwell.evaluation.baselines import HUMAN
from listenwell.evaluation.report.generation_figures import SPEAKING_FIGURES, SpeakingFigure
from listenwell.evaluation.report.ranking_figures import FIGURES as RANKING_FIGURES
from listenwell.evaluation.report.ranking_figures import RankingFigure
from listenwell.evaluation.report.tables import who
from listenwell.evaluation.report.understanding_figures import annotator_rows, beside_papers, papers_beside
from listenwell.results.drawing import KINDS, STYLE, need_matplotlib, save
from listenwell.results.metric_registry import METRICS, PERCENT
from listenwell.results.published import UNDERSTANDING
from listenwell.results.store import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from matplotlib.text import Annotation

COLOURS = {"ours": "#0072B2", "peer": "#E69F00", "people": "#009E73"}
MARKERS = {"ours": "D", "peer": "o", "people": "s"}
NAMES = {"ours": "ours", "peer": "peers", "people": "people"}


@dataclass(frozen=True)
class Figure:
    """A picture: its file's name, what it shows, and the metrics it is drawn from."""

    name: str
    caption: str
    metrics: tuple[str, ...]
    scatter: bool = False
    with_people: bool = True
    """People's replies measured against themselves say nothing about likeness."""
    task: str = "replies"

    def rows(self, results: Sequence[Result]) -> list[Result]:
        """The systems that have all its metrics."""
        if self.task == UNDERSTANDING:
            return annotator_rows(results, *self.metrics)
        return [
            result
            for result in results
            if result.task == self.task
            and not _is_part(result, results)
            and all(result.metric(name) is not None for name in self.metrics)
            and (self.with_people or result.system != HUMAN)
        ]

    def digest(self, results: Sequence[Result]) -> str:
        """A sum over all that is drawn; it is written into the files."""
        drawn = [
            (row.system, who(row), [row.metric(name) for name in self.metrics]) for row in self.rows(results)
        ]
        if self.task == UNDERSTANDING:
            drawn += [
                (row.system, f"{row.spreads}", [value for _, value in papers_beside(row, *self.metrics)])
                for row in self.rows(results)
            ]
        return hashlib.sha256(json.dumps([self.caption, drawn]).encode()).hexdigest()[:16]


FIGURES = (
    Figure(
        "diversity",
        "Different replies against stock phrases: people stand at the lower right, safe systems at the upper"
        " left.",
        ("distinct_replies_of_500", "stock_phrases"),
        scatter=True,
    ),
    Figure(
        "variety",
        "Different words and pairs of words in 500 replies, and the length of a reply.",
        ("distinct_1_of_500", "distinct_2_of_500", "length"),
    ),
    Figure(
        "likeness",
        "Likeness to the person's reply, in words and in meaning.",
        ("bleu_average", "rouge_l", "sentence_similarity"),
        with_people=False,
    ),
    Figure(
        "empathy",
        "Empathy as the annotators read it, from 0 to 2, and replies that claim a life which nobody has.",
        ("er_level", "ip_level", "ex_level", "invented_life"),
    ),
    Figure(
        "understanding",
        "How often the annotators are right, and what papers report with larger encoders.",
        ("accuracy",),
        task=UNDERSTANDING,
    ),
)


def _is_part(result: Result, results: Sequence[Result]) -> bool:
    """Whether a row is of a sample, as its name says, and the same system's row of all contexts is there."""
    same = (result.task, result.corpus, result.split)
    return any(
        (other.task, other.corpus, other.split) == same
        and result.system.startswith(f"{other.system}, ")
        and other.count > result.count
        for other in results
    )


def figures_of(results: Sequence[Result]) -> list[Figure | RankingFigure | SpeakingFigure]:
    """The figures that have at least one system to show."""
    every = (*FIGURES, *RANKING_FIGURES, *SPEAKING_FIGURES)
    return [figure for figure in every if figure.rows(results)]


def draw(results: Sequence[Result], folder: Path) -> list[Path]:
    """Write every figure as SVG and PNG; returns the files."""
    need_matplotlib()
    import matplotlib

    files = []
    with matplotlib.rc_context(STYLE):
        for figure in figures_of(results):
            mark = f"listenwell results {figure.digest(results)}"
            files += save(_canvas(figure, figure.rows(results)), folder, figure.name, mark)
    return files


def _canvas(figure: Figure | RankingFigure | SpeakingFigure, rows: Sequence[Result]) -> "Canvas":
    if isinstance(figure, RankingFigure | SpeakingFigure):
        return figure.canvas(rows)
    if figure.task == UNDERSTANDING:
        return beside_papers(rows, *figure.metrics)
    return _scatter(figure, rows) if figure.scatter else _bars(figure, rows)


def old_figures(results: Sequence[Result], folder: Path) -> list[Path]:
    """The files that are missing or were drawn from other results; needs no matplotlib."""
    return [
        file
        for figure in figures_of(results)
        for file in (folder / f"{figure.name}.{kind}" for kind in KINDS)
        if not file.is_file() or figure.digest(results).encode() not in file.read_bytes()
    ]


def _bars(figure: Figure, rows: Sequence[Result]) -> "Canvas":
    """One panel a metric, one bar a system, the systems in one order."""
    from matplotlib.figure import Figure as Canvas
    from matplotlib.ticker import MaxNLocator

    canvas = Canvas(figsize=(10, 1.5 + 0.36 * len(rows)), layout="constrained")
    panels = canvas.subplots(1, len(figure.metrics), sharey=True)
    for panel, name in zip(panels, figure.metrics, strict=True):
        kind = METRICS[name]
        values = [row.metric(name) or 0.0 for row in rows]
        bars = panel.barh(range(len(rows)), values, color=[COLOURS[who(row)] for row in rows], height=0.72)
        panel.bar_label(bars, [kind.show(value) for value in values], padding=3, fontsize=9)
        panel.set_title(f"{kind.label}, {kind.unit.split(',')[0]}")
        panel.xaxis.set_major_locator(MaxNLocator(5))
        panel.set_xlim(0, 1.22 * max(*values, 1e-9))
        panel.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(rows)), [row.system for row in rows])
    panels[0].invert_yaxis()
    canvas.get_layout_engine().set(wspace=0.06)  # type: ignore[union-attr, call-arg]
    _legend(canvas, rows)
    return canvas


def _scatter(figure: Figure, rows: Sequence[Result]) -> "Canvas":
    """A labelled point a system."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(8, 5.6), layout="constrained")
    panel = canvas.subplots()
    across, up = (METRICS[name] for name in figure.metrics)
    points = [(row.metric(across.name) or 0.0, row.metric(up.name) or 0.0) for row in rows]
    for row, (x, y) in zip(rows, points, strict=True):
        panel.scatter(x, y, color=COLOURS[who(row)], marker=MARKERS[who(row)], s=60, zorder=3)
    for setter, kind in ((panel.set_xlabel, across), (panel.set_ylabel, up)):
        setter(f"{kind.label}, {kind.unit}")
    if {across.unit, up.unit} == {PERCENT}:
        panel.set_xlim(0, 104)
        panel.set_ylim(0, 104)
    panel.grid(color="#dddddd", linewidth=0.8, zorder=0)
    _legend(canvas, rows)
    _label(canvas, panel, [row.system for row in rows], points)
    return canvas


def _label(
    canvas: "Canvas", panel: "Axes", names: Sequence[str], points: Sequence[tuple[float, float]]
) -> None:
    """Put each name beside its point, at the first place where it covers no point and no other name."""
    from matplotlib.transforms import Bbox

    canvas.draw_without_rendering()  # so that the panel has its final place
    taken = [Bbox.from_bounds(x - 6, y - 6, 12, 12) for x, y in panel.transData.transform(points)]
    for name, point in zip(names, points, strict=True):
        places = [_text(panel, name, point, shift) for shift in _SHIFTS]
        boxes = [text.get_window_extent() for text in places]
        free = [
            number
            for number, box in enumerate(boxes)
            if panel.bbox.x0 < box.x0 and box.x1 < panel.bbox.x1 and not any(map(box.overlaps, taken))
        ]
        chosen = free[0] if free else 0
        for number, text in enumerate(places):
            if number != chosen:
                text.remove()
        taken.append(boxes[chosen])


def _text(panel: "Axes", name: str, point: tuple[float, float], shift: tuple[int, int]) -> "Annotation":
    """A name at a distance from its point; it grows away from the point."""
    across, up = shift
    text = panel.annotate(
        name,
        point,
        shift,
        textcoords="offset points",
        ha="left" if across > 0 else "right" if across < 0 else "center",
        va="bottom" if up > 0 else "top" if up < 0 else "center",
        fontsize=9.5,
    )
    text.set_in_layout(False)
    return text


_SHIFTS = (
    *((9, 0), (-9, 0), (0, 9), (0, -9), (6, 6), (6, -6), (-6, 6), (-6, -6)),
    *((9, 14), (9, -14), (-9, 14), (-9, -14), (9, 26), (9, -26), (-9, 26), (-9, -26)),
)
"""Where a label may stand, in points from its mark; the first choice is also the last resort."""


def _legend(canvas: "Canvas", rows: Sequence[Result]) -> None:
    """Whose replies the colours are, for the kinds that are there."""
    from matplotlib.lines import Line2D

    present = {who(row) for row in rows}
    handles = [
        Line2D([], [], color=COLOURS[kind], marker=MARKERS[kind], linestyle="", markersize=8, label=label)
        for kind, label in NAMES.items()
        if kind in present
    ]
    canvas.legend(
        handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, handletextpad=0.2
    )
