"""The figures of the rankers: R@1 by corpus, by persona sentences, by swapped share, and across corpora.

The first is drawn here, the others in `ranking_study_figures`. matplotlib is imported when something is
drawn, not before.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from listenwell.evaluation.report.ranking_study_figures import (
    ELSEWHERE,
    METRIC,
    OURS,
    PAPER,
    SENTENCES,
    SWAPPED,
    TRAINED,
    across_corpora,
    by_sentences,
    by_share,
    r_at_1,
    spread_of,
)
from listenwell.results.published import PUBLISHED
from listenwell.results.published_ranking import PERSONA_SENTENCES, RANKING, SWAPPED_SHARE, TRANSFER
from listenwell.results.store import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_COLUMNS = 2
"""Corpora side by side."""
_ROOM = 7
"""A bar so long, in percent, holds its own figure."""


@dataclass(frozen=True)
class RankingFigure:
    """A picture of one of the rankers' tables: its file's name, what it shows, and how it is drawn."""

    name: str
    caption: str
    task: str
    shows: Callable[[Result], bool]
    """Whether a row of the table belongs into it."""
    canvas: "Callable[[Sequence[Result]], Canvas]"

    def rows(self, results: Sequence[Result]) -> list[Result]:
        """The rows that it shows."""
        return [result for result in results if result.task == self.task and self.shows(result)]

    def digest(self, results: Sequence[Result]) -> str:
        """A sum over all that is drawn; it is written into the files."""
        drawn = [
            [row.system, row.corpus, *(_of_figure(row.metrics), _of_figure(row.spreads))]
            for row in self.rows(results)
        ]
        papers = [(entry.system, entry.metric, entry.value) for entry in PUBLISHED if entry.task == self.task]
        return hashlib.sha256(json.dumps([self.caption, drawn, papers]).encode()).hexdigest()[:16]


def _of_figure(values: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    return [(name, value) for name, value in values if name == METRIC or name.startswith(ELSEWHERE)]


def papers_beside(row: Result) -> list[tuple[float, bool]]:
    """What papers print as R@1 of the same system, and whether on the same corpus.

    A test split counts before a validation split.
    """
    corpus, _, _ = row.system.partition(": ")
    found = [
        (entry.value, entry.system.partition(": ")[0])
        for entry in PUBLISHED
        if entry.task == RANKING and entry.metric == METRIC and row.system in (entry.beside, entry.system)
    ]
    tested = [(value, where) for value, where in found if "validation" not in where]
    return [(value, where == corpus) for value, where in tested or found]


def by_corpus(rows: Sequence[Result]) -> "Canvas":
    """A panel a corpus, a bar a ranker with its spread over seeds, a mark for each paper; the best first."""
    from matplotlib.figure import Figure as Canvas

    corpora: dict[str, list[Result]] = {}
    for row in sorted(rows, key=lambda row: (-r_at_1(row), row.system)):
        corpora.setdefault(row.system.partition(": ")[0], []).append(row)
    names = sorted(corpora)
    columns = min(_COLUMNS, len(names))
    lines = [
        max(len(corpora[name]) for name in names[at : at + columns]) for at in range(0, len(names), columns)
    ]
    height = sum(0.36 * count + 0.75 for count in lines) + 0.5
    canvas = Canvas(figsize=(5.4 * columns + 1, height), layout="constrained")
    ratios = [count + 1.5 for count in lines]
    panels = canvas.subplots(len(lines), columns, squeeze=False, height_ratios=ratios).ravel()
    shown = [r_at_1(row) + spread_of(row) for row in rows]
    shown += [value for row in rows for value, _ in papers_beside(row)]
    for number, (panel, name) in enumerate(zip(panels, names, strict=False)):
        _bars(panel, name, corpora[name])
        panel.set_xlim(0, 1.1 * max(shown))
        panel.set_ylim(lines[number // columns] - 0.4, -0.6)  # bars of one width, however many there are
    for panel in panels[len(names) :]:
        panel.set_axis_off()
    _paper_legend(canvas, {same for row in rows for _, same in papers_beside(row)})
    return canvas


def _bars(panel: "Axes", corpus: str, rows: Sequence[Result]) -> None:
    for place, row in enumerate(rows):
        value, spread = r_at_1(row), spread_of(row)
        panel.barh(place, value, color=OURS, height=0.7)
        if spread:
            panel.errorbar(value, place, xerr=spread, ecolor="#222222", capsize=3, zorder=4)
        inside = value > _ROOM  # a shorter bar has its figure after its end
        panel.annotate(
            f"{value:.1f}",
            (0 if inside else value + spread, place),
            (5, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color="white" if inside else "black",
        )
        for figure, same in papers_beside(row):
            panel.plot(figure, place, "D", **_mark(same))
    panel.set_yticks(range(len(rows)), [row.system.partition(": ")[2] or row.system for row in rows])
    panel.tick_params(axis="y", length=0)
    panel.set_title(corpus)
    panel.set_xlabel("R@1 among 100, percent")


def _mark(same: bool) -> dict[str, Any]:
    """How a paper's mark looks: filled on the same corpus, hollow on another."""
    return {
        "markersize": 6.5,
        "zorder": 5,
        "linestyle": "",
        "color": PAPER,
        "markeredgecolor": "white" if same else PAPER,
        "markerfacecolor": PAPER if same else "white",
    }


def _paper_legend(canvas: "Canvas", kinds: set[bool]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = {True: "a paper, the same corpus", False: "a paper, on PEC: another corpus"}
    marks = [
        Line2D([], [], marker="D", label=names[same], **_mark(same))
        for same in (True, False)
        if same in kinds
    ]
    ours = Patch(color=OURS, label="ours; with several seeds their mean and standard deviation")
    canvas.legend(handles=[ours, *marks], loc="outside lower center", ncols=3, frameon=False)


def _is_ranker(row: Result) -> bool:
    return row.metric(METRIC) is not None and ": " in row.system


FIGURES = (
    RankingFigure(
        "rankers",
        "R@1 of every ranker by corpus: how often the true reply is put first among 100.",
        RANKING,
        _is_ranker,
        by_corpus,
    ),
    RankingFigure(
        "persona_sentences",
        "R@1 against the number of persona sentences, ours and CoBERT's paper.",
        PERSONA_SENTENCES,
        lambda row: row.metric(METRIC) is not None and bool(SENTENCES.fullmatch(row.system)),
        by_sentences,
    ),
    RankingFigure(
        "swapped_share",
        "R@1 with and without persona sentences, as training examples are swapped for another corpus's.",
        SWAPPED_SHARE,
        lambda row: row.metric(METRIC) is not None and bool(SWAPPED.fullmatch(row.system)),
        by_share,
    ),
    RankingFigure(
        "transfer",
        "R@1 by what was learned from and what was tested; at home on the diagonal.",
        TRANSFER,
        lambda row: (
            row.system.startswith(TRAINED) and any(name.startswith(ELSEWHERE) for name, _ in row.metrics)
        ),
        across_corpora,
    ),
)
