"""The figures of generators that plan: what they foretell, what their replies show, and the paper's numbers.

matplotlib is imported when something is drawn, not before.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from listenwell.results.metric_registry import METRICS
from listenwell.results.published_generation import DOMAINS, FAMILY, FIGURES, MEMBERS, PLANNING, REALIZATION
from listenwell.results.store import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

OURS = "#0072B2"
MARKS = {DOMAINS[0]: ("D", "#D55E00"), DOMAINS[1]: ("o", "#CC79A7")}
"""Okabe and Ito's colours (2008), and a mark for each part of the paper's corpus."""


@dataclass(frozen=True)
class SpeakingFigure:
    """A picture of a table of generators: a panel a metric, a bar a generator, a mark for each paper."""

    name: str
    caption: str
    task: str
    metrics: tuple[str, ...]

    def rows(self, results: Sequence[Result]) -> list[Result]:
        """The rows that have any of its metrics, the family in the paper's order."""
        found = [
            result
            for result in results
            if result.task == self.task and any(result.metric(name) is not None for name in self.metrics)
        ]
        return sorted(found, key=_in_family)

    def digest(self, results: Sequence[Result]) -> str:
        """A sum over all that is drawn; it is written into the files."""
        drawn = [
            (row.system, [(row.metric(name), self.papers(row, name)) for name in self.metrics])
            for row in self.rows(results)
        ]
        return hashlib.sha256(json.dumps([self.caption, drawn]).encode()).hexdigest()[:16]

    def papers(self, row: Result, name: str) -> list[tuple[str, float]]:
        """What the paper prints of the same generator, by the part of its corpus."""
        return [
            (entry.system.partition(": ")[0], entry.value)
            for entry in FIGURES
            if (entry.task, entry.beside, entry.metric) == (self.task, row.system, name)
        ]

    def canvas(self, rows: Sequence[Result]) -> "Canvas":
        """Draw it."""
        from matplotlib.figure import Figure as Canvas

        shown = [name for name in self.metrics if any(row.metric(name) is not None for row in rows)]
        canvas = Canvas(figsize=(3.0 + 2.6 * len(shown), 1.6 + 0.36 * len(rows)), layout="constrained")
        panels = canvas.subplots(1, len(shown), sharey=True, squeeze=False)[0]
        for panel, name in zip(panels, shown, strict=True):
            self._panel(panel, name, rows)
        panels[0].set_yticks(range(len(rows)), [row.system for row in rows])
        panels[0].set_ylim(len(rows) - 0.4, -0.6)
        self._legend(canvas, rows, shown)
        return canvas

    def _panel(self, panel: "Axes", name: str, rows: Sequence[Result]) -> None:
        kind, most = METRICS[name], 1e-9
        for place, row in enumerate(rows):
            value = row.metric(name)
            if value is None:
                continue
            panel.barh(place, value, color=OURS, height=0.7)
            panel.text(0, place, f" {kind.show(value)}", va="center", color="white", fontsize=9)
            most = max(most, value)
            for domain, paper in self.papers(row, name):
                marker, colour = MARKS[domain]
                panel.plot(
                    paper, place, marker, color=colour, markeredgecolor="white", markersize=6.5, zorder=3
                )
                most = max(most, paper)
        panel.set_title(f"{kind.label}, {kind.unit.split(',')[0]}")
        panel.set_xlim(0, 1.08 * most)
        panel.tick_params(axis="y", length=0)

    def _legend(self, canvas: "Canvas", rows: Sequence[Result], shown: Sequence[str]) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        present = {domain for row in rows for name in shown for domain, _ in self.papers(row, name)}
        handles: list[Patch | Line2D] = [Patch(color=OURS, label="ours, EmpatheticDialogues")]
        handles += [
            Line2D([], [], color=colour, marker=marker, linestyle="", label=f"the paper, {domain}")
            for domain, (marker, colour) in MARKS.items()
            if domain in present
        ]
        canvas.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)


def _in_family(row: Result) -> tuple[int, str]:
    """The family in the paper's order, everybody else after it."""
    member = row.system.partition(",")[0]
    return (MEMBERS.index(member) if member in MEMBERS else len(MEMBERS), row.system)


SPEAKING_FIGURES = (
    SpeakingFigure(
        "planning",
        "The next factor foretold, where the factor before it was: first guess and first three.",
        PLANNING,
        ("da_hits_1_after", "da_hits_3_after", "em_hits_1_after", "em_hits_3_after"),
    ),
    SpeakingFigure(
        "realization",
        "Replies that show the mechanisms, the act and the expressed emotion they were planned with.",
        REALIZATION,
        ("cm_realized", "da_realized", "em_realized"),
    ),
    SpeakingFigure(
        "family",
        "CoMAE and its family: perplexity a token and likeness to the person's reply.",
        FAMILY,
        ("perplexity_by_token", "bleu_2", "rouge_l"),
    ),
)
