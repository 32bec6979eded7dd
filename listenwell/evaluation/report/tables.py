"""The results page: from results/*.json and the published numbers to tables, and back to a check.

Nothing on the page is typed by hand: the same files give the same page, byte by byte. Standard library only.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from listenwell.errors import InputError
from listenwell.evaluation.baselines import HUMAN
from listenwell.results.markdown import Grid
from listenwell.results.metric_registry import (
    BITS,
    COMPOUND,
    COSINE,
    LEVEL,
    METRICS,
    PERCENT,
    PERPLEXITY,
    Metric,
    metric,
)
from listenwell.results.published import PUBLISHED
from listenwell.results.published_number import Published
from listenwell.results.store import Result, read_result

GROUPS = {
    "likeness": "Likeness to the person's reply",
    "variety": "Variety",
    "manner": "Manner",
    "empathy": "Empathy, and lives that nobody has",
    "ratings": "What raters say",
    "judges": "Who says what raters say",
    "perplexity": "Perplexity",
    "planning": "The next factor, where the one before it was foretold",
    "planning_gold": "The next factor, given all that stand before it",
    "planning_mechanisms": "Each mechanism",
    "planning_emotion": "What the other person feels",
    "realization": "Plans that a reply shows",
    "understanding": "Right answers",
    "detail": "In finer detail",
    "trust": "Trust in the probabilities",
    "ranking": "Finding the true reply among 100 (shuffled pool)",
    "gain": "Gains",
    "ranking_hard": "The same among neighbours (unshuffled pool, harder)",
    "reading": "Taking the wrong one of two replies",
    "ranking_cost": "What a ranker costs",
    "other": "Other figures",
}
"""Groups of metrics, in the order of the page."""
_LONG = ("words", "stock phrases", "sacreBLEU", "settings", "encoder", "variety of 500")
"""Conditions that are the same in all rows or too long for a cell; they are in the result files."""


def read_results(folder: Path) -> list[Result]:
    """Every result of a folder, by task, ours first, then peers, then people."""
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.", "Run this where it is, or name it with --results.")
    results = [read_result(file) for file in sorted(folder.glob("*.json"))]
    return sorted(results, key=lambda result: (result.task, _rank(result), in_order(result.system)))


def in_order(name: str) -> list[tuple[int, str]]:
    """A key that sorts names without case, and the numbers in them by their size: 2 before 10."""
    parts = re.split(r"(\d+)", name.casefold())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def tasks(results: Iterable[Result], published: Iterable[Published] = PUBLISHED) -> list[str]:
    """The tasks that have anything to show; replies first."""
    found = {result.task for result in results} | {entry.task for entry in published}
    return sorted(found, key=lambda task: (task != "replies", task))


def figure_grids(
    task: str, results: Sequence[Result], published: Sequence[Published] = PUBLISHED
) -> list[Grid]:
    """For each group of metrics a table with a row a system; published rows at the end."""
    ours = [result for result in results if result.task == task]
    theirs = [entry for entry in published if entry.task == task]
    columns = _columns(ours, theirs)
    grids = []
    for group, title in GROUPS.items():
        own = [column for column in columns if column.group == group]
        names = {column.name for column in own}
        rows = [
            (
                _shown(result, group),
                who(result),
                f"{result.count:,}",
                *_cells(dict(result.metrics), own, dict(result.spreads)),
            )
            for result in ours
            if names & dict(result.metrics).keys()
        ]
        for system in dict.fromkeys(entry.system for entry in theirs):
            values = {entry.metric: entry.value for entry in theirs if entry.system == system}
            if names & values.keys():
                rows.append((system, "paper", "–", *_cells(values, own)))
        if any(entry.beside for entry in theirs):  # "question: system": a question's rows stand together
            rows.sort(key=lambda row: (_subject(row[0]), row[1] == "paper"))
        if rows:
            headings = ("system", "who", "n", *map(_heading, own))
            grids.append(Grid(title, headings, tuple(rows), frozenset(range(2, len(headings)))))
    return grids


def gap_grid(task: str, results: Sequence[Result], published: Sequence[Published] = PUBLISHED) -> Grid:
    """Each published number, ours beside it where the same system was measured, and the gap.

    Where ours was measured on another corpus there is no gap: the difference would say nothing.
    """
    measured = {result.system: result for result in results if result.task == task}
    rows = []
    for entry in published:
        if entry.task != task:
            continue
        kind = metric(entry.metric)
        own = measured.get(entry.system) or measured.get(entry.beside)
        value = own.metric(entry.metric) if own else None
        is_same = own is not None and _subject(own.system) == _subject(entry.system)
        gap = _signed(kind, value - entry.value) if value is not None and is_same else "–"
        rows.append(
            (
                entry.system,
                _heading(kind),
                kind.show(value),
                kind.show(entry.value),
                gap,
                entry.conditions,
                entry.source,
            )
        )
    headings = ("system", "metric", "ours", "paper's", "gap", "the paper's conditions", "source")
    return Grid("Beside the papers", headings, tuple(rows), frozenset((2, 3, 4)))


def condition_grid(task: str, results: Sequence[Result]) -> Grid:
    """How each row was measured, and the command that does it again."""
    rows = []
    for result in results:
        if result.task != task:
            continue
        said = [f"{name}: {value}" for name, value in result.conditions if name not in _LONG]
        seed = "–" if result.seed is None else str(result.seed)
        sums = [f"data {result.data[:12]}"]
        if result.checkpoint:
            sums.append(f"checkpoint {result.checkpoint[:12]}")
        rows.append(
            (
                result.system,
                f"{result.corpus} {result.split}",
                "; ".join(said),
                seed,
                ", ".join(sums),
                f"{result.commit or 'unknown'}, {result.machine}, {result.time[:10]}",
                f"`{result.command}`",
            )
        )
    headings = ("system", "data", "conditions", "seed", "sha256", "commit, machine, day", "command")
    return Grid("Conditions and commands", headings, tuple(rows))


def _subject(system: str) -> str:
    """What a row is about, its corpus or question: "PEC" of "PEC: CoBERT"; empty where it says none."""
    subject, colon, _ = system.partition(":")
    return subject if colon else ""


def who(result: Result) -> str:
    """Whose replies a row holds: ours have a checkpoint behind them."""
    if result.checkpoint:
        return "ours"
    return "people" if result.system == HUMAN else "peer"


def _rank(result: Result) -> int:
    return ("ours", "peer", "people").index(who(result))


def _columns(results: Iterable[Result], published: Iterable[Published]) -> list[Metric]:
    """The metrics that anyone has, in the order of `units.METRICS`, unknown ones at the end."""
    units: dict[str, str] = {entry.metric: "" for entry in published}
    for result in results:
        units |= {name: dict(result.units).get(name, "") for name, _ in result.metrics}
    order = list(METRICS)
    known = sorted(units, key=lambda name: (order.index(name) if name in METRICS else len(order), name))
    return [metric(name, units[name]) for name in known]


def _cells(
    values: Mapping[str, float], columns: Iterable[Metric], spreads: Mapping[str, float] | None = None
) -> tuple[str, ...]:
    """Each figure, with its spread over seeds where it has one."""
    known = spreads or {}
    return tuple(
        f"{column.show(values.get(column.name))} ± {column.show(known[column.name])}"
        if column.name in known
        else column.show(values.get(column.name))
        for column in columns
    )


def _shown(result: Result, group: str) -> str:
    """A system's name, marked where its likeness says nothing."""
    is_own_reference = group == "likeness" and "reference" in dict(result.conditions)
    return f"{result.system} †" if is_own_reference else result.system


def _heading(column: Metric) -> str:
    """A label with its unit, where the label does not say it."""
    short = {PERCENT: "%", COSINE: "cosine", COMPOUND: "−1 to 1", PERPLEXITY: "", BITS: "", LEVEL: "0 to 2"}
    unit = short.get(column.unit, column.unit)
    return f"{column.label} ({unit})" if unit else column.label


def _signed(kind: Metric, value: float) -> str:
    shown = kind.show(round(value, kind.decimals) + 0.0)  # adding 0 turns −0 into 0
    return f"+{shown}" if float(f"{value:.{kind.decimals}f}") > 0 else shown
