"""`listenwell corpus`: list, show, measure, convert and download corpora."""

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from listenwell.cli.corpus_analysis import factors, listeners
from listenwell.cli.options import AsJson

if TYPE_CHECKING:
    from listenwell.corpora import CorpusLoader, Item

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

    loaders = [CORPORA.load(name)() for name in CORPORA]
    rows = [
        {
            "name": loader.name,
            "title": loader.title,
            "licence": loader.licence,
            "citation": loader.citation,
            "path": str(loader.path),
            "splits": list(loader.splits),
            "here": list(loader.available()),
            "download": bool(loader.downloads),
        }
        for loader in loaders
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

    loader = open_loader(name, path)
    chosen = split or chosen_splits(loader, None)[0]
    item = next(islice(loader.read(chosen), index, None), None)
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

    loader, figures, reports = open_loader(name, path), {}, {}
    for part in chosen_splits(loader, split):
        loader.report = Report()
        figures[part] = measure(_read(loader, part))
        reports[part] = loader.report
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

    statistics_tables(loader, figures, reports)


@corpus.command()
def convert(
    name: Name,
    to: Annotated[Path, typer.Option(help="The JSONL file to write; - writes to standard output.")],
    split: Split = None,
    path: Where = None,
) -> None:
    """Write a corpus as listenwell's own JSONL, whole or not at all."""
    from listenwell.files import written_whole

    loader, count = open_loader(name, path), 0
    out = nullcontext(sys.stdout.buffer) if str(to) == "-" else written_whole(to)
    with out as file:
        for part in chosen_splits(loader, split):
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

    loader = open_loader(name, path)
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


def open_loader(name: str, path: Path | None) -> "CorpusLoader":
    """The loader of a corpus, in its usual folder or in another."""
    from listenwell.corpora import CORPORA

    return CORPORA.load(name)(path)


def chosen_splits(loader: "CorpusLoader", split: str | None) -> tuple[str, ...]:
    """The split that was named, or all that are here; an error if none is."""
    if split is not None:
        loader.check(split)
        return (split,)
    if not (here := loader.available()):
        loader.check(loader.splits[0])
    return here


def _read(loader: "CorpusLoader", split: str) -> "Iterator[Item]":
    """The items of a split, with a progress bar."""
    from listenwell.progress import progress

    with progress(f"reading {loader.name} {split}", unit="items") as advance:
        for item in loader.read(split):
            yield item
            advance(1)
