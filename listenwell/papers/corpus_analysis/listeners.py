"""How alike two listeners' replies are, beside two random sets of replies (Zhong et al. 2020, Figure 1).

PEC finds that for 28 of the 32 emotions of EmpatheticDialogues two people's replies are less alike
than random ones. It does not say how it chose them, how large the random sets are, or how words
are weighted. Here the two have the most replies to the emotion, the random sets are disjoint, as large
as theirs and drawn from all replies to it; each set is one document, with TF-IDF weights of all replies.
"""

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from listenwell.corpora.empathetic_dialogues import LISTENER_WORKER
from listenwell.corpora.synthetic_persona_chat import USERS
from listenwell.dialogue import LISTENER, SPEAKER, Example
from listenwell.errors import InputError
from listenwell.labels import EMOTIONS
from listenwell.metrics.checks import library
from listenwell.papers.corpus_analysis.words import word_tokens
from listenwell.results.drawing import BLUE, ORANGE, STYLE, save
from listenwell.results.markdown import Grid

RUNS, LEAST = 5, 5
"""Draws of two random sets, as in the paper; replies that each of the two listeners must have."""
ROLES = frozenset({SPEAKER, LISTENER, *USERS})
"""Names that corpora give to a role, whoever plays it."""
ALL = "all replies"
"""The one group of a corpus without emotions."""
BY = {
    "emotion": "the conversation's emotion, given by the corpus",
    "heard": "the emotion that the annotators heard before the reply: a prediction",
    "together": "all replies in one, since the corpus has no emotions",
}
"""What the groups of replies are made by."""
PAIR = ["emotion", "listeners", "replies", "dialogues", "pool", "similarity", "random", "mean", "spread"]
COLUMNS = ["text", "listener", "dialogue", "emotion", "heard"]


def reply_row(example: Example) -> tuple[str, str | None, str, str | None, str | None]:
    """A row of COLUMNS; the corpus's note of the listener goes before the name, a role is no name."""
    context, reply = example.context, example.reply
    name = context.note(LISTENER_WORKER) or (None if reply.speaker in ROLES else reply.speaker)
    heard = reply.factors.emotion if reply.factors is not None else None
    return reply.text, name, context.id or context.turns[0].text, context.emotion, heard


@dataclass(frozen=True)
class Comparison:
    """All emotions of a corpus."""

    by: str
    """A key of BY."""
    pairs: pd.DataFrame
    """A row for each emotion: the two `listeners` with the most replies (of equals who came first), how many
    `replies` and `dialogues` they have, the `pool` of all replies to it, the `similarity` of the two, from 0
    to 1, and that of the `random` sets, with their `mean` and `spread` (standard deviation, n − 1)."""
    left_out: dict[str, str]
    """Emotions without two listeners with enough replies, and why."""
    replies: int
    unnamed: int
    """Replies that name no listener."""
    unlabelled: int
    """Of the others, those without an emotion, where groups are made by it."""
    listeners: int

    @property
    def lower(self) -> int:
        """Emotions for which two listeners are less alike than random sets on average: the paper's count."""
        return int((self.pairs["similarity"] < self.pairs["mean"]).sum())

    @property
    def lowest(self) -> int:
        """Emotions for which they are less alike in every run."""
        return int((self.pairs["similarity"] < self.pairs["random"].map(min)).sum())

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        counts = {"lower": self.lower, "lowest": self.lowest, "of": len(self.pairs)}
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, **counts, "pairs": self.pairs.to_dict("records")}


def compare(
    replies: Iterable[tuple[Any, ...]], runs: int = RUNS, least: int = LEAST, seed: int = 0
) -> Comparison:
    """Compare the two busiest listeners of each emotion, and random sets as large as theirs.

    Args:
        replies: rows of COLUMNS, of one corpus.
        runs: how often two random sets are drawn; 2 or more.
        least: an emotion is left out where one of its two listeners has fewer replies.
        seed: of numpy's `default_rng`, which draws the sets, emotion after emotion.
    """
    if runs < 2 or least < 1:
        raise InputError(f"There are {runs} runs and at least {least} replies.", "Give 2 and 1, or more.")
    table = pd.DataFrame(list(replies), columns=COLUMNS)
    named = table.dropna(subset="listener")
    by = next((column for column in ("emotion", "heard") if named[column].notna().any()), "together")
    kept = named.assign(group=ALL if by == "together" else named[by]).dropna(subset="group").reset_index()
    pairs, left_out = [], dict[str, str]()
    similarity = Similarity(kept["text"]) if len(kept) else None
    generator = np.random.default_rng(seed)
    for emotion in (*EMOTIONS, ALL):
        group = kept[kept["group"] == emotion]
        # The most replies first; of equals who came first.
        counts = group["listener"].value_counts(sort=False).sort_values(ascending=False, kind="stable")
        if len(counts) == 1:
            left_out[emotion] = "one listener"
        elif len(counts) and counts.iloc[1] < least:
            left_out[emotion] = f"the second listener has {counts.iloc[1]} of {least} replies"
        elif similarity is not None and len(counts):
            names = list(counts.index[:2])
            first, second = (group[group["listener"] == name] for name in names)
            size, sizes = len(first), [len(first), len(second)]
            drawn = [generator.choice(list(group.index), sum(sizes), replace=False) for _ in range(runs)]
            random = [similarity(rows[:size], rows[size:]) for rows in drawn]
            dialogues = [first["dialogue"].nunique(), second["dialogue"].nunique()]
            alike, mean = similarity(first.index, second.index), float(np.mean(random))
            spread = float(np.std(random, ddof=1))
            pairs.append((emotion, names, sizes, dialogues, len(group), alike, random, mean, spread))
    counted = (len(table), len(table) - len(named), len(named) - len(kept), kept["listener"].nunique())
    return Comparison(by, pd.DataFrame(pairs, columns=PAIR), left_out, *counted)


class Similarity:
    """The cosine of two sets of texts as TF-IDF vectors, each set one document.

    A word weighs its count times ln((1 + n) / (1 + df)) + 1, where df of the n texts hold it: scikit-learn's
    TfidfTransformer.

    Args:
        texts: what the weights are learned from, each text one document; sets are given by their row numbers.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        features = library("sklearn.feature_extraction.text", "scikit-learn", "Comparing listeners by TF-IDF")
        counter = features.CountVectorizer(analyzer=word_tokens)
        try:
            self._counts = counter.fit_transform(texts)  # (texts, words)
        except ValueError:  # no text has a word
            raise InputError("The replies hold no words.", "Give replies with letters or digits.") from None
        self._weigh = features.TfidfTransformer().fit(self._counts).transform

    def __call__(self, first: Iterable[int], second: Iterable[int]) -> float:
        """From 0, no word in common, to 1; a set without any word is like none."""
        sets = [np.asarray(self._counts[list(rows)].sum(axis=0))[0] for rows in (first, second)]
        vectors = self._weigh(np.stack(sets)).toarray()  # of length 1
        return min(float(vectors[0] @ vectors[1]), 1.0)


def finding(comparison: Comparison) -> str:
    """The paper's sentence with the corpus's numbers."""
    count, total = comparison.lower, len(comparison.pairs)
    if comparison.by == "together":
        return f"Two listeners' replies are {'less' if count else 'no less'} alike than two random sets."
    text = f"Two listeners' replies are less alike than two random sets for {count} of {total} emotions"
    return f"{text}, for {comparison.lowest} of them in every draw."


def grid(comparison: Comparison) -> Grid:
    """A row for each emotion, the largest difference first."""
    rows = [
        (
            pair.emotion,
            *(f"{value:.3f}" for value in (pair.similarity, pair.mean, pair.spread)),
            f"{pair.similarity - pair.mean:+.3f}".replace("-", "−"),
            "{:,} + {:,}".format(*pair.replies),
            f"{pair.pool:,}",
        )
        for pair in _ordered(comparison.pairs).itertuples()
    ]
    columns = ("emotion", "two listeners", "random sets", "± (SD)", "difference", "replies", "of all")
    return Grid("TF-IDF similarity of two sets of replies", columns, tuple(rows), frozenset(range(1, 7)))


def draw(comparison: Comparison, heading: str, folder: Path) -> list[Path]:
    """Write the figure as SVG and PNG; returns the files."""
    # A dollar sign in a name is a dollar sign, not mathematics.
    with matplotlib.rc_context({**STYLE, "text.parse_math": False}):
        return save(figure(comparison, heading), folder, "listeners")


def figure(comparison: Comparison, heading: str) -> Figure:
    """A line for each emotion: the similarity of two listeners, and of random sets."""
    pairs = _ordered(comparison.pairs)
    canvas = Figure(figsize=(8, 2.1 + 0.24 * len(pairs)), layout="constrained")
    panel, heights = canvas.subplots(), range(len(pairs))
    panel.hlines(heights, pairs["mean"], pairs["similarity"], color="#cccccc", linewidth=2, zorder=1)
    label = f"two random sets, mean ± SD of {len(pairs['random'].iloc[0])} draws"
    means, spreads = pairs["mean"], pairs["spread"]
    panel.errorbar(means, heights, xerr=spreads, fmt="D", color=ORANGE, zorder=2, label=label)
    panel.plot(pairs["similarity"], heights, "o", ms=5, color=BLUE, zorder=3, label="two listeners")
    panel.set_yticks(heights, [f"{row[0]} ({row[5]})" for row in grid(comparison).rows])
    panel.set_ylim(len(pairs) - 0.4, -0.6)
    panel.grid(axis="x", color="#eeeeee")
    panel.set_title(textwrap.fill(finding(comparison), 75), fontsize=10)
    panel.set_xlabel("TF-IDF similarity of two sets of replies")
    canvas.legend(loc="outside lower center", ncols=2, frameon=False)
    canvas.suptitle(heading, x=0.01, ha="left", fontsize=10, color="#444444")
    return canvas


def _ordered(pairs: pd.DataFrame) -> pd.DataFrame:
    """The emotions where people differ most from random sets first."""
    return pairs.loc[(pairs["similarity"] - pairs["mean"]).sort_values(kind="stable").index]
