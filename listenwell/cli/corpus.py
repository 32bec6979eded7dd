"""`listenwell corpus`: list, show, measure, convert and download corpora."""

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from listenwell.cli.corpus_factors import factors
from listenwell.cli.corpus_listeners import listeners
from listenwell.cli.options import AsJson

if TYPE_CHECKING:
    from listenwell.corpora import Item, Reader

corpus = typer.Typer(no_args_is_help=True, help="Read the corpora of the field in their publishers' formats.")

Name = Annotated[str, typer.Argument(help="A corpus; `listenwell corpus list` shows them.")]
Where = Annotated[
    Path | None,
    typer.Option("--path", help="The corpus's folder or file; otherwise looked for under LISTENWELL_DATA."),
]
Split = Annotated[str | None, typer.Option(help="One split; otherwise every one that is there.")]


@corpus.command("list")
def list_(as_json: AsJson = False) -> None:
    """Show every corpus, its licence, and which splits are here."""
    from listenwell.corpora import CORPORA

    readers = [CORPORA.load(name)() for name in CORPORA]
    rows = [
        {
            "name": reader.name,
            "title": reader.title,
            "licence": reader.licence,
            "citation": reader.citation,
            "path": str(reader.path),
            "splits": list(reader.splits),
            "here": list(reader.available()),
            "download": bool(reader.downloads),
        }
        for reader in readers
    ]
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    from listenwell.cli.tables import corpus_table

    corpus_table(rows)


@corpus.command()
def show(
    name: Name,
    index: Annotated[int, typer.Option(min=0, help="Which one, from 0.")] = 0,
    split: Split = None,
    path: Where = None,
    as_json: AsJson = False,
) -> None:
    """Show one dialogue or labelled text."""
    from listenwell.cli.tables import item_panel
    from listenwell.errors import InputError

    reader = open_reader(name, path)
    chosen = split or chosen_splits(reader, None)[0]
    item = next(islice(reader.read(chosen), index, None), None)
    if item is None:
        raise InputError(f"{name} {chosen} has no item {index}.", "Give a smaller --index.")
    if as_json:
        typer.echo(item.to_json())
    else:
        item_panel(item, f"{name} · {chosen} · {index}")


@corpus.command()
def stats(name: Name, split: Split = None, path: Where = None, as_json: AsJson = False) -> None:
    """Print what the papers print: sizes, average lengths, label distributions."""
    from listenwell.corpora import Report
    from listenwell.corpora.stats import measure

    reader, figures, reports = open_reader(name, path), {}, {}
    for part in chosen_splits(reader, split):
        reader.report = Report()
        figures[part] = measure(_read(reader, part))
        reports[part] = reader.report
    if as_json:
        data = {
            part: {
                **figures[part].to_dict(),
                "skipped": dict(reports[part].skipped),
                "counts": dict(reports[part].counts),
            }
            for part in figures
        }
        typer.echo(json.dumps({"corpus": name, "splits": data}, ensure_ascii=False))
        return
    from listenwell.cli.tables import statistics_tables

    statistics_tables(reader, figures, reports)


@corpus.command()
def convert(
    name: Name,
    to: Annotated[Path, typer.Option(help="The JSONL file to write; - writes to standard output.")],
    split: Split = None,
    path: Where = None,
) -> None:
    """Write a corpus as listenwell's own JSONL, whole or not at all."""
    from listenwell.files import written_whole

    reader, count = open_reader(name, path), 0
    out = nullcontext(sys.stdout.buffer) if str(to) == "-" else written_whole(to)
    with out as file:
        for part in chosen_splits(reader, split):
            for item in _read(reader, part):
                file.write(item.to_json().encode("utf-8") + b"\n")
                count += 1
    typer.echo(f"{count} items of {name} written to {to}.", err=True)
    for line in reader.report.lines():
        typer.echo(f"  {line}", err=True)


@corpus.command()
def download(
    name: Name,
    path: Annotated[
        Path | None, typer.Option(help="The folder to fill; otherwise under LISTENWELL_DATA.")
    ] = None,
    accept_licence: Annotated[bool, typer.Option(help="You have read the licence and accept it.")] = False,
) -> None:
    """Fetch a corpus from its publisher; every file is checked against a pinned sha256 sum."""
    from listenwell.corpora.download import fetch
    from listenwell.errors import DownloadError

    reader = open_reader(name, path)
    if not reader.downloads:
        raise DownloadError(f"{name} cannot be downloaded.", reader.how_to_get())
    typer.echo(f"{reader.title} ({reader.citation})\nLicence: {reader.licence}")
    if not accept_licence:
        raise DownloadError(
            "Nothing was downloaded: the licence is not accepted yet.",
            f"If you accept it: listenwell corpus download {name} --accept-licence",
        )
    for wanted in reader.downloads:
        for file in fetch(wanted, reader.path):
            typer.echo(f"  {file}")
    typer.echo(f"Splits that are here: {', '.join(reader.available()) or 'none'}.")


corpus.command()(factors)
corpus.command()(listeners)


def open_reader(name: str, path: Path | None) -> "Reader":
    """The reader of a corpus, in its own place or in another."""
    from listenwell.corpora import CORPORA

    return CORPORA.load(name)(path)


def chosen_splits(reader: "Reader", split: str | None) -> tuple[str, ...]:
    """The split that was named, or all that are here; an error if none is."""
    if split is not None:
        reader.check(split)
        return (split,)
    if not (here := reader.available()):
        reader.check(reader.splits[0])
    return here


def _read(reader: "Reader", split: str) -> "Iterator[Item]":
    """The items of a split, with a progress bar."""
    from listenwell.progress import progress

    with progress(f"reading {reader.name} {split}", unit="items") as advance:
        for item in reader.read(split):
            yield item
            advance(1)
