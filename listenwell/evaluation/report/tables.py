"""Tables of results and published numbers.

Nothing in them is typed by hand: the same files give the same tables, byte by byte.
"""

from collections.abc import Iterable, Mapping, Sequence

from listenwell.evaluation.report.names import display_name
from listenwell.results.markdown import Grid
from listenwell.results.metric_registry import GROUPS, METRICS, Metric, metric
from listenwell.results.published import PUBLISHED, Published
from listenwell.results.store import Result, source

Marks = Mapping[tuple[str, str], str]
"""Footnote marks of rows, by task and system."""


def tasks(results: Iterable[Result], published: Iterable[Published] = PUBLISHED) -> list[str]:
    """The tasks that have anything to show; replies first."""
    names = {result.task for result in results} | {entry.task for entry in published}
    return sorted(names, key=lambda task: (task != "replies", task))


def figure_grids(
    task: str,
    results: Sequence[Result],
    published: Sequence[Published] = PUBLISHED,
    marks: Marks | None = None,
) -> list[Grid]:
    """A table for each group of metrics with a row for each system; published rows at the end.

    Args:
        task: its name in result files.
        results: of any tasks.
        published: numbers of papers.
        marks: footnote marks to put after the names of rows.
    """
    ours = [result for result in results if result.task == task]
    theirs = [entry for entry in published if entry.task == task]
    columns = _columns(ours, theirs)
    grids = []
    for group, title in GROUPS.items():
        own = [column for column in columns if column.group == group]
        names = {column.name for column in own}
        rows = [
            (
                row_name(result, marks, group),
                source(result),
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
        if any(entry.beside for entry in theirs):  # "question: system": rows of a question stand together
            rows.sort(key=lambda row: (_subject(row[0]), row[1] == "paper"))
        if rows:
            headings = ("system", "source", "n", *(column.heading for column in own))
            grids.append(Grid(title, headings, tuple(rows), frozenset(range(2, len(headings)))))
    return grids


def gap_grid(task: str, results: Sequence[Result], published: Sequence[Published] = PUBLISHED) -> Grid:
    """Each published number, ours beside it where the same system was measured, and the difference.

    Where ours was measured on another corpus there is no difference: it would say nothing. The last column
    holds the number of the entry in `sources`.
    """
    measured = {result.system: result for result in results if result.task == task}
    numbers = {text: number for number, text in enumerate(sources(task, published), start=1)}
    rows = []
    for entry in published:
        if entry.task != task:
            continue
        kind = metric(entry.metric)
        own = measured.get(entry.system) or measured.get(entry.beside)
        value = own.metric(entry.metric) if own else None
        is_same = own is not None and _subject(own.system) == _subject(entry.system)
        gap = _signed(kind, value - entry.value) if value is not None and is_same else "–"
        reference = f"[{numbers[_source(entry)]}]"
        rows.append((entry.system, kind.heading, kind.show(value), kind.show(entry.value), gap, reference))
    headings = ("system", "metric", "ours", "paper", "difference", "source")
    return Grid("Published numbers", headings, tuple(rows), frozenset((2, 3, 4)))


def sources(task: str, published: Sequence[Published] = PUBLISHED) -> list[str]:
    """The sources of a task's published numbers with their conditions, each once."""
    return list(dict.fromkeys(_source(entry) for entry in published if entry.task == task))


def _source(entry: Published) -> str:
    return f"{entry.source}: {entry.conditions}"


def row_name(result: Result, marks: Marks | None = None, group: str = "") -> str:
    """A row's display name with its footnote marks; † where it is its own reference."""
    is_own_reference = group == "overlap" and "reference" in dict(result.conditions)
    mark = (marks or {}).get((result.task, result.system), "") + ("†" if is_own_reference else "")
    return f"{display_name(result.system)} {mark}".rstrip()


def _subject(system: str) -> str:
    """What a row is about, its corpus or question: "PEC" of "PEC: CoBERT"; empty where it says none."""
    subject, colon, _ = system.partition(":")
    return subject if colon else ""


def _columns(results: Iterable[Result], published: Iterable[Published]) -> list[Metric]:
    """The metrics that any row has, in the order of metrics.yaml, unknown ones at the end."""
    units: dict[str, str] = {entry.metric: "" for entry in published}
    for result in results:
        units |= {name: dict(result.units).get(name, "") for name, _ in result.metrics}
    order = list(METRICS)
    known = sorted(units, key=lambda name: (order.index(name) if name in METRICS else len(order), name))
    return [metric(name, units[name]) for name in known]


def _cells(
    values: Mapping[str, float], columns: Iterable[Metric], spreads: Mapping[str, float] | None = None
) -> tuple[str, ...]:
    """Each value, with its spread over seeds where it has one."""
    known = spreads or {}
    return tuple(
        f"{column.show(values.get(column.name))} ± {column.show(known[column.name])}"
        if column.name in known
        else column.show(values.get(column.name))
        for column in columns
    )


def _signed(kind: Metric, value: float) -> str:
    shown = kind.show(round(value, kind.decimals) + 0.0)  # adding 0 turns −0 into 0
    return f"+{shown}" if float(f"{value:.{kind.decimals}f}") > 0 else shown
