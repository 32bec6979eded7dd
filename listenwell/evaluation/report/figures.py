"""The figures of the results pages: the same results give the same pictures.

matplotlib is imported only when something is drawn.
"""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from listenwell.evaluation.report.charts import corpus_bars, metric_bars, question_bars, scatter
from listenwell.evaluation.report.names import display_name
from listenwell.evaluation.report.ranking_figures import (
    SENTENCES,
    SWAPPED,
    TRAINED,
    by_sentences,
    by_share,
    transfer,
)
from listenwell.results.drawing import KINDS, STYLE, need_matplotlib, save
from listenwell.results.published import PUBLISHED
from listenwell.results.store import Result, source

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


_SAMPLE = re.compile(r", \d+ contexts$")
"""Ends the name of a row that was measured on a sample; the same system's row of all contexts is shown."""


@dataclass(frozen=True)
class Figure:
    """A picture: its file's name, what it shows, and how it is drawn."""

    name: str
    caption: str
    task: str
    metrics: tuple[str, ...]
    """The metrics it shows; one that ends with a space stands for all that begin so."""
    canvas: "Callable[[Sequence[Result], tuple[str, ...]], Canvas]"
    shows: Callable[[Result], bool] = lambda row: True
    """Whether a row of the task belongs into it."""

    def rows(self, results: Sequence[Result]) -> list[Result]:
        """The rows it shows: those that have one of its metrics."""
        return [
            result
            for result in results
            if result.task == self.task
            and self._values(result.metrics)
            and self.shows(result)
            and not _SAMPLE.search(result.system)
        ]

    def digest(self, results: Sequence[Result]) -> str:
        """A digest of all that is drawn; it is written into the files."""
        drawn = [
            [display_name(row.system), row.corpus, self._values(row.metrics), self._values(row.spreads)]
            for row in self.rows(results)
        ]
        papers = [
            (entry.system, entry.value)
            for entry in PUBLISHED
            if entry.task == self.task and self._values([(entry.metric, entry.value)])
        ]
        return hashlib.sha256(json.dumps([self.caption, drawn, papers]).encode()).hexdigest()[:16]

    def _values(self, pairs: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
        prefixes = tuple(name for name in self.metrics if name.endswith(" "))
        return [(name, value) for name, value in pairs if name in self.metrics or name.startswith(prefixes)]


def figures_of(results: Sequence[Result]) -> list[Figure]:
    """The figures that have at least one row to show."""
    return [figure for figure in FIGURES if figure.rows(results)]


def draw(results: Sequence[Result], folder: Path) -> list[Path]:
    """Write every figure as SVG and PNG; returns the files."""
    need_matplotlib()
    import matplotlib

    files = []
    with matplotlib.rc_context(STYLE):
        for figure in figures_of(results):
            canvas = figure.canvas(figure.rows(results), figure.metrics)
            files += save(canvas, folder, figure.name, f"listenwell results {figure.digest(results)}")
    return files


def old_figures(results: Sequence[Result], folder: Path) -> list[Path]:
    """The files that are missing or were drawn from other results; needs no matplotlib."""
    return [
        file
        for figure in figures_of(results)
        for file in (folder / f"{figure.name}.{kind}" for kind in KINDS)
        if not file.is_file() or figure.digest(results).encode() not in file.read_bytes()
    ]


def _has_corpus(row: Result) -> bool:
    return ": " in row.system and " over " not in row.system


_replies = partial(Figure, task="replies")
FIGURES = (
    _replies(
        "diversity",
        "Different replies against stock phrases: human replies stand at the lower right.",
        metrics=("distinct_replies_of_500", "stock_phrases"),
        canvas=scatter,
    ),
    _replies(
        "variety",
        "Different words and bigrams in 500 replies, and the length of a reply.",
        metrics=("distinct_1_of_500", "distinct_2_of_500", "length"),
        canvas=metric_bars,
    ),
    _replies(
        "likeness",
        "Overlap with the reference reply, in words and in meaning.",
        metrics=("bleu_average", "rouge_l", "sentence_similarity"),
        canvas=metric_bars,
        shows=lambda row: source(row) != "people",
    ),
    _replies(
        "empathy",
        "Empathy as the annotators predict it, from 0 to 2, and unsupported self-disclosure.",
        metrics=("er_level", "ip_level", "ex_level", "invented_life"),
        canvas=metric_bars,
    ),
    Figure(
        "understanding",
        "Accuracy of the annotators, and of the papers' larger encoders.",
        "understanding",
        ("accuracy",),
        question_bars,
        lambda row: row.system.endswith(": annotators"),
    ),
    Figure(
        "rankers",
        "R@1 of every ranker by corpus: how often the true reply is ranked first of 100.",
        "ranking",
        ("R@1",),
        corpus_bars,
        _has_corpus,
    ),
    Figure(
        "persona_sentences",
        "R@1 against the number of persona sentences, ours and CoBERT's paper.",
        "persona sentences",
        ("R@1",),
        by_sentences,
        lambda row: bool(SENTENCES.fullmatch(row.system)),
    ),
    Figure(
        "swapped_share",
        "R@1 with and without persona sentences, as training examples are swapped for another corpus's.",
        "swapped share",
        ("R@1", "R@1 on "),
        by_share,
        lambda row: bool(SWAPPED.fullmatch(row.system)),
    ),
    Figure(
        "transfer",
        "R@1 by training and test corpus; the same corpus on the diagonal.",
        "transfer",
        ("R@1 on ",),
        transfer,
        lambda row: row.system.startswith(TRAINED),
    ),
    Figure(
        "planning",
        "The next factor predicted, where the previous one was predicted correctly.",
        "planning",
        ("da_hits_1_after", "da_hits_3_after", "em_hits_1_after", "em_hits_3_after"),
        metric_bars,
    ),
    Figure(
        "realization",
        "Replies that carry out the mechanisms, the act and the expressed emotion of their plan.",
        "realization",
        ("cm_realized", "da_realized", "em_realized"),
        metric_bars,
    ),
    Figure(
        "family",
        "CoMAE's models: perplexity per token and overlap with the reference reply.",
        "family",
        ("perplexity_by_token", "bleu_2", "rouge_l"),
        metric_bars,
    ),
)
"""Every figure, in the order of the pages."""
