"""`listenwell chat`: a conversation in the terminal; from a pipe, a reply to each line."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from listenwell.cli import options
from listenwell.cli.conversation import Conversation, read_saved
from listenwell.cli.reply import disabled_stages
from listenwell.cli.terminal import one_line
from listenwell.cli.terminal_chat import chat_at_terminal
from listenwell.errors import ListenwellError
from listenwell.generators import DEFAULT


def chat(
    persona: options.PersonaLines = None,
    seed: options.Seed = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Append the conversation to this JSONL file, updated after each reply."),
    ] = None,
    model: options.Model = DEFAULT,
    recipe: options.Recipe = None,
    weights: options.Weights = None,
    base: options.Base = None,
    pool: options.Pool = None,
    plans: options.Plans = None,
    candidates: options.Candidates = None,
    precision: options.Precision = None,
    without: options.Without = None,
    persona_line: options.OldPersonaLines = None,
) -> None:
    """Chat with the listener.

    At a terminal, /help lists the commands. From a pipe, each line is a message and gets a reply of one line;
    all lines are one conversation.
    """
    from listenwell.listener import Listener

    model, weights = options.chosen_model(model, weights, base)
    saved = read_saved(save) if save else b""
    at_terminal = sys.stdin.isatty()
    if at_terminal:
        typer.echo("Loading the model …", err=True)
    listener = Listener.from_pretrained(
        model,
        recipe=recipe,
        weights=weights,
        pool=pool,
        plans=plans,
        candidates=candidates,
        precision=precision,
        without=disabled_stages(model, at_terminal, without),  # /emotion exists at a terminal only
    )
    conversation = Conversation(listener, tuple(persona or persona_line or ()), seed, save, saved)
    if at_terminal:
        chat_at_terminal(conversation)
    else:
        _from_pipe(conversation)


def _from_pipe(conversation: Conversation) -> None:
    answered = failed = 0
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        text = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not text.strip():
            typer.echo(f"listenwell: line {number} is empty and was skipped.", err=True)
            continue
        try:
            reply = conversation.say(text, stream=False)
        except ListenwellError as error:  # the following lines still get replies
            typer.echo(f"listenwell: line {number}: {error}", err=True)
            failed += 1
            typer.echo("")  # still a line for a line
            continue
        typer.echo(one_line(reply.text))
        sys.stdout.flush()  # the reading program waits for this line
        answered += 1
        for notice in reply.notices:
            typer.echo(f"listenwell: line {number}: {notice}", err=True)
    if failed:
        raise typer.Exit(1)
    if not answered:
        typer.echo(
            "listenwell: there was no message on standard input. Try: "
            "echo 'I finally got promoted today!' | listenwell chat",
            err=True,
        )
