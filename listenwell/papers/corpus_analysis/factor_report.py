"""Tables and figures of a factor analysis; the same analysis gives the same bytes.

Heat maps use cividis, which reads alike with any colour vision; every cell also shows its value.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from listenwell.labels import EMOTIONS, INTENTS, LEVELS, MECHANISMS
from listenwell.papers.corpus_analysis.factors import WORDS, Analysis, CrossTable
from listenwell.papers.corpus_analysis.words import Word
from listenwell.results.drawing import STYLE, save
from listenwell.results.markdown import Grid

NAMES = {
    "mechanism": "mechanism (CM)",
    "mechanisms": "mechanisms together (CMs)",
    "act": "dialogue act (DA)",
    "tone": "expressed emotion (EM)",
}
ORANGE, BLUE, GREY = "#E69F00", "#0072B2", "#767676"  # Okabe and Ito (2008)
HEAD = """
- A *reply* is a turn of the listener right after another person's. Labels that the corpus does not give are
  predicted by the annotators.
- P(Y | X): in the tables each X is a row, in the figure each X is a column; either adds up to 1.
- I(X; Y): mutual information in bits, with a 95 % interval by bootstrap of dialogues; *independent*
  is what independent factors would show, *of H(Y)* the share of the uncertainty about Y that X removes.
- *typical* words have high log-odds against all other labels (Monroe et al. 2008); *used most* leaves out
  function words.
"""


def page(analysis: Analysis, facts: Mapping[str, str], figures: Sequence[str] = ()) -> str:
    """All tables as Markdown, after the facts and the figures beside the page."""
    lines = [f"- {name}: {' '.join(text.split()).replace('<', '&lt;')}" for name, text in facts.items()]
    parts = [
        "# Factors\n\n",
        "\n".join(lines),
        "\n",
        HEAD,
        *(f"\n![{name}]({name}.svg)\n" for name in figures),
    ]
    tables = [*grids(analysis), *distribution_grids(analysis), *word_grids(analysis)]
    return "".join([*parts, *(f"\n## {grid.title}\n\n{grid.markdown()}" for grid in tables if grid.rows)])


def grids(analysis: Analysis) -> list[Grid]:
    """The mutual information of every pair of factors, and P(Y | X) of each."""
    rows = []
    for table in analysis.tables:
        if information := table.information:
            share = "–" if information.share is None else f"{100 * information.share:.1f} %"
            interval = f"{information.low:.3f} to {information.high:.3f}"
            bits, independent = f"{information.bits:.3f}", f"{information.independent:.3f}"
            pairs = f"{table.counts.to_numpy().sum():,}"
            rows.append((_title(table), table.whose, bits, interval, independent, share, pairs))
    columns = ("P(Y | X)", "in", "I(X; Y), bits", "95 %", "independent", "of H(Y)", "pairs")
    result = [Grid("Mutual information", columns, tuple(rows), frozenset(range(2, 7)))]
    for table in analysis.tables:
        shares = table.conditional.dropna()
        cells = tuple(
            (shown(label), *(f"{share:.3f}" for share in row), f"{table.counts.loc[label].sum():,}")
            for label, row in shares.iterrows()
        )
        headings = (NAMES[table.given], *map(shown, table.counts.columns), "n")
        result.append(
            Grid(f"{_title(table)}, in {table.whose}", headings, cells, frozenset(range(1, len(headings))))
        )
    return result


def distribution_grids(analysis: Analysis) -> list[Grid]:
    """Labels that occur, with counts and shares."""
    result = []
    for distribution in analysis.distributions.values():
        total, title = distribution.total, distribution.title
        counts = [(shown(label), count) for label, count in distribution.counts.items() if count]
        rows = tuple((label, f"{count:,}", f"{100 * count / total:.1f} %") for label, count in counts)
        heading = f"{title[0].upper()}{title[1:]} (n = {total:,})"
        result.append(Grid(heading, ("label", "count", "share"), rows, frozenset({1, 2})))
    return result


def word_grids(analysis: Analysis) -> list[Grid]:
    """Typical and most-used words of each label, with their counts."""

    def counted(words: Sequence[Word]) -> str:
        return ", ".join(f"{shortened(word.word, 24)} ({word.count:,})" for word in words[:8]) or "–"

    result = []
    for name, labels in analysis.words.items():
        rows = [(shown(w.label), counted(w.typical), counted(w.used), f"{w.total:,}") for w in labels]
        title = WORDS[name][0][0].upper() + WORDS[name][0][1:]
        result.append(Grid(title, ("label", "typical", "used most", "words"), tuple(rows), frozenset({3})))
    return result


def draw(analysis: Analysis, heading: str, folder: Path) -> list[Path]:
    """Write every figure that has something to show as SVG and PNG; returns the files."""
    files = []
    # A dollar sign in a name is a dollar sign, not mathematics.
    with matplotlib.rc_context({**STYLE, "text.parse_math": False}), warnings.catch_warnings():
        # Words in scripts that the font lacks become boxes; factors.md has them as they are.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        for name, make in FIGURES.items():
            if (canvas := make(analysis)) is not None:
                canvas.suptitle(heading, x=0.01, ha="left", fontsize=10, color="#444444")
                files += save(canvas, folder, name)
    return files


def heat_maps(analysis: Analysis) -> Figure | None:
    """CoMAE's Figure 2: P(Y | X) of three pairs; each column is an X and adds up to 1."""
    tables = [table for table in analysis.tables[:3] if table.information]
    if not tables:
        return None
    widths = [len(table.counts) for table in tables]
    canvas = Figure(figsize=(3.4 + 1.1 * len(tables) + 0.62 * sum(widths), 6.6), layout="constrained")
    panels = canvas.subplots(1, len(tables), width_ratios=[width + 0.9 for width in widths], squeeze=False)[0]
    top = max(float(table.conditional.max(axis=None)) for table in tables)
    for panel, table in zip(panels, tables, strict=True):
        values = table.conditional.to_numpy().T  # (Y, X)
        image = panel.imshow(values, cmap="cividis", vmin=0, vmax=top, aspect="auto")
        for (y, x), value in np.ndenumerate(values):
            text = "–" if np.isnan(value) else "0" if value == 0 else f"{value:.2f}".removeprefix("0")
            colour = "white" if value < 0.55 * top else "black"
            panel.text(x, y, text, ha="center", va="center", fontsize=8.5, color=colour)
        labels = [f"{shown(label)} ({count:,})" for label, count in table.counts.sum(axis=1).items()]
        panel.set_xticks(range(len(labels)), labels, rotation=45, ha="right", rotation_mode="anchor")
        panel.set_yticks(range(len(table.counts.columns)), table.counts.columns)
        panel.tick_params(length=0)
        panel.spines[:].set_visible(False)
        title = _title(table).replace(": ", ":\n")
        panel.set_title(f"{title}\nI = {_bits(table)}", fontsize=10)
    canvas.colorbar(image, ax=list(panels), shrink=0.6, aspect=30, pad=0.015, label="P(Y | X)")
    return canvas


def bars(
    names: Sequence[str], colour: Callable[[str], str], key: str = "percent"
) -> Callable[[Analysis], Figure | None]:
    """A figure of some distributions beside each other, those that the corpus has."""

    def figure(analysis: Analysis) -> Figure | None:
        distributions = [analysis.distributions[name] for name in names if name in analysis.distributions]
        if not distributions:
            return None
        rows = max(len(distribution.counts) for distribution in distributions)
        canvas = Figure(
            figsize=(1.0 + 4.6 * len(distributions), 1.4 + 0.235 * max(rows, 8)), layout="constrained"
        )
        panels = canvas.subplots(1, len(distributions), squeeze=False)[0]
        for panel, distribution in zip(panels, distributions, strict=True):
            counts = distribution.counts
            order = [level for level in LEVELS if level in counts] or list(counts)  # levels keep their order
            shares = 100 * pd.Series(counts).loc[order] / distribution.total
            drawn = panel.barh(
                [shown(label) for label in shares.index], shares, color=list(map(colour, shares.index))
            )
            panel.bar_label(drawn, [f"{share:.1f}" for share in shares], padding=3, fontsize=8.5)
            panel.invert_yaxis()
            panel.margins(x=0.15, y=0.01)
            panel.set_xlabel(key)
            panel.set_title(f"{distribution.title}\n(n = {distribution.total:,})", fontsize=10)
        return canvas

    return figure


def shown(label: str) -> str:
    """A label as people read it."""
    return label.replace("_", " ")


def shortened(word: str, longest: int) -> str:
    """A word that fits; corpora hold some of a hundred letters."""
    return word if len(word) <= longest else f"{word[: longest - 1]}…"


def _title(table: CrossTable) -> str:
    of, given = (NAMES[name].rstrip(")").split(" (") for name in (table.of, table.given))
    return f"P({of[1]} | {given[1]}): {of[0]} given {given[0]}"


def _bits(table: CrossTable) -> str:
    information = table.information
    return (
        f"{information.bits:.3f} bits ({information.low:.3f} to {information.high:.3f})"
        if information
        else "–"
    )


def _kind(label: str) -> str:
    return ORANGE if label in EMOTIONS else BLUE if label in INTENTS else GREY


FIGURES: dict[str, Callable[[Analysis], Any]] = {
    "heat-maps": heat_maps,
    "emotions": bars(("emotion", "emotion_heard"), _kind),
    "emotions-and-intents": bars(
        ("intent_speaker", "intent_listener", "intent_last"),
        _kind,
        "percent (orange: emotions, blue: intents)",
    ),
    "reply-factors": bars(("act", "tone", "mechanisms"), lambda label: BLUE),
    "mechanism-levels": bars([f"level_{name}" for name in MECHANISMS], lambda label: BLUE),
}
"""By file name; None where a figure has nothing to show."""
