"""The figures of a corpus analysis; the same analysis gives the same picture.

Heat maps of pairs of factors (CoMAE, Figure 2), distributions of labels (EmpatheticDialogues, Figure 3;
MEED2, Figure 2; CoMAE, Figure 5) and words by label. Heat maps use cividis, which people with any colour
vision read alike; every cell also holds its value.
"""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from listenwell.labels import EMOTIONS, INTENTS, LEVELS, MECHANISMS
from listenwell.papers.corpus_analysis.factor_page import NAMES, PAPER, SYMBOLS, shown
from listenwell.papers.corpus_analysis.factor_pairs import SHORT, CrossTable
from listenwell.papers.corpus_analysis.factor_word_figures import by_act, by_emotion, by_tone
from listenwell.papers.corpus_analysis.factors import Analysis, Distribution
from listenwell.results.drawing import STYLE, need_matplotlib, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

COLOURS = {"emotion": "#E69F00", "intent": "#0072B2", "neutral": "#767676", "factor": "#0072B2"}
"""Okabe and Ito's (2008)."""
SHADES = {"no": "#e3e3e3", "weak": "#56B4E9", "strong": "#0072B2"}
CAPTIONS = {
    "heat-maps": "How the factors of replies hang together: dialogue acts and expressed emotions.",
    "emotions": "Emotions of the conversations, or those heard in them.",
    "emotions-and-intents": "Emotions and intents of turns.",
    "reply-factors": "Dialogue acts, expressed emotions and mechanisms of replies.",
    "words-by-emotion": "Words by emotion.",
    "words-by-act": "Words of replies by dialogue act.",
    "words-by-tone": "Words of replies by expressed emotion.",
}
"""What each figure shows, by its file's name."""


def draw(analysis: Analysis, heading: str, folder: Path) -> list[Path]:
    """Write every figure that has something to show as SVG and PNG; returns the files.

    Args:
        analysis: what was counted.
        heading: what was analysed, to stand above each figure.
        folder: gets the files.
    """
    need_matplotlib()
    import matplotlib

    files = []
    # A dollar sign in a name is a dollar sign, not mathematics.
    with matplotlib.rc_context({**STYLE, "text.parse_math": False}), warnings.catch_warnings():
        # Words in scripts that the font lacks become boxes; factors.md has them as they are.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        for name, make in DRAWN.items():
            if (canvas := make(analysis)) is None:
                continue
            canvas.suptitle(heading, x=0.01, ha="left", fontsize=10, color="#444444")
            files += save(canvas, folder, name)
    return files


def heat_maps(analysis: Analysis) -> "Canvas | None":
    """The three tables of the paper side by side; each column is an X and adds up to 1."""
    from matplotlib.figure import Figure as Canvas

    tables = [table for table in analysis.tables if table.pairing in PAPER and table.information]
    if not tables:
        return None
    widths = [len(table.pairing.rows) for table in tables]
    canvas = Canvas(figsize=(3.4 + 1.1 * len(tables) + 0.62 * sum(widths), 6.6), layout="constrained")
    panels = canvas.subplots(1, len(tables), width_ratios=[width + 0.9 for width in widths], squeeze=False)[0]
    top = max(share for table in tables for row in table.conditional() if row for share in row)
    for panel, table in zip(panels, tables, strict=True):
        image = _heat_map(panel, table, top)
    bar = canvas.colorbar(image, ax=list(panels), shrink=0.6, aspect=30, pad=0.015)
    bar.set_label("P(Y | X)")
    bar.outline.set_visible(False)
    note = "Each column adds up to 1; in brackets the pairs counted; I with its 95 % interval."
    canvas.supxlabel(note, x=0.01, ha="left", fontsize=9, color="#444444")
    _spaced(canvas, wspace=0.05)
    return canvas


def _heat_map(panel: "Axes", table: CrossTable, top: float) -> Any:  # noqa: ANN401 - matplotlib's image
    import numpy as np

    pairing, shares = table.pairing, table.conditional()
    values = np.array([row or [np.nan] * len(pairing.columns) for row in shares]).T  # (Y, X)
    image = panel.imshow(values, cmap="cividis", vmin=0, vmax=top, aspect="auto")
    for (y, x), value in np.ndenumerate(values):
        empty = np.isnan(value)
        dark = not empty and value < 0.55 * top
        colour = "white" if dark else "black"
        panel.text(
            x, y, "–" if empty else _two_digits(value), ha="center", va="center", fontsize=8.5, color=colour
        )
    names = [f"{shown(label)} ({sum(row):,})" for label, row in zip(pairing.rows, table.counts, strict=True)]
    panel.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    panel.set_yticks(range(len(pairing.columns)), pairing.columns.labels)
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    panel.set_xticks(np.arange(len(names) + 1) - 0.5, minor=True)
    panel.set_yticks(np.arange(len(pairing.columns) + 1) - 0.5, minor=True)
    panel.grid(which="minor", color="white", linewidth=1.2)
    panel.tick_params(which="minor", length=0)
    panel.set_title(_heat_title(table), fontsize=10)
    return image


def _heat_title(table: CrossTable) -> str:
    pairing, found = table.pairing, table.information
    lines = [
        f"P({SYMBOLS[pairing.of]} | {SYMBOLS[pairing.given]})",
        f"{NAMES[pairing.of]} given {NAMES[pairing.given]}",
    ]
    if found:
        lines.append(f"I = {found.bits:.3f} bits ({found.low:.3f} to {found.high:.3f})")
    return "\n".join(lines)


def emotions(analysis: Analysis) -> "Canvas | None":
    """The conversations' emotions; those that were heard where the corpus gives none."""
    found = analysis.distribution("emotion") or analysis.distribution("emotion_heard")
    return _bar_panels([found], lambda label: COLOURS["emotion"]) if found else None


def emotions_and_intents(analysis: Analysis) -> "Canvas | None":
    """The 41 labels by role, and of the last turns."""
    names = ("intent_speaker", "intent_listener", "intent_last")
    found = [one for name in names if (one := analysis.distribution(name))]
    if not found:
        return None
    canvas = _bar_panels(found, lambda label: COLOURS[_kind(label)])
    _legend(canvas, {kind: COLOURS[kind] for kind in ("emotion", "intent", "neutral")})
    return canvas


def _kind(label: str) -> str:
    return "emotion" if label in EMOTIONS else "intent" if label in INTENTS else "neutral"


def reply_factors(analysis: Analysis) -> "Canvas | None":
    """Acts, tones, and mechanisms together with their levels."""
    from matplotlib.figure import Figure as Canvas

    found = [one for name in ("act", "tone", "mechanisms") if (one := analysis.distribution(name))]
    levels = [one for name in MECHANISMS if (one := analysis.distribution(f"level_{name}"))]
    count = len(found) + bool(levels)
    if not count:
        return None
    canvas = Canvas(figsize=(11, 1.0 + 3.4 * ((count + 1) // 2)), layout="constrained")
    panels = canvas.subplots((count + 1) // 2, 2, squeeze=False).ravel()
    for panel, one in zip(panels, found, strict=False):
        _bars(panel, one, lambda label: COLOURS["factor"])
    if levels:
        _levels(panels[len(found)], levels)
    for panel in panels[count:]:
        panel.set_axis_off()
    _spaced(canvas, wspace=0.05, hspace=0.08)
    return canvas


def _levels(panel: "Axes", found: Sequence[Distribution]) -> None:
    """How strong each mechanism is: one bar of three parts each."""
    rows = [dict(one.counts) for one in found]
    names = [f"{shown(name)} ({SHORT[name]})" for name in (one.name.removeprefix("level_") for one in found)]
    start = [0.0] * len(rows)
    for level in LEVELS:
        shares = [100 * row[level] / one.total for row, one in zip(rows, found, strict=True)]
        bars = panel.barh(range(len(rows)), shares, left=start, color=SHADES[level], height=0.6, label=level)
        texts = [f"{share:.0f}" if share >= 4 else "" for share in shares]
        panel.bar_label(
            bars, texts, label_type="center", fontsize=9, color="white" if level == "strong" else "black"
        )
        start = [a + b for a, b in zip(start, shares, strict=True)]
    panel.set_yticks(range(len(rows)), names)
    panel.set_ylim(len(rows) - 0.5, -0.5)
    panel.set_xlim(0, 100)
    panel.tick_params(axis="y", length=0)
    panel.set_xlabel("percent of replies")
    panel.set_title(f"levels of mechanisms in replies (n = {found[0].total:,})", fontsize=10)
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=3, frameon=False)


def _bar_panels(found: Sequence[Distribution], colour: Callable[[str], str]) -> "Canvas":
    from matplotlib.figure import Figure as Canvas

    rows = max(len(one.counts) for one in found)
    canvas = Canvas(figsize=(1.0 + 4.6 * len(found), 1.4 + 0.235 * rows), layout="constrained")
    for panel, one in zip(canvas.subplots(1, len(found), squeeze=False)[0], found, strict=True):
        _bars(panel, one, colour)
    _spaced(canvas, wspace=0.04)
    return canvas


def _bars(panel: "Axes", found: Distribution, colour: Callable[[str], str]) -> None:
    """One bar a label, the most frequent on top, with its share."""
    labels = [label for label, _ in found.counts]
    shares = [100 * count / found.total for _, count in found.counts]
    bars = panel.barh(range(len(labels)), shares, color=[colour(label) for label in labels], height=0.75)
    texts = [f"{share:.1f}" if share else "0" for share in shares]
    panel.bar_label(bars, texts, padding=3, fontsize=8.5)
    panel.set_yticks(range(len(labels)), [shown(label) for label in labels], fontsize=9)
    panel.set_ylim(len(labels) - 0.4, -0.6)
    panel.set_xlim(0, 1.15 * max(*shares, 1e-9))
    panel.tick_params(axis="y", length=0)
    panel.set_xlabel("percent")
    panel.set_title(f"{found.title} (n = {found.total:,})", fontsize=10)


def _spaced(canvas: "Canvas", **space: float) -> None:
    """Room at the paper's edges, in inches, and between panels, as shares of their size."""
    canvas.get_layout_engine().set(w_pad=0.1, h_pad=0.08, **space)  # type: ignore[union-attr, call-arg]


def _legend(canvas: "Canvas", colours: dict[str, str]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=colour, label=name) for name, colour in colours.items()]
    canvas.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)


def _two_digits(value: float) -> str:
    """.07 for 0.07: a narrow cell has no room for the nought; 0 for nothing at all."""
    return "0" if value == 0 else f"{value:.2f}".removeprefix("0") if value < 0.995 else "1"


DRAWN: dict[str, Callable[[Analysis], "Canvas | None"]] = {
    "heat-maps": heat_maps,
    "emotions": emotions,
    "emotions-and-intents": emotions_and_intents,
    "reply-factors": reply_factors,
    "words-by-emotion": by_emotion,
    "words-by-act": by_act,
    "words-by-tone": by_tone,
}
"""What draws each figure; None where it has nothing to show."""
