"""The figure of the annotators: each question's accuracy, ours beside the papers'."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from listenwell.results.published import PUBLISHED, UNDERSTANDING
from listenwell.results.store import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

OURS, PAPER = "#0072B2", "#D55E00"
"""Okabe and Ito's (2008)."""
SYSTEM = ": annotators"
_ON_A_LINE = 2
"""Papers that are named on one line."""
_CLOSE, _APART = 1.6, 0.34
"""Marks nearer than this, in percent points, stand one above the other, so far apart in rows."""


def annotator_rows(results: Sequence[Result], metric: str) -> list[Result]:
    """The shipped annotators' rows that have the metric, the best first."""
    rows = [
        row
        for row in results
        if row.task == UNDERSTANDING and row.system.endswith(SYSTEM) and row.metric(metric) is not None
    ]
    return sorted(rows, key=lambda row: (-(row.metric(metric) or 0.0), row.system))


def papers_beside(row: Result, metric: str) -> list[tuple[str, float]]:
    """Who published the same metric for the same question, and what."""
    return [
        (entry.system.partition(": ")[2], entry.value)
        for entry in PUBLISHED
        if entry.task == UNDERSTANDING and entry.beside == row.system and entry.metric == metric
    ]


def beside_papers(rows: Sequence[Result], metric: str) -> "Canvas":
    """A bar a question with the spread over seeds, and a mark for each paper."""
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    papers = [sorted(papers_beside(row, metric), key=lambda paper: (paper[1], paper[0])) for row in rows]
    lines = max((-(-len(found) // _ON_A_LINE) for found in papers), default=0)
    canvas = Canvas(figsize=(9, 1.3 + max(0.42, 0.1 + 0.16 * lines) * len(rows)), layout="constrained")
    panel = canvas.subplots()
    for place, (row, found) in enumerate(zip(rows, papers, strict=True)):
        value, spread = row.metric(metric) or 0.0, dict(row.spreads).get(metric, 0.0)
        panel.barh(place, value, color=OURS, height=0.7)
        if spread:  # above the marks, which would hide a small one
            panel.errorbar(value, place, xerr=spread, ecolor="#222222", capsize=3, zorder=4)
        panel.text(1.2, place, f"{value:.1f}", va="center", color="white", fontsize=9.5)
        _name_papers(panel, place, value + spread, found)
    panel.set_yticks(range(len(rows)), [row.system.removesuffix(SYSTEM) for row in rows])
    panel.set_ylim(len(rows) - 0.4, -0.6)
    panel.tick_params(axis="y", length=0)
    panel.set_xlim(0, 122)
    panel.set_xticks(range(0, 101, 20))
    panel.set_xlabel("accuracy, percent")
    handles = [
        Patch(color=OURS, label="ours: mean and standard deviation over seeds"),
        Line2D([], [], color=PAPER, marker="D", linestyle="", markersize=6.5, label="a paper"),
    ]
    canvas.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
    return canvas


def paper_heights(figures: Sequence[float]) -> list[float]:
    """How far from its row's middle each mark stands, so that none hides another; ascending figures."""
    groups: list[list[float]] = []
    for figure in figures:
        if groups and figure - groups[-1][-1] < _CLOSE:
            groups[-1].append(figure)
        else:
            groups.append([figure])
    return [_APART * (place - (len(group) - 1) / 2) for group in groups for place in range(len(group))]


def _name_papers(panel: "Axes", place: int, end: float, papers: Sequence[tuple[str, float]]) -> None:
    """A mark for each paper, and after the bar's end and the last mark who they are."""
    if not papers:
        return
    figures = [figure for _, figure in papers]
    for figure, height in zip(figures, paper_heights(figures), strict=True):
        panel.plot(
            figure, place + height, "D", color=PAPER, markeredgecolor="white", markersize=6.5, zorder=3
        )
    names = [f"{name} {figure:.1f}" for name, figure in papers]
    parts = [names[first : first + _ON_A_LINE] for first in range(0, len(names), _ON_A_LINE)]
    panel.annotate(
        ";\n".join("; ".join(part) for part in parts),
        (max([end, *figures]), place),
        (9, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        color="#444444",
    )
