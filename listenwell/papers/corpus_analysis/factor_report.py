"""Tables and figures of a factor analysis; the same analysis gives the same bytes.

Heat maps use cividis, which reads alike with any colour vision; every cell also shows its value.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from listenwell.files import written_whole
from listenwell.labels import EMOTIONS, INTENTS, LEVELS, MECHANISMS
from listenwell.papers.corpus_analysis.factors import WORDS, Analysis, CrossTable
from listenwell.papers.corpus_analysis.words import Word
from listenwell.results.drawing import BLUE, ORANGE, STYLE, save
from listenwell.results.markdown import Grid

NAMES = {
    "mechanism": ("mechanism", "CM"),
    "mechanisms": ("mechanisms together", "CMs"),
    "act": ("dialogue act", "DA"),
    "expressed_emotion": ("expressed emotion", "EM"),
}
GREY = "#767676"
HEAD = """
- A *reply* is a turn of the listener right after another person's. Labels that the corpus does not give are
  predicted by the annotators.
- P(Y | X): in the tables each X is a row, in the figure each X is a column; either adds up to 1.
- I(X; Y): mutual information in bits, with a 95 % interval by bootstrap of dialogues; *independent*
  is what independent factors would show, *of H(Y)* the share of the uncertainty about Y that X removes.
- *typical* words have high log-odds against all other labels (Monroe et al. 2008); *used most* leaves out
  function words.
"""


def write_report(analysis: Analysis, heading: str, facts: Mapping[str, str], folder: Path) -> None:
    """Write the figures, and factors.md with all tables."""
    counts = f"dialogues: {analysis.dialogues:,} · replies: {analysis.replies:,}"
    figures = dict.fromkeys(file.stem for file in draw(analysis, f"{heading} · {counts}", folder))
    with written_whole(folder / "factors.md") as file:
        file.write(page(analysis, facts, list(figures)).encode())


def page(analysis: Analysis, facts: Mapping[str, str], figures: Sequence[str] = ()) -> str:
    """All tables as Markdown, after the facts and the figures beside the page."""
    lines = [f"- {name}: {' '.join(text.split()).replace('<', '&lt;')}\n" for name, text in facts.items()]
    images = [f"\n![{name}]({name}.svg)\n" for name in figures]
    grids = [*cross_grids(analysis), *distribution_grids(analysis), *word_grids(analysis)]
    tables = [f"\n## {grid.title}\n\n{grid.markdown()}" for grid in grids if grid.rows]
    return "".join(["# Factors\n\n", *lines, HEAD, *images, *tables])


def cross_grids(analysis: Analysis) -> list[Grid]:
    """The mutual information of every pair of factors, and P(Y | X) of each."""
    rows, grids = [], []
    for table in analysis.tables:
        if information := table.information:
            share = "–" if information.share is None else f"{100 * information.share:.1f} %"
            interval = f"{information.low:.3f} to {information.high:.3f}"
            bits, independent = f"{information.bits:.3f}", f"{information.independent:.3f}"
            pairs = f"{table.counts.to_numpy().sum():,}"
            rows.append((_title(table), table.whose, bits, interval, independent, share, pairs))
        totals = table.counts.sum(axis=1).map("{:,}".format).rename("n")
        cells = table.conditional.dropna().map("{:.3f}".format).join(totals)
        headings = ("{} ({})".format(*NAMES[table.x]), *map(shown, cells.columns))
        shares = tuple((shown(label), *row) for label, *row in cells.itertuples())
        numbers = frozenset(range(1, len(headings)))
        grids.append(Grid(f"{_title(table)}, in {table.whose}", headings, shares, numbers))
    columns = ("P(Y | X)", "in", "I(X; Y), bits", "95 %", "independent", "of H(Y)", "pairs")
    return [Grid("Mutual information", columns, tuple(rows), frozenset(range(2, 7))), *grids]


def distribution_grids(analysis: Analysis) -> list[Grid]:
    """Labels that occur, with counts and shares."""
    grids = []
    for distribution in analysis.distributions.values():
        rows = [
            (shown(label), f"{count:,}", f"{100 * count / distribution.total:.1f} %")
            for label, count in distribution.counts.items()
            if count
        ]
        title = f"{_capitalized(distribution.title)} (n = {distribution.total:,})"
        grids.append(Grid(title, ("label", "count", "share"), tuple(rows), frozenset({1, 2})))
    return grids


def word_grids(analysis: Analysis) -> list[Grid]:
    """Typical and most-used words of each label, with their counts."""

    def counted(words: Sequence[Word]) -> str:
        return ", ".join(f"{shortened(word.word, 24)} ({word.count:,})" for word in words[:8]) or "–"

    grids = []
    for name, labels in analysis.words.items():
        rows = [(shown(w.label), counted(w.typical), counted(w.used), f"{w.total:,}") for w in labels]
        columns = ("label", "typical", "used most", "words")
        grids.append(Grid(_capitalized(WORDS[name][0]), columns, tuple(rows), frozenset({3})))
    return grids


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
        if information := table.information:
            bits = f"{information.bits:.3f} bits ({information.low:.3f} to {information.high:.3f})"
            title = _title(table).replace(": ", ":\n")
            panel.set_title(f"{title}\nI = {bits}", fontsize=10)
    canvas.colorbar(image, ax=list(panels), shrink=0.6, aspect=30, pad=0.015, label="P(Y | X)")
    return canvas


def bars(analysis: Analysis, names: Sequence[str], by_kind: bool = False) -> Figure | None:
    """Some distributions beside each other, those that the corpus has; `by_kind` colours the labels."""
    distributions = [analysis.distributions[name] for name in names if name in analysis.distributions]
    if not distributions:
        return None
    rows = max(8, *(len(distribution.counts) for distribution in distributions))
    canvas = Figure(figsize=(1.0 + 4.6 * len(distributions), 1.4 + 0.235 * rows), layout="constrained")
    panels = canvas.subplots(1, len(distributions), squeeze=False)[0]
    for panel, distribution in zip(panels, distributions, strict=True):
        counts = distribution.counts
        order = [level for level in LEVELS if level in counts] or list(counts)  # levels keep their order
        shares = 100 * pd.Series(counts).loc[order] / distribution.total
        colours = [_colour(label) if by_kind else BLUE for label in order]
        drawn = panel.barh(list(map(shown, order)), shares, color=colours)
        panel.bar_label(drawn, [f"{share:.1f}" for share in shares], padding=3, fontsize=8.5)
        panel.invert_yaxis()
        panel.margins(x=0.15, y=0.01)
        panel.set_xlabel("percent (orange: emotions, blue: intents)" if by_kind else "percent")
        panel.set_title(f"{distribution.title}\n(n = {distribution.total:,})", fontsize=10)
    return canvas


FIGURES: dict[str, Callable[[Analysis], Figure | None]] = {
    "heat-maps": heat_maps,
    "emotions": partial(bars, names=("emotion", "emotion_heard"), by_kind=True),
    "emotions-and-intents": partial(
        bars, names=("intent_speaker", "intent_listener", "intent_last"), by_kind=True
    ),
    "reply-factors": partial(bars, names=("act", "expressed_emotion", "mechanisms")),
    "mechanism-levels": partial(bars, names=[f"level_{name}" for name in MECHANISMS]),
}
"""By file name; None where a figure has nothing to show."""


def shown(label: str) -> str:
    """A label as people read it."""
    return label.replace("_", " ")


def shortened(word: str, longest: int) -> str:
    """A word that fits; corpora hold some of a hundred letters."""
    return word if len(word) <= longest else f"{word[: longest - 1]}…"


def _title(table: CrossTable) -> str:
    (y, short_y), (x, short_x) = NAMES[table.y], NAMES[table.x]
    return f"P({short_y} | {short_x}): {y} given {x}"


def _capitalized(title: str) -> str:
    return title[0].upper() + title[1:]


def _colour(label: str) -> str:
    return ORANGE if label in EMOTIONS else BLUE if label in INTENTS else GREY
