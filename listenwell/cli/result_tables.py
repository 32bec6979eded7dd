"""Tables of the evaluation commands in the terminal."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from listenwell.cli.terminal import visible
from listenwell.results.metric_registry import METRICS, metric

if TYPE_CHECKING:
    from listenwell.results.markdown import Grid
    from listenwell.results.store import Result


_WIDTH = 130
"""The width of the widest table; in a narrower terminal, lines wrap."""


def result_table(result: "Result") -> None:
    """One result: a metric a line with its unit, then the conditions."""
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
