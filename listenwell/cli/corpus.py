"""`listenwell corpus`: list, show, measure, convert and download corpora."""

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from listenwell.cli.corpus_analysis import Name, factors, listeners
from listenwell.cli.options import AnySplit, AsJson, CorpusPath

if TYPE_CHECKING:
    from listenwell.corpora import CorpusLoader, Item

corpus = typer.Typer(no_args_is_help=True, help="Read the corpora of the field in their publishers' formats.")


@corpus.command("list")
def list_(as_json: AsJson = False) -> None:
    """Show every corpus, its licence, and which splits are here."""
    from listenwell.corpora import CORPORA

    rows = [
        {
            **{key: getattr(loader, key) for key in ("name", "title", "licence", "citation")},
            "path": str(loader.path),
            "splits": list(loader.splits),
            "here": list(loader.available()),
            "download": bool(loader.downloads),
        }
        for loader in (CORPORA.load(name)() for name in CORPORA)
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
    split: AnySplit = None,
    path: CorpusPath = None,
    as_json: AsJson = False,
) -> None:
    """Show one dialogue or labelled text."""
    from listenwell.cli.tables import item_panel
    from listenwell.errors import InputError

    loader = _loader(name, path)
    chosen = split or loader.chosen(None)[0]
    item = next(islice(loader.read(chosen), index, None), None)
    if item is None:
        raise InputError(f"{name} {chosen} has no item {index}.", "Give a smaller --index.")
    if as_json:
        typer.echo(item.to_json())
    else:
        item_panel(item, f"{name} · {chosen} · {index}")


@corpus.command()
def stats(name: Name, split: AnySplit = None, path: CorpusPath = None, as_json: AsJson = False) -> None:
    """Print what the papers print: sizes, average lengths, label distributions."""
    from listenwell.corpora import Report
    from listenwell.corpora.stats import measure

    loader, figures, reports = _loader(name, path), {}, {}
    for part in loader.chosen(split):
        reports[part] = loader.report = Report()
        figures[part] = measure(_read(loader, part))
    if as_json:
        data = {
            part: {**figures[part].to_dict(), "skipped": report.skipped, "counts": report.counts}
            for part, report in reports.items()
        }
        typer.echo(json.dumps({"corpus": name, "splits": data}, ensure_ascii=False))
        return
    from listenwell.cli.tables import statistics_tables

    statistics_tables(loader, figures, reports)


@corpus.command()
def convert(
    name: Name,
    to: Annotated[Path, typer.Option(help="The JSONL file to write; - writes to standard output.")],
    split: AnySplit = None,
    path: CorpusPath = None,
) -> None:
    """Write a corpus as listenwell's own JSONL, whole or not at all."""
    from listenwell.files import written_whole

    loader, count = _loader(name, path), 0
    out = nullcontext(sys.stdout.buffer) if str(to) == "-" else written_whole(to)
    with out as file:
        for part in loader.chosen(split):
            for item in _read(loader, part):
                file.write(item.to_json().encode("utf-8") + b"\n")
                count += 1
    typer.echo(f"{count} items of {name} written to {to}.", err=True)
    for line in loader.report.lines():
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

    loader = _loader(name, path)
    if not loader.downloads:
        raise DownloadError(f"{name} cannot be downloaded.", loader.how_to_get())
    typer.echo(f"{loader.title} ({loader.citation})\nLicence: {loader.licence}")
    if not accept_licence:
        raise DownloadError(
            "Nothing was downloaded: the licence is not accepted yet.",
            f"If you accept it: listenwell corpus download {name} --accept-licence",
        )
    for download_ in loader.downloads:
        for file in fetch(download_, loader.path):
            typer.echo(f"  {file}")
    typer.echo(f"Splits that are here: {', '.join(loader.available()) or 'none'}.")


corpus.command()(factors)
corpus.command()(listeners)


def _loader(name: str, path: Path | None) -> "CorpusLoader":
    from listenwell.corpora import CORPORA

    return CORPORA.load(name)(path)


def _read(loader: "CorpusLoader", split: str) -> "Iterator[Item]":
    """The items of a split, with a progress bar."""
    from listenwell.progress import progress

    with progress(f"reading {loader.name} {split}", unit="items") as advance:
        for item in loader.read(split):
            yield item
            advance(1)
