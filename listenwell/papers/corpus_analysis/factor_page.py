"""The tables of a corpus analysis, for the terminal and for factors.md."""

from collections.abc import Mapping, Sequence

from listenwell.papers.corpus_analysis.factor_pairs import PAIRINGS, CrossTable, Pairing
from listenwell.papers.corpus_analysis.factor_words import LabelWords, Word
from listenwell.papers.corpus_analysis.factors import WORDS, Analysis, Distribution
from listenwell.results.markdown import Grid

PAPER = PAIRINGS[:3]
"""The pairs of CoMAE's Figure 2; the others are ours."""
SYMBOLS = {"mechanism": "CM", "mechanisms": "CMs", "act": "DA", "tone": "EM"}
NAMES = {
    "mechanism": "mechanism",
    "mechanisms": "mechanisms together",
    "act": "dialogue act",
    "tone": "expressed emotion",
}
_SHOWN = 8  # words of a label in a table; factors.json holds more
_LONGEST = 24  # letters of a word in a table

_HEAD = """**How to read it**
- A *reply* is a turn of the listener right after another person's. Labels that the corpus does not give were
  read by the annotators: they are guesses, with the annotators' errors.
- P(Y | X): in the tables each X is a row, in the figure each X is a column; either adds up to 1. A reply that
  uses two mechanisms (CM) makes two pairs, and replies that use none are left out, as in CoMAE (§4.4, §4.5).
  "CMs" takes the mechanisms together, over all replies.
- I(X; Y): mutual information in bits. *chance* is what independent factors would show in as many pairs; *of
  H(Y)* is the share of the uncertainty about Y that X takes away. The 95 % interval is from dialogues drawn
  with replacement.
- *typical* words have high log-odds against all other labels (Monroe et al. 2008); *used most* are counts
  without function words.
"""


def page(analysis: Analysis, facts: Mapping[str, str], figures: Sequence[tuple[str, str]] = ()) -> str:
    """All tables as Markdown.

    Args:
        analysis: what was counted.
        facts: what was analysed and how, a line each.
        figures: the file's name and caption of each picture beside the page.
    """
    lines = [f"- {name}: {_plain(value)}" for name, value in facts.items()]
    parts = ["# Factors\n\n", "\n".join(lines), "\n\n", _HEAD]
    parts += [f"\n![{caption}]({name}.svg)\n" for name, caption in figures]
    for heading, grids in (
        ("How factors hang together", [information_grid(analysis), *map(pair_grid, analysis.tables)]),
        ("How often", [distribution_grid(found) for found in analysis.distributions]),
        ("Words", [word_grid(name, found) for name, found in analysis.words]),
    ):
        shown = [grid for grid in grids if grid.rows]
        parts += [f"\n## {heading}\n"] if shown else []
        parts += [f"\n### {grid.title}\n\n{grid.markdown()}" for grid in shown]
    return "".join(parts)


def information_grid(analysis: Analysis) -> Grid:
    """The mutual information of each pair."""
    rows = []
    for table in analysis.tables:
        if found := table.information:
            share = "–" if found.share is None else f"{100 * found.share:.1f} %"
            interval = f"{found.low:.3f} to {found.high:.3f}"
            cells = (f"{found.bits:.3f}", interval, f"{found.probability:.3f}", share, f"{table.total:,}")
            symbols = (SYMBOLS[table.pairing.given], SYMBOLS[table.pairing.of])
            rows.append((", ".join(symbols), table.pairing.whose, *cells))
    columns = ("X, Y", "in", "I(X; Y), bits", "95 %", "chance", "of H(Y)", "pairs")
    return Grid("Mutual information", columns, tuple(rows), frozenset({2, 3, 4, 5, 6}))


def pair_grid(table: CrossTable) -> Grid:
    """P(Y | X), a row for each X that occurs, with its count."""
    rows = [
        (shown(label), *(f"{share:.3f}" for share in shares), f"{sum(counts):,}")
        for label, shares, counts in zip(table.pairing.rows, table.conditional(), table.counts, strict=True)
        if shares is not None
    ]
    columns = (NAMES[table.pairing.given], *map(shown, table.pairing.columns), "n")
    return Grid(
        f"{_pair(table.pairing)}: {NAMES[table.pairing.of]} given {NAMES[table.pairing.given]}, "
        f"in {table.pairing.whose}",
        columns,
        tuple(rows),
        frozenset(range(1, len(columns))),
    )


def distribution_grid(found: Distribution) -> Grid:
    """Labels with counts and shares; those that never occur are left out."""
    rows = [
        (shown(label), f"{count:,}", f"{100 * count / found.total:.1f} %")
        for label, count in found.counts
        if count
    ]
    title = f"{found.title[0].upper()}{found.title[1:]} (n = {found.total:,})"
    return Grid(title, ("label", "count", "share"), tuple(rows), frozenset({1, 2}))


def word_grid(name: str, found: Sequence[LabelWords]) -> Grid:
    """Typical and most-used words of each label, with their counts."""
    rows = [(shown(one.label), *map(_counted, (one.typical, one.used)), f"{one.total:,}") for one in found]
    title = WORDS[name][0]
    return Grid(
        title[0].upper() + title[1:], ("label", "typical", "used most", "words"), tuple(rows), frozenset({3})
    )


def shown(label: str) -> str:
    """A label as people read it."""
    return label.replace("_", " ")


def shortened(word: str, longest: int = _LONGEST) -> str:
    """A word that fits; corpora hold some of a hundred letters."""
    return word if len(word) <= longest else f"{word[: longest - 1]}…"


def _counted(found: Sequence[Word]) -> str:
    return ", ".join(f"{shortened(one.word)} ({one.count:,})" for one in found[:_SHOWN]) or "–"


def _pair(pairing: Pairing) -> str:
    return f"P({SYMBOLS[pairing.of]} | {SYMBOLS[pairing.given]})"


def _plain(text: str) -> str:
    """Text from outside as one line that holds no tag."""
    return " ".join(text.split()).replace("<", "&lt;")
