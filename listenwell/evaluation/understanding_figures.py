"""The figure of the annotators: each question's accuracy, ours beside the papers'."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from listenwell.evaluation.ledger import Result
from listenwell.evaluation.published import PUBLISHED, UNDERSTANDING

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

OURS, PAPER = "#0072B2", "#D55E00"
"""Okabe and Ito's (2008)."""
SYSTEM = ": annotators"


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

    canvas = Canvas(figsize=(9, 1.6 + 0.42 * len(rows)), layout="constrained")
    panel = canvas.subplots()
    for place, row in enumerate(rows):
        value, spread = row.metric(metric) or 0.0, dict(row.spreads).get(metric, 0.0)
        panel.barh(place, value, xerr=spread, color=OURS, height=0.66, ecolor="#222222", capsize=3)
        panel.text(1.2, place, f"{value:.1f}", va="center", color="white", fontsize=9.5)
        papers = sorted(papers_beside(row, metric), key=lambda paper: paper[1])
        for _, figure in papers:
            panel.plot(figure, place, "D", color=PAPER, markeredgecolor="white", markersize=8, zorder=3)
        panel.annotate(
            ", ".join(f"{name} {figure:.1f}" for name, figure in papers),
            (max([value + spread, *(figure for _, figure in papers)]), place),
            (9, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            color="#444444",
        )
    panel.set_yticks(range(len(rows)), [row.system.removesuffix(SYSTEM) for row in rows])
    panel.invert_yaxis()
    panel.tick_params(axis="y", length=0)
    panel.set_xlim(0, 122)
    panel.set_xticks(range(0, 101, 20))
    panel.set_xlabel("accuracy, percent")
    handles = [
        Patch(color=OURS, label="ours: mean and standard deviation over seeds"),
        Line2D([], [], color=PAPER, marker="D", linestyle="", markersize=7, label="a paper"),
    ]
    canvas.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
    return canvas
