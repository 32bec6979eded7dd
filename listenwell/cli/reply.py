"""`listenwell reply`: one reply to one message."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from listenwell.cli import options
from listenwell.cli.terminal import visible
from listenwell.generators import DEFAULT, INSTRUCTED

if TYPE_CHECKING:
    from listenwell.dialogue import Dialogue


def reply(
    text: Annotated[str, typer.Argument(help="The user's message; - reads it from standard input.")],
    persona: options.PersonaLines = None,
    history: Annotated[
        Path | None, typer.Option(help="A JSONL file whose last dialogue is the conversation so far.")
    ] = None,
    seed: options.Seed = None,
    as_json: options.AsJson = False,
    model: options.Model = DEFAULT,
    recipe: options.Recipe = None,
    weights: options.Weights = None,
    base: options.Base = None,
    pool: options.Pool = None,
    act: options.Act = None,
    mechanisms: options.Mechanisms = None,
    expressed_emotion: options.ExpressedEmotion = None,
    emotion: options.Emotion = None,
    plans: options.Plans = None,
    candidates: options.Candidates = None,
    precision: options.Precision = None,
    without: options.Without = None,
    mechanism: options.OldMechanisms = None,
    persona_line: options.OldPersonaLines = None,
) -> None:
    """Reply to one message.

    Text is printed as soon as it is final: without reranking and guard, word by word.

    Example: listenwell reply "I finally got promoted today!" --act questioning --seed 1
    """
    from listenwell.generators.plans import wanted
    from listenwell.listener import Listener

    model, weights = options.chosen_model(model, weights, base)
    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    mechanisms = mechanisms or mechanism
    is_steered = any(factor is not None for factor in (emotion, mechanisms, act, expressed_emotion))
    target = wanted(emotion, mechanisms, act, expressed_emotion) if is_steered else None
    listener = Listener.from_pretrained(
        model,
        recipe=recipe,
        weights=weights,
        pool=pool,
        plans=plans,
        candidates=candidates,
        precision=precision,
        without=disabled_stages(model, as_json, without),
    )
    answer = listener.reply(
        text,
        history=read_history(history) if history else None,
        persona=persona or persona_line or (),
        target=target,
        seed=seed,
        on_text=None if as_json else lambda chunk: typer.echo(visible(chunk), nl=False),
    )
    typer.echo(answer.to_json() if as_json else "")
    for notice in answer.notices:
        typer.echo(f"listenwell: {notice}", err=True)


def disabled_stages(model: str, is_emotion_shown: bool, without: list[str] | None) -> tuple[str, ...]:
    """The disabled stages, with `understand` where the emotion is neither shown nor used by the generator."""
    disabled = tuple(without or ())
    is_used = model in (DEFAULT, INSTRUCTED)
    return disabled if is_emotion_shown or is_used else (*disabled, "understand")


def read_history(file: Path) -> "Dialogue":
    """The last dialogue of a JSONL file."""
    from listenwell.corpora.own import OwnJsonl
    from listenwell.dialogue import Dialogue
    from listenwell.errors import InputError

    if not file.is_file():
        raise InputError(f"There is no file {file}.", "Name a JSONL file with a dialogue.")
    reader = OwnJsonl(file)
    records = list(reader.read("all"))
    if reader.report.skipped:
        raise InputError(f"{file} cannot be used: {reader.report.lines()[0]}.", "Correct that line.")
    if not records or not isinstance(records[-1], Dialogue):
        raise InputError(f"{file} holds no dialogue at its end.", "Give a file that `chat --save` wrote.")
    return records[-1]
