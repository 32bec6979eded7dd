"""`listenwell annotate`: what every turn expresses, for a text, a file or a whole corpus."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from listenwell.cli.options import AnySplit, CorpusPath, EncoderWeights
from listenwell.cli.terminal import visible

if TYPE_CHECKING:
    from listenwell.annotators.inputs import Source
    from listenwell.annotators.stream import Stream
    from listenwell.progress import Advance

SourceName = Annotated[
    str, typer.Argument(metavar="SOURCE", help="A file, a corpus's name, or - for standard input.")
]
Out = Annotated[Path | None, typer.Option(help="The JSONL file to write, instead of standard output.")]
Heads = Annotated[
    list[str] | None, typer.Option("--heads", "--head", help="Only these, such as emotion,act; repeatable.")
]
Top = Annotated[int, typer.Option(min=1, help="How many labels of each head to keep.")]
Listener = Annotated[
    str | None, typer.Option(help="Who listens, as the turns name them; otherwise as each dialogue says.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Begin anew, and replace --out in the end.")]
Model = Annotated[Path | None, typer.Option(help="Your own annotators' folder, instead of the shipped one.")]


def annotate(
    source: SourceName,
    split: AnySplit = None,
    path: CorpusPath = None,
    out: Out = None,
    heads: Heads = None,
    top: Top = 5,
    listener: Listener = None,
    overwrite: Overwrite = False,
    weights: EncoderWeights = None,
    model: Model = None,
) -> None:
    """Read emotions, intents, acts and mechanisms from every turn; writes one dialogue a line as JSONL.

    A file holds one utterance a line, or JSONL: dialogues, or {"text": "…"}; lines without an id get their
    number. With --out, the same command resumes a stopped run. Broken lines are skipped and reported.

    Example: echo "I finally got promoted today!" | listenwell annotate - --heads emotion
    """
    from listenwell.annotators.inputs import find_source
    from listenwell.annotators.stream import GrowingFile, Stream
    from listenwell.errors import InputError
    from listenwell.files import disk_errors

    if listener == "":
        raise InputError("--listener names nobody.", "Leave it out, or give a name that the turns have.")
    chosen = _heads(heads)
    inputs = find_source(source, split, path)
    out = None if str(out) == "-" else out
    growing = None
    if out:
        with disk_errors(out):  # a pipe or a device is written to, never replaced
            is_special = out.exists() and not out.is_file() and not out.is_dir()
        if not is_special:
            growing = GrowingFile(out, overwrite)
            growing.check()

    from listenwell.annotators.annotator import Annotator

    stream = Stream(Annotator.load(model, heads=chosen, weights=weights), inputs, top, listener)
    try:
        if growing:
            with _bar(inputs) as advance:
                stream.write_file(growing, advance)
        else:
            # Fetched before the bar: at a terminal that takes the place of sys.stdout.
            with (
                out.open("wb") if out else nullcontext(sys.stdout.buffer) as file,
                _bar(inputs, file) as advance,
            ):
                stream.write(file, advance)
    except KeyboardInterrupt:
        kept = ""
        if growing and stream.lines:
            kept = f" They are kept in {growing.part}. {growing.how_to_go_on()}"
        typer.echo(f"\nStopped after {stream.lines:,} lines.{visible(kept)}", err=True)
        raise typer.Exit(130) from None
    _conclude(stream, out)
    for line in _remarks(stream, chosen or ()):
        typer.echo(visible(line), err=True)


def _heads(options: list[str] | None) -> tuple[str, ...] | None:
    """Names from `--heads a,b` and `--head c`, each checked; None where none were options."""
    from listenwell.annotators.heads import HEADS
    from listenwell.errors import InputError, unknown_name
    from listenwell.labels import current_factor

    if not options:
        return None
    names = tuple(dict.fromkeys(name.strip() for part in options for name in part.split(",") if name.strip()))
    names = tuple(map(current_factor, names))
    for name in names:
        if name not in HEADS:
            raise unknown_name("head", name, HEADS)
    if not names:
        raise InputError("--heads names none.", f"Leave it out, or choose from: {', '.join(HEADS)}.")
    return names


def _bar(source: "Source", out: object = None) -> "AbstractContextManager[Advance]":
    from listenwell.progress import progress

    if getattr(out, "isatty", bool)():  # lines on the same screen are progress enough
        return nullcontext(lambda count: None)
    return progress(f"annotating {visible(source.name)}", unit="lines", rate=True)


def _conclude(stream: "Stream", out: Path | None) -> None:
    """One line of figures, and one for each reason to skip a line; an error if nothing was annotated."""
    from listenwell.errors import InputError

    source = stream.source
    skipped = source.report.lines() if source.report.skipped else []
    if stream.lines:
        earlier = f" ({stream.earlier:,} of them before)" if stream.earlier else ""
        figures = f"{stream.lines:,} lines annotated{earlier}, {stream.rate():,.1f} lines/s"
        where = f"written to {out}" if out else "written to standard output"
        left_out = f"{source.report.skipped.total():,} skipped" if skipped else "nothing skipped"
        typer.echo(visible(f"{figures}, {left_out}; {where}."), err=True)
    for line in skipped:
        typer.echo(f"  {visible(line)}", err=True)
    if not stream.lines:
        raise InputError(
            f"Nothing was annotated: {source.name} holds no text that can be read.",
            'Give one utterance a line, or JSONL with {"text": "…"} or whole dialogues.',
        )


def _remarks(stream: "Stream", heads: Sequence[str]) -> Iterator[str]:
    """What a user should know of the lines: nobody listens in them, or a head had nothing to read."""
    from listenwell.annotators.heads import CONTEXT, HEADS, REPLY

    if count := stream.without_listener:
        dialogues = "1 dialogue has" if count == 1 else f"{count:,} dialogues have"
        whose = "its" if count == 1 else "their"
        yield f"{dialogues} two or more turns, but none of {whose} listener. Say who listens: --listener NAME"
    reads = {
        CONTEXT: "turns of everyone but the listener",
        REPLY: "the listener's turns after another person's",
    }
    for name in heads:
        if name not in stream.read:
            yield f"{name} was read nowhere: it needs {reads.get(HEADS[name].view, 'turns')}."
