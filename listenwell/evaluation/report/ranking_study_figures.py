"""PEC's Table 8, Figure 3 and Table 6 (Zhong et al. 2020) with our data: what persona sentences give, whether
they give more where talks are empathetic, and how a ranker does on a corpus that it has not learned from.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from listenwell.corpora.sources import TITLES
from listenwell.results.published import PUBLISHED
from listenwell.results.published_ranking import PERSONA_SENTENCES, TRANSFER
from listenwell.results.store import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

OURS, PAPER, WITHOUT, TOGETHER = "#0072B2", "#D55E00", "#56B4E9", "#009E73"
"""Okabe and Ito's (2008)."""
METRIC, ELSEWHERE = "R@1", "R@1 on "
TRAINED = "trained on "
SENTENCES = re.compile(r"(\d+) sentences?(, together)?")
SWAPPED = re.compile(r"(\d+) ?% swapped, (\d+) sentences?")


def by_sentences(rows: Sequence[Result]) -> "Canvas":
    """R@1 against the number of persona sentences, ours with its spread, and the paper's line.

    A reader that takes context and persona together has a line of its own, which begins where nobody has a
    sentence and both are one.
    """
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(7.5, 4.4), layout="constrained")
    panel = canvas.subplots()
    plain = [row for row in rows if not _is_joint(row.system)]
    both = [row for row in rows if _is_joint(row.system) or not _number(row.system)]
    handles: list[Any] = []
    names, ticks = [], set[int]()
    for part, colour, suffix in ((plain, OURS, ""), (both, TOGETHER, ", hop 0 of both together")):
        if not any(_number(row.system) for row in part):
            continue
        points = sorted((_number(row.system), r_at_1(row), spread_of(row)) for row in part)
        across, up, spreads = zip(*points, strict=True)
        handles.append(panel.errorbar(across, up, yerr=spreads, color=colour, marker="o", capsize=3))
        names.append(f"ours, {_corpus(rows[0])}{suffix}")
        # Two lines: the names of the lower one stand below it, and the point they share is named once.
        _name_points(panel, points[1:] if ticks else points, colour, below=part is plain and len(both) > 1)
        ticks.update(across)
    papers = sorted(
        (_number(entry.system), entry.value)
        for entry in PUBLISHED
        if entry.task == PERSONA_SENTENCES and entry.metric == METRIC
    )
    handles += panel.plot(*zip(*papers, strict=True), color=PAPER, marker="D", linestyle="--")
    names.append("CoBERT's paper, PEC, validation")
    _name_points(panel, [(x, y, 0.0) for x, y in papers], PAPER)
    panel.set_xticks(sorted(ticks | {x for x, _ in papers}))
    panel.margins(x=0.07, y=0.16)
    panel.set_xlabel("persona sentences")
    panel.set_ylabel("R@1 among 100, percent")
    panel.grid(axis="y", color="#dddddd", linewidth=0.8)
    canvas.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
    return canvas


def _name_points(
    panel: "Axes", points: Sequence[tuple[int, float, float]], colour: str, below: bool = False
) -> None:
    """Each figure above its point and its spread, to the left of it where the line rises from there; below
    it where the line comes down to it, or where all but the first shall be."""
    for number, (x, y, spread) in enumerate(points):
        rises = number + 1 < len(points) and points[number + 1][1] > y
        fell = number > 0 and (below or points[number - 1][1] > y)
        aside = not fell and (rises or below)
        panel.annotate(
            f"{y:.1f}",
            (x, y - spread if fell else y + spread),
            (2 if aside else 0, -6 if fell else 6),
            textcoords="offset points",
            ha="right" if aside else "center",
            va="top" if fell else "baseline",
            fontsize=8.5,
            color=colour,
        )


def by_share(rows: Sequence[Result]) -> "Canvas":
    """PEC's Figure 3: R@1 with and without persona against the share swapped, what persona gives shaded."""
    from matplotlib.figure import Figure as Canvas

    found = sorted(((_share(row), row) for row in rows), key=lambda one: one[0])
    most = max(count for (_, count), _ in found)
    metrics = _places(rows)
    canvas = Canvas(figsize=(4.6 * len(metrics) + 0.6, 4.4), layout="constrained")
    for panel, name in zip(canvas.subplots(1, len(metrics), squeeze=False)[0], metrics, strict=True):
        lines = {
            count: {share: row for (share, sentences), row in found if sentences == count}
            for count in (most, 0)
        }
        _gain(panel, name, lines[most], lines[0])
        panel.set_title(f"on {name.removeprefix(ELSEWHERE) if name != METRIC else _corpus(rows[0])}")
    handles, labels = canvas.axes[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return canvas


def _places(rows: Sequence[Result]) -> list[str]:
    """The metrics that all rows have, corpus by corpus.

    R@1 alone is measured on what was learned from: it says something only where that is one corpus for all,
    and nothing new where that corpus is measured by its name.
    """
    named = [
        name
        for name, _ in rows[0].metrics
        if name.startswith(ELSEWHERE) and all(row.metric(name) is not None for row in rows)
    ]
    corpora = {_corpus(row) for row in rows}
    is_new = len(corpora) == 1 and f"{ELSEWHERE}{_corpus(rows[0])}" not in named
    return [METRIC, *named] if is_new or not named else named


def _gain(panel: "Axes", name: str, with_persona: dict[int, Result], without: dict[int, Result]) -> None:
    """Two lines with their spreads; where both are known, what lies between them is shaded and named."""
    most = _share(next(iter(with_persona.values())))[1] if with_persona else 0
    both = sorted(with_persona.keys() & without.keys())
    if most and both:
        above, below = (
            [lines[share].metric(name) or 0.0 for share in both] for lines in (with_persona, without)
        )
        panel.fill_between(
            both, below, above, color=WITHOUT, alpha=0.25, linewidth=0, label="what persona gives"
        )
        for share, high, low in zip(both, above, below, strict=True):
            spread = dict((with_persona if high > low else without)[share].spreads).get(name, 0.0)
            panel.annotate(
                f"{high - low:+.1f}".replace("-", "−"),
                (share, max(high, low) + spread),
                (0, 6),
                textcoords="offset points",
                ha="center",
                fontsize=9,
            )
    for lines, label, colour, marker in (
        (with_persona, f"{most} persona sentences", OURS, "o"),
        (without, "no persona", WITHOUT, "s"),
    ):
        shares = sorted(lines)
        values = [lines[share].metric(name) or 0.0 for share in shares]
        spreads = [dict(lines[share].spreads).get(name, 0.0) for share in shares]
        panel.errorbar(shares, values, yerr=spreads, color=colour, marker=marker, capsize=3, label=label)
    panel.set_xticks(sorted({*with_persona, *without}))
    panel.margins(x=0.08, y=0.16)
    panel.set_xlabel("training examples swapped, percent")
    panel.set_ylabel("R@1 among 100, percent")
    panel.grid(axis="y", color="#dddddd", linewidth=0.8)


def across_corpora(rows: Sequence[Result]) -> "Canvas":
    """R@1 by what was learned from and what was tested, ours and PEC's Table 6, as heat maps."""
    from matplotlib.figure import Figure as Canvas

    ours = {
        (row.system.removeprefix(TRAINED), name.removeprefix(ELSEWHERE)): (value, dict(row.spreads).get(name))
        for row in rows
        for name, value in row.metrics
        if name.startswith(ELSEWHERE)
    }
    theirs: dict[tuple[str, str], tuple[float, float | None]] = {}
    for entry in PUBLISHED:
        if entry.task == TRANSFER and entry.metric == METRIC:
            test, _, train = entry.system.partition(f": CoBERT {TRAINED}")
            theirs[train, test] = (entry.value, None)
    maps = [("ours", ours), ("CoBERT's paper, PEC", theirs)]
    widths = [max(3, len({test for _, test in cells})) + 1 for _, cells in maps]
    height = max(3, *(len({train for train, _ in cells}) for _, cells in maps))
    canvas = Canvas(figsize=(1.35 * sum(widths) + 1, 0.75 * height + 1.6), layout="constrained")
    for panel, (title, cells) in zip(canvas.subplots(1, 2, width_ratios=widths), maps, strict=True):
        _heat(panel, cells)
        panel.set_title(title)
    return canvas


def _heat(panel: "Axes", cells: dict[tuple[str, str], tuple[float, float | None]]) -> None:
    """A square a pair, its figure in it; grey where it was not measured."""
    trains = list(dict.fromkeys(train for train, _ in cells))
    tests = list(dict.fromkeys(test for _, test in cells))
    # What is tested stands in the order of what was learned from: home is the diagonal.
    trains.sort(key=lambda train: train not in tests)
    tests.sort(key=lambda test: trains.index(test) if test in trains else len(trains))
    values = [value for value, _ in cells.values()]
    low = min(values)
    high = max(*values, low + 1)
    grid = [[cells.get((train, test), (float("nan"), None))[0] for test in tests] for train in trains]
    panel.set_facecolor("#eeeeee")
    panel.imshow(grid, cmap="cividis", vmin=low, vmax=high, aspect="auto")
    for (train, test), (value, spread) in cells.items():
        dark = value < (low + high) / 2
        panel.text(
            tests.index(test),
            trains.index(train),
            f"{value:.1f}" + (f"\n± {spread:.1f}" if spread else ""),
            ha="center",
            va="center",
            fontsize=9.5,
            color="white" if dark else "black",
        )
    panel.set_xticks(range(len(tests)), [_wrapped(test) for test in tests])
    panel.set_yticks(range(len(trains)), [_wrapped(train) for train in trains])
    panel.tick_params(length=0)
    for spine in panel.spines.values():
        spine.set_visible(False)
    panel.set_xlabel("tested on, R@1 in percent")
    panel.set_ylabel("trained on")


def _wrapped(name: str) -> str:
    """A corpus's name on two lines where it is long and has a place to break."""
    if len(name) <= 12:
        return name
    parts = re.split(r"(?<=[\s-])|(?<=[a-z])(?=[A-Z])", name)
    hidden_state = min(range(1, len(parts) + 1), key=lambda at: abs(len("".join(parts[:at])) - len(name) / 2))
    return "\n".join(
        part.strip() for part in ("".join(parts[:hidden_state]), "".join(parts[hidden_state:])) if part
    )


def r_at_1(row: Result) -> float:
    """Its R@1, in percent."""
    return row.metric(METRIC) or 0.0


def spread_of(row: Result) -> float:
    """The standard deviation of its R@1 over seeds; 0 for a single one."""
    return dict(row.spreads).get(METRIC, 0.0)


def _number(system: str) -> int:
    found = SENTENCES.search(system)
    return int(found[1]) if found else 0


def _is_joint(system: str) -> bool:
    found = SENTENCES.search(system)
    return bool(found and found[2])


def _share(row: Result) -> tuple[int, int]:
    """The share swapped, in percent, and the number of persona sentences."""
    found = SWAPPED.fullmatch(row.system)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _corpus(row: Result) -> str:
    """A row's corpora as tables call them."""
    return " + ".join(TITLES.get(name, name) for name in row.corpus.split(" + "))
