"""Tables and panels in the terminal; everything from a corpus or a result is text, never markup."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from listenwell.cli.terminal import visible
from listenwell.dialogue import Dialogue, Factors, LabelledText

if TYPE_CHECKING:
    from listenwell.corpora import CorpusLoader, Item, Report
    from listenwell.corpora.stats import Counts, Statistics
    from listenwell.results.markdown import Grid
    from listenwell.results.store import Result

_BAR = 24
_WIDTH = 130
"""The width of the widest table; in a narrower terminal, lines wrap."""


def corpus_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Every corpus on a line."""
    table = Table(box=None, header_style="bold")
    for title in ("name", "here", "licence", "what"):
        table.add_column(title, overflow="fold", no_wrap=title == "name")
    for row in rows:
        here = ", ".join(row["here"]) or ("to download" if row["download"] else "–")
        table.add_row(row["name"], here, row["licence"], row["title"])
    Console().print(table)


def item_panel(item: "Item", title: str) -> None:
    """One dialogue or labelled text in a frame."""
    parts = [_labelled(item)] if isinstance(item, LabelledText) else _dialogue(item)
    Console().print(Panel(Group(*parts), title=Text(visible(f"{title} · {item.id}")), title_align="left"))


def _labelled(item: LabelledText) -> Text:
    return Text.assemble(visible(item.text), ("  " + ", ".join(item.labels), "cyan"))


def _dialogue(dialogue: Dialogue) -> list[Text]:
    parts = []
    if dialogue.emotion or dialogue.situation:
        parts.append(
            Text.assemble((f"{dialogue.emotion or ''}  ", "magenta"), visible(dialogue.situation or ""))
        )
    for persona in dialogue.personas:
        parts.append(Text(f"{visible(persona.speaker)}: {visible(' '.join(persona.lines))}", style="dim"))
    for turn in dialogue.turns:
        style = "cyan" if turn.speaker == dialogue.listener else "green"
        parts.append(
            Text.assemble(
                (f"{visible(turn.speaker)}: ", style), visible(turn.text), (_factors(turn.factors), "yellow")
            )
        )
    if dialogue.notes:
        parts.append(
            Text(visible(" · ".join(f"{key}: {value}" for key, value in dialogue.notes)), style="dim")
        )
    return parts


def _factors(factors: Factors | None) -> str:
    if factors is None:
        return ""
    known = factors.to_dict()
    known.pop("levels", None)
    values = (
        ", ".join(value) or "no mechanism" if isinstance(value, list) else value for value in known.values()
    )
    return f"  [{'; '.join(values)}]"


def statistics_tables(
    loader: "CorpusLoader", figures: Mapping[str, "Statistics"], reports: Mapping[str, "Report"]
) -> None:
    """Statistics with a column a split, label distributions with bars, and what was left out."""
    console = Console()
    table = Table(title=f"{loader.title} ({loader.citation})", title_justify="left", box=None)
    table.add_column("")
    for split in figures:
        table.add_column(split, justify="right")
    rows = {split: statistics.to_dict() for split, statistics in figures.items()}
    for name in next(iter(rows.values())):
        values = [row[name] for row in rows.values()]
        if name != "labels" and any(values):
            shown = [f"{value:,}" if isinstance(value, int) else f"{value:.2f}" for value in values]
            table.add_row(name.replace("_", " "), *shown)
    console.print(table)
    for split, statistics in figures.items():
        for kind, counts in statistics.labels:
            console.print(_distribution(f"{kind}, {split}", counts))
    for split, report in reports.items():
        for line in report.lines():
            console.print(Text(visible(f"{split}: {line}"), style="dim"))


def _distribution(title: str, counts: "Counts") -> Table:
    table = Table(title=title, title_justify="left", box=None, show_header=False)
    total, largest = sum(count for _, count in counts), counts[0][1]
    for label, count in counts:
        bar = "█" * max(1, round(_BAR * count / largest))
        table.add_row(label, f"{count:,}", f"{100 * count / total:.1f} %", Text(bar, style="cyan"))
    return table


def result_table(result: "Result") -> None:
    """One result: a metric a line with its unit, then the conditions."""
    from listenwell.results.metric_registry import METRICS, metric

    title = f"{result.system} · {result.corpus} {result.split} · {result.count:,} replies"
    table = Table(title=Text(visible(title)), title_justify="left", box=None, header_style="bold")
    table.add_column("metric")
    table.add_column("value", justify="right")
    table.add_column("unit", style="dim")
    table.add_column("", style="dim", overflow="fold")
    units, order = dict(result.units), list(METRICS)
    for name, value in sorted(
        result.metrics, key=lambda pair: order.index(pair[0]) if pair[0] in METRICS else len(order)
    ):
        known = metric(name, units.get(name, ""))
        table.add_row(known.label, known.show(value), known.unit, known.note)
    console = Console()
    console.print(table)
    for name in ("sample", "decoding", "factors"):
        if condition := dict(result.conditions).get(name):
            console.print(Text(visible(f"{name}: {condition}"), style="dim"))


def show_result(result: "Result", path: Path, as_json: bool) -> None:
    """Print a result as a table or as JSON, and where it was written."""
    if as_json:
        typer.echo(result.to_json())
    else:
        result_table(result)
    typer.echo(f"Written to {path}.", err=True)


def grid_table(grid: "Grid") -> None:
    """A table of the results page; numbers are never folded, long words are."""
    table = Table(title=Text(grid.title), title_justify="left", box=None, header_style="bold")
    for column, heading in enumerate(grid.columns):
        if column in grid.numbers:
            widest = max([*map(len, heading.split()), *(len(row[column]) for row in grid.rows)])
            table.add_column(Text(heading), justify="right", min_width=widest)
        else:
            table.add_column(Text(heading), no_wrap=heading in ("system", "who"), overflow="fold")
    for row in grid.rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    console = Console(width=max(Console().width, _WIDTH))
    console.print(table)
