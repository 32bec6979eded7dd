"""Tables of results and published numbers.

Nothing in them is typed by hand: the same files give the same tables, byte by byte.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files

from listenwell.evaluation.report.names import display_name, feature_names
from listenwell.results.markdown import Grid
from listenwell.results.metric_registry import GROUPS, METRICS, PUBLISHED, Metric, Published, metric
from listenwell.results.store import HUMAN, RATINGS, Result, source

Marks = Mapping[tuple[str, str], str]
"""Footnote marks of rows, by task and system."""
ABLATIONS = "ablations"
OFF = "switched off"
_WHOLE = "nothing: the whole listener"
_REPLIES = (
    "distinct_replies",
    "distinct_2",
    "stock_phrases",
    "sorry_to_hear",
    "sentence_similarity",
    "rouge_l",
    "length",
)
_EMPATHY = ("er_level", "ip_level", "ex_level", "invented_life", "rated_overall", "preferred")


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
    """A table of a task for each group of metrics, with a row for each system; published rows at the end.

    `marks` are footnote marks to put after the names of rows.
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


HEADLINES: tuple[dict[str, str], ...] = tuple(
    csv.DictReader(files(__package__).joinpath("headlines.csv").read_text(encoding="utf-8").splitlines())
)
"""The rows of the headline table. Published rows compare where their names begin with the subject, {n} in the
conditions is the number of examples."""


def headline_grid(results: Sequence[Result], marks: Marks) -> Grid:
    """For each headline ours, the best published number or baseline, and people."""
    rows = {(result.task, result.system): result for result in results}
    lines = []
    for headline in HEADLINES:
        kind = METRICS[headline["metric"]]
        ours = rows.get((headline["task"], headline["system"]))
        if ours is None or ours.metric(kind.name) is None:
            continue
        # In overlap, people are measured against themselves.
        people = rows.get((ours.task, HUMAN)) if kind.group != "overlap" else None
        lines.append(
            (
                headline["title"],
                kind.heading + {"lower": " ↓", "higher": " ↑"}.get(kind.better, ""),
                f"{kind.show(ours.metric(kind.name))} {marks.get((ours.task, ours.system), '')}".rstrip(),
                _best(kind, ours.task, headline["subject"], results),
                kind.show(people.metric(kind.name) if people else None),
                headline["conditions"].format(n=f"{ours.count:,}"),
                f"[{headline['page']}](results/{headline['page']}.md)",
            )
        )
    headings = ("task", "metric", "ours", "best published", "people", "conditions", "page")
    return Grid("Headline", headings, tuple(lines), frozenset((2, 4)))


def _best(kind: Metric, task: str, subject: str, results: Sequence[Result]) -> str:
    """The best number that a paper printed or a baseline reached, with its system."""
    prefix = f"{subject}: " if subject else ""
    numbers = [
        (entry.value, entry.system)
        for entry in PUBLISHED
        if (entry.task, entry.metric) == (task, kind.name) and entry.system.startswith(prefix)
    ]
    numbers += [
        (value, display_name(result.system))
        for result in results
        if result.task == task
        and source(result) == "baseline"
        and (value := result.metric(kind.name)) is not None
    ]
    if not numbers:
        return "–"
    value, system = (min if kind.better == "lower" else max)(numbers)
    return f"{kind.show(value)} ({system.removeprefix(f'{subject}: ')})"


def ablation_grids(results: Sequence[Result], marks: Marks | None = None) -> list[Grid]:
    """A row for each ablation with its differences from the whole listener, in two tables.

    The whole listener is the same system's row of replies; a difference stands only where both answered the
    same contexts with the same seed.
    """
    pairs = _with_wholes(results)
    tables = {"Diversity, overlap and length": _REPLIES, "Empathy and ratings": _EMPATHY}
    return [_ablation_grid(title, pairs, names, marks) for title, names in tables.items() if pairs]


def model_ablations(results: Sequence[Result]) -> list[Result]:
    """The ablations of a model's own parts, such as CoBERT without a hop."""
    return [result for result in results if result.task == ABLATIONS and OFF not in dict(result.conditions)]


def _with_wholes(results: Sequence[Result]) -> list[tuple[Result, Result | None]]:
    """Each ablated row with the whole listener's, both with their ratings."""
    rated = {result.system: result for result in results if result.task == RATINGS}
    wholes = {
        result.system: _with_ratings(result, rated, result.system)
        for result in results
        if result.task == "replies"
    }
    pairs = []
    for result in results:
        off = dict(result.conditions).get(OFF)
        if result.task == ABLATIONS and off is not None:
            system = result.system.removesuffix(f" without {off}")
            pairs.append((_with_ratings(result, rated, system), wholes.get(system)))
    return pairs


def _ablation_grid(
    title: str, pairs: Sequence[tuple[Result, Result | None]], names: Sequence[str], marks: Marks | None
) -> Grid:
    rows: list[tuple[str, ...]] = []
    shown: list[Result] = []
    for result, whole in pairs:
        off = dict(result.conditions)[OFF]
        system = display_name(result.system.removesuffix(f" without {off}"))
        if whole is not None and whole not in shown:
            shown.append(whole)
            cells = (_cell(name, whole, None) for name in names)
            rows.append((row_name(whole, marks), _WHOLE, f"{whole.count:,}", *cells))
        same = whole if whole is not None and _sample(whole) == _sample(result) else None
        cells = (_cell(name, result, same) for name in names)
        rows.append((system, feature_names(off), f"{result.count:,}", *cells))
    headings = ("system", OFF, "n", *(METRICS[name].heading for name in names))
    return Grid(title, headings, tuple(rows), frozenset(range(2, len(headings))))


def _with_ratings(result: Result, rated: Mapping[str, Result], whole: str) -> Result:
    """The row with its ratings, where its replies stood on the same sheets as the whole listener's."""
    own, reference = rated.get(result.system), rated.get(whole)
    if own is None or reference is None or own.data != reference.data:
        return result
    return replace(result, metrics=(*result.metrics, *own.metrics))


def _sample(result: Result) -> tuple[object, ...]:
    return (result.corpus, result.split, result.count, result.seed, dict(result.conditions).get("sample"))


def _cell(name: str, result: Result, whole: Result | None) -> str:
    kind, value = METRICS[name], result.metric(name)
    base = whole.metric(name) if whole else None
    if value is None or base is None:
        return kind.show(value)
    change = kind.show(round(value - base, kind.decimals) + 0.0)
    return f"{kind.show(value)} ({change if change.startswith('−') else f'+{change}'})"
