"""PEC's Table 8, Figure 3 and Table 6 (Zhong et al. 2020) with our data.

What persona sentences add, whether they add more in empathetic conversations, and how a ranker does on a
corpus it was not trained on.
"""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from listenwell.corpora.sources import TITLES
from listenwell.results.drawing import BLUE, GREEN, SKY, VERMILION, new_canvas
from listenwell.results.metric_registry import PUBLISHED
from listenwell.results.store import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

R_AT_1, ELSEWHERE, TRAINED = "R@1", "R@1 on ", "trained on "
SENTENCES = re.compile(r"(?:.*: )?(\d+) sentences?(, together)?")
SWAPPED = re.compile(r"(\d+) ?% swapped, (\d+) sentences?")
Point = tuple[int, float, float]
"""Where a point stands: across, up, and its spread over seeds."""


def by_sentences(rows: Sequence[Result], metrics: tuple[str, ...]) -> "Canvas":
    """R@1 against the number of persona sentences: ours, ours with the joint encoder, and the paper's."""
    (name,) = metrics
    ours, joint = [], []
    for row in rows:
        count, is_joint = _sentences(row.system)
        point = (count, row.metric(name) or 0.0, dict(row.spreads).get(name, 0.0))
        if not is_joint:
            ours.append(point)
        if is_joint or not count:  # without a persona both are the same model
            joint.append(point)
    paper = [
        (_sentences(entry.system)[0], entry.value, 0.0)
        for entry in PUBLISHED
        if (entry.task, entry.metric) == ("persona sentences", name)
    ]
    corpus = _corpus(rows[0])
    lines = [
        (f"ours, {corpus}", ours, BLUE, "o-", -15),
        (f"ours with joint hop 0, {corpus}", joint, GREEN, "s-", 7),
        ("CoBERT's paper, PEC, validation", paper, VERMILION, "D--", 7),
    ]
    canvas = new_canvas(7.5, 4.4)
    panel = canvas.subplots()
    for label, points, colour, style, shift in lines:
        if any(count for count, _, _ in points):
            _line(panel, sorted(points), label, colour, style)
            for x, y, _ in sorted(points)[points is joint :]:
                _number(panel, f"{y:.1f}", (x, y), shift, colour)
    panel.set_xticks(sorted({x for _, points, *_ in lines for x, _, _ in points}))
    panel.margins(x=0.06, y=0.14)
    _finish(panel, "persona sentences")
    canvas.legend(loc="outside lower center", ncols=2, frameon=False)
    return canvas


def by_share(rows: Sequence[Result], metrics: tuple[str, ...]) -> "Canvas":
    """PEC's Figure 3: R@1 with and without persona against the share swapped, the difference shaded."""
    names = _measured(rows)
    most = max(_share(row)[1] for row in rows)
    canvas = new_canvas(4.6 * len(names) + 0.6, 4.4)
    panels = canvas.subplots(1, len(names), squeeze=False)[0]
    for panel, name in zip(panels, names, strict=True):
        persona, without = (
            {
                _share(row)[0]: (row.metric(name) or 0.0, dict(row.spreads).get(name, 0.0))
                for row in sorted(rows, key=_share)
                if _share(row)[1] == count
            }
            for count in (most, 0)
        )
        both = sorted(persona.keys() & without.keys())
        if most and both:
            low, high = [without[share][0] for share in both], [persona[share][0] for share in both]
            panel.fill_between(
                both, low, high, color=SKY, alpha=0.25, linewidth=0, label="gain of the persona"
            )
            for share, below, above in zip(both, low, high, strict=True):
                top = max(persona[share], without[share])
                _number(panel, f"{above - below:+.1f}".replace("-", "−"), (share, sum(top)), 6, "black")
        for values, label, colour, style in (
            (persona, f"{most} persona sentences", BLUE, "o-"),
            (without, "no persona", SKY, "s-"),
        ):
            _line(panel, [(share, *pair) for share, pair in values.items()], label, colour, style)
        panel.set_xticks(sorted({*persona, *without}))
        panel.margins(x=0.08, y=0.16)
        panel.set_title(f"on {name.removeprefix(ELSEWHERE) if name != R_AT_1 else _corpus(rows[0])}")
        _finish(panel, "training examples swapped, percent")
    canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return canvas


def _measured(rows: Sequence[Result]) -> list[str]:
    """The metrics that all rows have, corpus by corpus.

    R@1 alone is measured on the training corpus: it adds something only where that is one corpus for all rows
    and is not measured by its name too.
    """
    named = [
        name
        for name, _ in rows[0].metrics
        if name.startswith(ELSEWHERE) and all(row.metric(name) is not None for row in rows)
    ]
    is_new = len({row.corpus for row in rows}) == 1 and f"{ELSEWHERE}{_corpus(rows[0])}" not in named
    return [R_AT_1, *named] if is_new or not named else named


def transfer(rows: Sequence[Result], metrics: tuple[str, ...]) -> "Canvas":
    """R@1 by training and test corpus, ours and PEC's Table 6, as heat maps."""
    (prefix,) = metrics
    ours = {
        (row.system.removeprefix(TRAINED), name.removeprefix(prefix)): (
            value,
            dict(row.spreads).get(name, 0.0),
        )
        for row in rows
        for name, value in row.metrics
        if name.startswith(prefix)
    }
    paper = {}
    for entry in PUBLISHED:
        if (entry.task, entry.metric) == ("transfer", R_AT_1):
            test, _, train = entry.system.partition(f": CoBERT {TRAINED}")
            paper[train, test] = (entry.value, 0.0)
    canvas = new_canvas(10.5, 3.6)
    panels = canvas.subplots(1, 2)
    for panel, title, cells in zip(panels, ("ours", "CoBERT's paper, PEC"), (ours, paper), strict=True):
        _heat_map(panel, cells)
        panel.set_title(title)
    return canvas


def _heat_map(panel: "Axes", cells: dict[tuple[str, str], tuple[float, float]]) -> None:
    """A square for each pair with its value; grey where it was not measured."""
    tests = list(dict.fromkeys(test for _, test in cells))
    trains = sorted(dict.fromkeys(train for train, _ in cells), key=lambda train: train not in tests)
    tests.sort(key=lambda test: trains.index(test) if test in trains else len(trains))
    values = [value for value, _ in cells.values()]
    low, high = min(values), max(*values, min(values) + 1)
    grid = [[cells.get((train, test), (float("nan"), 0.0))[0] for test in tests] for train in trains]
    panel.set_facecolor("#eeeeee")
    panel.imshow(grid, cmap="cividis", vmin=low, vmax=high, aspect="auto")
    for (train, test), (value, spread) in cells.items():
        panel.text(
            tests.index(test),
            trains.index(train),
            f"{value:.1f}" + (f"\n± {spread:.1f}" if spread else ""),
            ha="center",
            va="center",
            color="white" if value < (low + high) / 2 else "black",
        )
    panel.set_xticks(range(len(tests)), _wrapped(tests))
    panel.set_yticks(range(len(trains)), _wrapped(trains))
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    panel.set_xlabel("tested on, R@1 in percent")
    panel.set_ylabel("trained on")


def _wrapped(corpora: Iterable[str]) -> list[str]:
    """Names of corpora on two lines where they are long."""
    return [re.sub(r"(?<=^Empathetic)(?=D)|(?<=^Synthetic-)(?=P)", "\n", corpus) for corpus in corpora]


def _line(panel: "Axes", points: Sequence[Point], label: str, colour: str, style: str) -> None:
    across, up, spreads = zip(*points, strict=True)
    errors = spreads if any(spreads) else None
    panel.errorbar(across, up, yerr=errors, fmt=style, color=colour, capsize=3, label=label)


def _number(panel: "Axes", text: str, point: tuple[float, float], shift: int, colour: str) -> None:
    panel.annotate(
        text,
        point,
        (0, shift),
        textcoords="offset points",
        ha="center",
        fontsize=8.5,
        color=colour,
        zorder=6,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8},
    )


def _finish(panel: "Axes", label: str) -> None:
    panel.set_xlabel(label)
    panel.set_ylabel("R@1 among 100, percent")
    panel.grid(axis="y", color="#dddddd", linewidth=0.8)


def _sentences(system: str) -> tuple[int, bool]:
    """The number of persona sentences, and whether persona and context are encoded jointly."""
    match = SENTENCES.fullmatch(system)
    return (int(match[1]), bool(match[2])) if match else (0, False)


def _share(row: Result) -> tuple[int, int]:
    """The share swapped, in percent, and the number of persona sentences."""
    match = SWAPPED.fullmatch(row.system)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _corpus(row: Result) -> str:
    """A row's corpora as tables call them."""
    return " + ".join(TITLES.get(name, name) for name in row.corpus.split(" + "))
