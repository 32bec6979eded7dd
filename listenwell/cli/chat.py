"""`listenwell chat`: a talk in the terminal; from a pipe, an answer to each line."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from listenwell.cli.conversation import Talk, earlier_talks
from listenwell.cli.options import (
    Candidates,
    Model,
    PersonaLines,
    Plans,
    Pool,
    Precision,
    Recipe,
    Seed,
    Weights,
    Without,
)
from listenwell.cli.reply import unheard
from listenwell.cli.terminal import one_line
from listenwell.cli.terminal_chat import talk_at_terminal
from listenwell.errors import ListenwellError
from listenwell.generators import DEFAULT


def chat(
    persona_line: PersonaLines = None,
    seed: Seed = None,
    save: Annotated[
        Path | None, typer.Option(help="Add the talk to this JSONL file, written after each reply.")
    ] = None,
    model: Model = DEFAULT,
    recipe: Recipe = None,
    weights: Weights = None,
    pool: Pool = None,
    plans: Plans = None,
    candidates: Candidates = None,
    precision: Precision = None,
    without: Without = None,
) -> None:
    """Talk with the listener.

    At a terminal, replies are streamed. From a pipe, each line is answered with one line, and the lines
    are one conversation.
    """
    from listenwell.listener import Listener

    kept = earlier_talks(save) if save else b""
    at_terminal = sys.stdin.isatty()
    if at_terminal:
        typer.echo("Waking the listener …", err=True)
    # Only a person at a terminal can ask what was heard.
    off = unheard(model, at_terminal, without)
    listener = Listener.load(
        model,
        recipe=recipe,
        weights=weights,
        pool=pool,
        plans=plans,
        candidates=candidates,
        precision=precision,
        without=off,
    )
    talk = Talk(listener, tuple(persona_line or ()), seed, save, kept)
    if at_terminal:
        talk_at_terminal(talk)
    else:
        _from_pipe(talk)


def _from_pipe(talk: Talk) -> None:
    answered = failed = 0
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        text = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not text.strip():
            typer.echo(f"listenwell: line {number} is empty and was passed over.", err=True)
            continue
        try:
            reply = talk.say(text, stream=False)
        except ListenwellError as error:  # the lines after this one are answered all the same
            typer.echo(f"listenwell: line {number}: {error}", err=True)
            failed += 1
            typer.echo("")  # still a line for a line
            continue
        typer.echo(one_line(reply.text))
        sys.stdout.flush()  # a program at the other end waits for this line
        answered += 1
        for notice in reply.notices:
            typer.echo(f"listenwell: line {number}: {notice}", err=True)
    if failed:
        raise typer.Exit(1)
    if not answered:
        typer.echo(
            "listenwell: standard input had nothing to answer. Try: "
            "echo 'I finally got promoted today!' | listenwell chat",
            err=True,
        )
