"""`listenwell reply`: one answer to one text."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from listenwell.cli.options import AsJson, Candidates, Model, PersonaLines, Pool, Recipe, Seed, Weights
from listenwell.cli.terminal import visible

if TYPE_CHECKING:
    from listenwell.dialogue import Dialogue


def reply(
    text: Annotated[str, typer.Argument(help="What the person says; - reads it from standard input.")],
    persona_line: PersonaLines = None,
    history: Annotated[
        Path | None, typer.Option(help="A JSONL file; its last dialogue is the talk before this.")
    ] = None,
    seed: Seed = None,
    as_json: AsJson = False,
    model: Model = "prompted",
    recipe: Recipe = None,
    weights: Weights = None,
    pool: Pool = None,
    candidates: Candidates = None,
) -> None:
    """Answer one text, streamed as it is made.

    Example: listenwell reply "I finally got promoted today!" --seed 1
    """
    from listenwell.listener import Listener

    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    talk = read_history(history) if history else None
    # What was heard is only shown as JSON: without that, nobody waits for it.
    listener = Listener.load(
        model, recipe=recipe, weights=weights, pool=pool, candidates=candidates, understand=as_json
    )
    answer = listener.reply(
        text,
        history=talk,
        persona=persona_line or (),
        seed=seed,
        on_text=None if as_json else lambda piece: typer.echo(visible(piece), nl=False),
    )
    typer.echo(answer.to_json() if as_json else "")
    for notice in answer.notices:
        typer.echo(f"listenwell: {notice}", err=True)


def read_history(file: Path) -> "Dialogue":
    """The last dialogue of a JSONL file."""
    from listenwell.corpora.own import OwnJsonl
    from listenwell.dialogue import Dialogue
    from listenwell.errors import InputError

    if not file.is_file():
        raise InputError(f"There is no file {file}.", "Name a JSONL file with a dialogue.")
    reader = OwnJsonl(file)
    found = list(reader.read("all"))
    if reader.report.skipped:
        raise InputError(f"{file} cannot be used: {reader.report.lines()[0]}.", "Correct that line.")
    if not found or not isinstance(found[-1], Dialogue):
        raise InputError(f"{file} holds no dialogue at its end.", "Give a file that `chat --save` wrote.")
    return found[-1]
