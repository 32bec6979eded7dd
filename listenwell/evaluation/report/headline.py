"""The headline table: for each task ours, the best published number and people."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from listenwell.evaluation.report.names import display_name
from listenwell.evaluation.report.tables import Marks
from listenwell.results.markdown import Grid
from listenwell.results.metric_registry import METRICS
from listenwell.results.published import PUBLISHED
from listenwell.results.store import HUMAN, Result, source


@dataclass(frozen=True)
class Headline:
    """One row of the headline table."""

    title: str
    task: str
    metric: str
    system: str
    """Our row."""
    conditions: str
    """In a few words; {n} is the number of examples."""
    page: str
    subject: str = ""
    """What the names of comparable published rows begin with."""


def _read() -> tuple[Headline, ...]:
    text = files("listenwell.evaluation.report").joinpath("headlines.csv").read_text(encoding="utf-8")
    return tuple(Headline(**row) for row in csv.DictReader(text.splitlines()))


HEADLINES = _read()
"""The rows, in the order of the page."""


def headline_grid(results: Sequence[Result], marks: Marks) -> Grid:
    """Ours, the best published number or baseline, and people, one row for each headline."""
    rows = {(result.task, result.system): result for result in results}
    lines = []
    for headline in HEADLINES:
        ours = rows.get((headline.task, headline.system))
        if ours is None or ours.metric(headline.metric) is None:
            continue
        kind = METRICS[headline.metric]
        people = rows.get((headline.task, HUMAN))
        if people and kind.group == "overlap":  # measured against themselves
            people = None
        lines.append(
            (
                headline.title,
                kind.heading + {"lower": " ↓", "higher": " ↑"}.get(kind.better, ""),
                f"{kind.show(ours.metric(kind.name))} {marks.get((ours.task, ours.system), '')}".rstrip(),
                _best(headline, results),
                kind.show(people.metric(kind.name) if people else None),
                headline.conditions.format(n=f"{ours.count:,}"),
                f"[{headline.page}](results/{headline.page}.md)",
            )
        )
    headings = ("task", "metric", "ours", "best published", "people", "conditions", "page")
    return Grid("Headline", headings, tuple(lines), frozenset((2, 4)))


def _best(headline: Headline, results: Sequence[Result]) -> str:
    """The best number that a paper printed or a baseline reached, with its system."""
    kind = METRICS[headline.metric]
    numbers = [
        (entry.value, entry.system)
        for entry in PUBLISHED
        if (entry.task, entry.metric) == (headline.task, headline.metric)
        and (not headline.subject or entry.system.startswith(f"{headline.subject}: "))
    ]
    numbers += [
        (value, display_name(result.system))
        for result in results
        if result.task == headline.task
        and source(result) == "baseline"
        and (value := result.metric(headline.metric)) is not None
    ]
    if not numbers:
        return "–"
    value, system = (min if kind.better == "lower" else max)(numbers)
    return f"{kind.show(value)} ({system.removeprefix(f'{headline.subject}: ')})"
