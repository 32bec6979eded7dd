"""Words by label as a printed table: typical words and most-used words side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from listenwell.labels import ACTS, EMOTIONS, TONES, LabelSet
from listenwell.papers.corpus_analysis.factor_page import shortened, shown
from listenwell.papers.corpus_analysis.factor_words import LabelWords, Word
from listenwell.papers.corpus_analysis.factors import Analysis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

ROW, MARGIN, GAP = 0.26, 0.25, 0.2
"""Inches: the height of a line, the paper's edge, the space between columns."""
SIZE = 9.0
"""Of the letters, in points."""
LETTERS = 18
"""Longer words are cut."""


@dataclass(frozen=True)
class Column:
    """A column of the table: its heading, how wide it is in inches, and a cell for each label."""

    heading: str
    width: float
    cells: dict[str, Sequence[Word]]


def by_emotion(analysis: Analysis) -> "Canvas | None":
    """The speaker's and the listener's words for each emotion, as EmpatheticDialogues' Figure 3."""
    found = dict(analysis.words)
    kind = "heard" if "heard_speaker" in found or "heard_listener" in found else "emotion"
    columns = []
    for role in ("speaker", "listener"):
        words = found.get(f"{kind}_{role}", ())
        columns += [
            Column(f"{role}, typical", 3.1, {one.label: one.typical[:5] for one in words}),
            Column(f"{role}, used most", 2.7, {one.label: one.used[:5] for one in words}),
        ]
    return _table("emotion heard" if kind == "heard" else "emotion", EMOTIONS, columns)


def by_act(analysis: Analysis) -> "Canvas | None":
    """Words of replies for each dialogue act."""
    return _of_replies("dialogue act", ACTS, dict(analysis.words).get("act", ()))


def by_tone(analysis: Analysis) -> "Canvas | None":
    """Words of replies for each expressed emotion."""
    return _of_replies("expressed emotion", TONES, dict(analysis.words).get("tone", ()))


def _of_replies(name: str, order: LabelSet, words: Sequence[LabelWords]) -> "Canvas | None":
    return _table(
        name,
        order,
        [
            Column("typical", 4.4, {one.label: one.typical[:8] for one in words}),
            Column("used most", 4.0, {one.label: one.used[:8] for one in words}),
        ],
    )


def _table(name: str, order: LabelSet, columns: Sequence[Column]) -> "Canvas | None":
    """Lines of words on bands of grey; a label that has no words has no line."""
    from matplotlib.figure import Figure as Canvas
    from matplotlib.patches import Rectangle

    labels = [label for label in order if any(label in column.cells for column in columns)]
    if not labels:
        return None
    first = max(_width(shown(text), bold=True) for text in (name, *labels)) + GAP
    wide = 2 * MARGIN + first + sum(column.width + GAP for column in columns)
    high = ROW * (len(labels) + 2.6) + MARGIN
    canvas = Canvas(figsize=(wide, high))

    def write(text: str, left: float, line: float, bold: bool = False) -> None:
        canvas.text(
            left / wide,
            1 - ROW * (line + 0.5) / high,
            text,
            ha="left",
            va="center",
            fontsize=SIZE,
            fontweight="bold" if bold else "normal",
        )

    for place in range(0, len(labels), 2):
        band = Rectangle(
            (0.5 * MARGIN / wide, 1 - ROW * (place + 3.6) / high),
            1 - MARGIN / wide,
            ROW / high,
            facecolor="#f0f0f0",
            transform=canvas.transFigure,
        )
        canvas.add_artist(band)
    lefts = [MARGIN + first + sum(c.width + GAP for c in columns[:n]) for n in range(len(columns))]
    for text, left in zip((name, *(column.heading for column in columns)), (MARGIN, *lefts), strict=True):
        write(text, left, 1.6, bold=True)
    for place, label in enumerate(labels):
        write(shown(label), MARGIN, place + 2.6, bold=True)
        for column, left in zip(columns, lefts, strict=True):
            write(_fitting(column.cells.get(label, ()), column.width), left, place + 2.6)
    return canvas


def _fitting(words: Sequence[Word], width: float) -> str:
    """As many of the words as the width holds."""
    texts = [shortened(one.word, LETTERS) for one in words]
    while texts and _width(", ".join(texts)) > width:
        texts.pop()
    return ", ".join(texts) or "–"


def _width(text: str, bold: bool = False) -> float:
    """How wide a text is, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=SIZE, weight="bold" if bold else "normal")
    points, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(points) / 72
