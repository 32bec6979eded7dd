"""Tables and panels of the corpus commands; everything from a corpus is shown as text, never as markup."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from listenwell.cli.terminal import visible
from listenwell.dialogue import Dialogue, Factors, LabelledText

if TYPE_CHECKING:
    from listenwell.corpora import CorpusLoader, Item, Report
    from listenwell.corpora.stats import Counts, Statistics

_BAR = 24


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
                (f"{visible(turn.speaker)}: ", style),
                visible(turn.text),
                (_factors(turn.factors), "yellow"),
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
