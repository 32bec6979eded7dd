"""`listenwell reply`: one answer to one text."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from listenwell.cli.options import (
    Act,
    AsJson,
    Candidates,
    Emotion,
    Mechanisms,
    Model,
    PersonaLines,
    Plans,
    Pool,
    Precision,
    Recipe,
    Seed,
    Tone,
    Weights,
    Without,
)
from listenwell.cli.terminal import visible
from listenwell.generators import DEFAULT

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
    model: Model = DEFAULT,
    recipe: Recipe = None,
    weights: Weights = None,
    pool: Pool = None,
    act: Act = None,
    mechanism: Mechanisms = None,
    tone: Tone = None,
    emotion: Emotion = None,
    plans: Plans = None,
    candidates: Candidates = None,
    precision: Precision = None,
    without: Without = None,
) -> None:
    """Answer one text; a reply that nothing is chosen or guarded after is streamed as it is made.

    Example: listenwell reply "I finally got promoted today!" --seed 1
    """
    from listenwell.generators.plans import wanted
    from listenwell.listener import Listener

    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    talk = read_history(history) if history else None
    steered = any(part is not None for part in (emotion, mechanism, act, tone))
    want = wanted(emotion, mechanism, act, tone) if steered else None
    listener = Listener.load(
        model,
        recipe=recipe,
        weights=weights,
        pool=pool,
        plans=plans,
        candidates=candidates,
        precision=precision,
        without=unheard(model, as_json, without),
    )
    answer = listener.reply(
        text,
        history=talk,
        persona=persona_line or (),
        want=want,
        seed=seed,
        on_text=None if as_json else lambda piece: typer.echo(visible(piece), nl=False),
    )
    typer.echo(answer.to_json() if as_json else "")
    for notice in answer.notices:
        typer.echo(f"listenwell: {notice}", err=True)


def unheard(model: str, shown: bool, without: list[str] | None) -> tuple[str, ...]:
    """What is switched off: what was asked for, and hearing where nobody sees or uses what was heard."""
    off = tuple(without or ())
    return off if shown or model == "planned" else (*off, "understand")


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
