"""Bars and scatter plots of results, with published numbers as marks.

Colours are Okabe and Ito's (2008), which people with any colour vision can tell apart; markers differ too.
matplotlib is imported only when something is drawn.
"""

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from listenwell.evaluation.report.names import display_name
from listenwell.results.drawing import BLUE, GREEN, ORANGE, PINK, VERMILION, new_canvas
from listenwell.results.metric_registry import METRICS, PUBLISHED
from listenwell.results.store import Result, source

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

COLOURS = {"ours": BLUE, "baseline": ORANGE, "people": GREEN}
MARKERS = {"ours": "D", "baseline": "o", "people": "s"}
PAPERS = {"": ("D", VERMILION), "Reddit happy": ("D", VERMILION), "Reddit offmychest": ("o", PINK)}
"""Marker and colour of a published number, by the part of the corpus that its name begins with."""
_OFFSETS = ((9, 0), (-9, 0), (0, 9), (0, -9), *((x, y) for y in (6, -6, 14, -14, 26, -26) for x in (9, -9)))
"""Where the label of a point may stand, in points; the first is also the last resort."""


def published_beside(row: Result, metric: str) -> list[tuple[str, str, float]]:
    """The published numbers of a row's system: corpus or question, system and value.

    A test split counts before a validation split.
    """
    entries = [
        (*entry.system.rpartition(": ")[::2], entry.value)
        for entry in PUBLISHED
        if (entry.task, entry.metric) == (row.task, metric) and row.system in (entry.beside, entry.system)
    ]
    return [entry for entry in entries if "validation" not in entry[0]] or entries


def metric_bars(rows: Sequence[Result], metrics: tuple[str, ...]) -> "Canvas":
    """One panel for each metric, one bar for each system, a mark for each published number."""
    shown = [name for name in metrics if any(row.metric(name) is not None for row in rows)]
    canvas = new_canvas(3.2 + 2.4 * len(shown), 1.5 + 0.34 * len(rows))
    panels = canvas.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for panel, name in zip(panels, shown, strict=True):
        _bars(panel, rows, name)
        label, unit = METRICS[name].label, METRICS[name].unit.split(",")[0]
        panel.set_title(f"{label},\n{unit}" if len(label) > 15 else f"{label}, {unit}")
    panels[0].set_yticks(range(len(rows)), [display_name(row.system) for row in rows])
    _legend(canvas, rows, shown)
    return canvas


def corpus_bars(rows: Sequence[Result], metrics: tuple[str, ...]) -> "Canvas":
    """One panel for each corpus ("corpus: system"), the best system first."""
    (name,) = metrics
    corpora: dict[str, list[Result]] = {}
    for row in sorted(rows, key=lambda row: (-(row.metric(name) or 0.0), row.system)):
        corpora.setdefault(row.system.partition(": ")[0], []).append(row)
    most = max(map(len, corpora.values()))
    canvas = new_canvas(5.6 * len(corpora), 1.5 + 0.34 * most)
    panels = canvas.subplots(1, len(corpora), squeeze=False, sharex=True)[0]
    for panel, (corpus, own) in zip(panels, sorted(corpora.items()), strict=True):
        _bars(panel, own, name)
        panel.set_ylim(most - 0.4, -0.6)  # bars of one width, however many there are
        panel.set_yticks(range(len(own)), [display_name(row.system).partition(": ")[2] for row in own])
        panel.set_title(corpus)
        panel.set_xlabel("R@1 among 100, percent")
    _legend(canvas, rows, [name])
    return canvas


def question_bars(rows: Sequence[Result], metrics: tuple[str, ...]) -> "Canvas":
    """One bar for each question, the best first, the published systems named after it."""
    (name,) = metrics
    ordered = sorted(rows, key=lambda row: (-(row.metric(name) or 0.0), row.system))
    canvas = new_canvas(9, 1.4 + 0.42 * len(rows))
    panel = canvas.subplots()
    _bars(panel, ordered, name)
    for index, row in enumerate(ordered):
        papers = sorted(published_beside(row, name), key=lambda paper: paper[2])
        end = max([row.metric(name) or 0.0, *(value for _, _, value in papers)])
        names = [f"{system} {value:.1f}" for _, system, value in papers]
        lines = ["; ".join(names[first : first + 2]) for first in range(0, len(names), 2)]
        panel.annotate(
            "\n".join(lines),
            (end, index),
            (10, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color="#444444",
        )
    panel.set_yticks(range(len(rows)), [row.system.partition(": ")[0] for row in ordered])
    panel.set_xlim(0, 125)
    panel.set_xticks(range(0, 101, 20))
    panel.set_xlabel("accuracy, percent")
    _legend(canvas, rows, [name])
    return canvas


def _bars(panel: "Axes", rows: Sequence[Result], name: str) -> None:
    """A bar for each row that has the metric, its value in or after it, its published numbers as marks."""
    kind = METRICS[name]
    papers = [published_beside(row, name) for row in rows]
    most = max([row.metric(name) or 0.0 for row in rows] + [paper[2] for own in papers for paper in own])
    for index, (row, own) in enumerate(zip(rows, papers, strict=True)):
        if (value := row.metric(name)) is None:
            continue
        spread = dict(row.spreads).get(name, 0.0)
        panel.barh(index, value, color=COLOURS[source(row)], height=0.72)
        if spread:
            panel.errorbar(value, index, xerr=spread, ecolor="#222222", capsize=3, zorder=4)
        is_inside = value > 0.25 * most
        panel.annotate(
            kind.show(value),
            (0 if is_inside else max([value + spread, *(paper[2] for paper in own)]), index),
            (4 if is_inside or not own else 9, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color="white" if is_inside and source(row) != "baseline" else "black",
        )
        for corpus, _, published in own:
            panel.plot(published, index, zorder=5, **_mark(row, corpus))
    panel.set_xlim(0, 1.08 * most or 1.0)
    panel.set_ylim(len(rows) - 0.4, -0.6)
    panel.tick_params(axis="y", length=0)


def _mark(row: Result, corpus: str) -> dict[str, Any]:
    """How a published number looks: hollow where it was measured on another corpus than the row names."""
    marker, colour = PAPERS.get(corpus, PAPERS[""])
    is_same = ": " not in row.system or corpus == row.system.partition(": ")[0]
    return {
        "marker": marker,
        "linestyle": "",
        "color": colour,
        "markersize": 6.5,
        "markeredgecolor": "white" if is_same else colour,
        "markerfacecolor": colour if is_same else "white",
    }


def _legend(canvas: "Canvas", rows: Sequence[Result], metrics: Sequence[str] = ()) -> None:
    """The sources of the bars or points, and the corpora of the published numbers."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    present = {source(row) for row in rows}
    handles: list[Any] = [
        Patch(color=colour, label=kind)
        if metrics
        else Line2D([], [], color=colour, marker=MARKERS[kind], linestyle="", markersize=8, label=kind)
        for kind, colour in COLOURS.items()
        if kind in present
    ]
    marks = {}
    for row, name in product(rows, metrics):
        for corpus, _, _ in published_beside(row, name):
            style = _mark(row, corpus)
            is_same = style["markeredgecolor"] == "white" and corpus not in PAPERS
            label = "paper" if is_same else f"paper, {corpus.removesuffix(', validation')}"
            marks[label] = Line2D([], [], label=label, **style)
    handles += [marks[label] for label in sorted(marks)]
    if len(handles) > 1:
        canvas.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)


def scatter(rows: Sequence[Result], metrics: tuple[str, ...]) -> "Canvas":
    """A labelled point for each system."""
    canvas = new_canvas(8, 5.6)
    panel = canvas.subplots()
    across, up = (METRICS[name] for name in metrics)
    points = [(row.metric(across.name) or 0.0, row.metric(up.name) or 0.0) for row in rows]
    for row, (x, y) in zip(rows, points, strict=True):
        panel.scatter(x, y, color=COLOURS[source(row)], marker=MARKERS[source(row)], s=60, zorder=3)
    panel.set_xlabel(f"{across.label}, {across.unit}")
    panel.set_ylabel(f"{up.label}, {up.unit}")
    panel.set_xlim(0, 104)
    panel.set_ylim(0, 104)
    panel.grid(color="#dddddd", linewidth=0.8, zorder=0)
    _legend(canvas, rows)
    _label_points(canvas, panel, [display_name(row.system) for row in rows], points)
    return canvas


def _label_points(
    canvas: "Canvas", panel: "Axes", names: Sequence[str], points: Sequence[tuple[float, float]]
) -> None:
    """Put each name beside its point, at the first offset where it covers no point and no other name."""
    from matplotlib.transforms import Bbox

    canvas.draw_without_rendering()  # so that the panel has its final size
    taken = [Bbox.from_bounds(x - 6, y - 6, 12, 12) for x, y in panel.transData.transform(points)]
    for name, point in zip(names, points, strict=True):
        texts = [_text(panel, name, point, offset) for offset in _OFFSETS]
        boxes = [text.get_window_extent() for text in texts]
        free = [
            index
            for index, box in enumerate(boxes)
            if panel.bbox.x0 < box.x0 and box.x1 < panel.bbox.x1 and not any(map(box.overlaps, taken))
        ]
        best = free[0] if free else 0
        for index, text in enumerate(texts):
            if index != best:
                text.remove()
        taken.append(boxes[best])


def _text(panel: "Axes", name: str, point: tuple[float, float], offset: tuple[int, int]) -> Any:  # noqa: ANN401
    """A label at an offset from its point; it grows away from the point."""
    across, up = offset
    text = panel.annotate(
        name,
        point,
        offset,
        textcoords="offset points",
        ha="left" if across > 0 else "right" if across < 0 else "center",
        va="bottom" if up > 0 else "top" if up < 0 else "center",
        fontsize=9.5,
    )
    text.set_in_layout(False)
    return text
