"""The figure of two listeners beside random sets (Zhong et al. 2020, Figure 1), and its table."""

import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from listenwell.papers.corpus_analysis.listeners import Comparison, Pair
from listenwell.results.drawing import STYLE, need_matplotlib, save
from listenwell.results.markdown import Grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

COLOURS = {"listeners": "#0072B2", "random": "#E69F00"}
"""Okabe and Ito's (2008), blue and orange as in the paper; the shapes differ too."""


def finding(comparison: Comparison) -> str:
    """The paper's sentence with the corpus's numbers."""
    count, total = comparison.lower, len(comparison.pairs)
    if comparison.by == "together":
        return f"Two listeners' replies are {'less' if count else 'no less'} alike than two random sets."
    shown = f"Two listeners' replies are less alike than two random sets for {count} of {total} emotions"
    return f"{shown}, for {comparison.lowest} of them in every draw."


def grid(comparison: Comparison) -> Grid:
    """A row for each emotion, the largest difference first."""
    rows = [
        (
            pair.emotion,
            f"{pair.similarity:.3f}",
            f"{pair.mean:.3f}",
            f"{pair.spread:.3f}",
            f"{pair.similarity - pair.mean:+.3f}".replace("-", "−"),
            _sizes(pair),
            f"{pair.pool:,}",
        )
        for pair in _ordered(comparison.pairs)
    ]
    columns = ("emotion", "two listeners", "random sets", "± (SD)", "difference", "replies", "of all")
    return Grid("TF-IDF similarity of two sets of replies", columns, tuple(rows), frozenset(range(1, 7)))


def draw(comparison: Comparison, heading: str, folder: Path) -> list[Path]:
    """Write the figure as SVG and PNG; returns the files.

    Args:
        comparison: at least one pair.
        heading: what was compared, to stand above the figure.
        folder: gets the files.
    """
    need_matplotlib()
    import matplotlib

    # A dollar sign in a name is a dollar sign, not mathematics.
    with matplotlib.rc_context({**STYLE, "text.parse_math": False}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        return save(figure(comparison, heading), folder, "listeners")


def figure(comparison: Comparison, heading: str) -> "Canvas":
    """A line for each emotion: where the two listeners stand, and where random sets do."""
    from matplotlib.figure import Figure as Canvas

    pairs = _ordered(comparison.pairs)
    canvas = Canvas(figsize=(8, 2.1 + 0.24 * len(pairs)), layout="constrained")
    canvas.get_layout_engine().set(w_pad=0.1, h_pad=0.08)  # type: ignore[union-attr, call-arg]
    panel = canvas.subplots()
    _lines(panel, pairs)
    panel.set_title(textwrap.fill(finding(comparison), 75), fontsize=10)
    panel.set_xlabel("TF-IDF similarity of two sets of replies")
    canvas.legend(loc="outside lower center", ncols=2, frameon=False)
    canvas.suptitle(heading, x=0.01, ha="left", fontsize=10, color="#444444")
    return canvas


def _lines(panel: "Axes", pairs: Sequence[Pair]) -> None:
    heights = range(len(pairs))
    means, alike = [pair.mean for pair in pairs], [pair.similarity for pair in pairs]
    panel.hlines(heights, means, alike, color="#cccccc", linewidth=2, zorder=1)
    panel.errorbar(
        means,
        heights,
        xerr=[pair.spread for pair in pairs],
        fmt="D",
        markersize=6.5,
        linewidth=1.2,
        color=COLOURS["random"],
        zorder=2,
        label=f"two random sets, mean ± SD of {len(pairs[0].random)} draws",
    )
    blue = COLOURS["listeners"]
    panel.plot(alike, heights, "o", markersize=5, color=blue, zorder=3, label="two listeners")
    low = min(*alike, *(pair.mean - pair.spread for pair in pairs))
    high = max(*alike, *(pair.mean + pair.spread for pair in pairs))
    room = max(0.04 * (high - low), (0.1 - high + low) / 2)  # no less than a tenth is shown
    panel.set_xlim(max(low - room, -0.005), min(high + room, 1.005))  # it lies between 0 and 1
    panel.set_yticks(heights, [pair.emotion for pair in pairs])
    panel.set_ylim(len(pairs) - 0.4, -0.6)
    panel.tick_params(axis="y", length=0)
    panel.grid(axis="x", color="#eeeeee")
    panel.set_axisbelow(True)
    counts = panel.secondary_yaxis("right")
    counts.set_yticks(heights, [_sizes(pair) for pair in pairs], fontsize=8.5, color="#444444")
    counts.tick_params(length=0)
    counts.spines[:].set_visible(False)
    panel.text(1.01, 1, "replies", fontsize=8.5, color="#444444", va="bottom", transform=panel.transAxes)


def _ordered(pairs: Sequence[Pair]) -> list[Pair]:
    """The emotions where people differ most from chance first."""
    return sorted(pairs, key=lambda pair: pair.similarity - pair.mean)


def _sizes(pair: Pair) -> str:
    return f"{pair.replies[0]:,} + {pair.replies[1]:,}"
