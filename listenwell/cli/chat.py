"""`listenwell chat`: a talk in the terminal; from a pipe, an answer to each line."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from listenwell.cli.options import Model, PersonaLines, Recipe, Seed, Weights
from listenwell.cli.terminal import one_line, visible

if TYPE_CHECKING:
    from listenwell.dialogue import Dialogue
    from listenwell.listener import Listener

HELP = "/new starts over, /save FILE keeps the talk, /quit (or Ctrl-D) leaves; Ctrl-C stops a reply."


def chat(
    persona_line: PersonaLines = None,
    seed: Seed = None,
    save: Annotated[
        Path | None, typer.Option(help="Keep the talk in this JSONL file, written after each reply.")
    ] = None,
    model: Model = "prompted",
    recipe: Recipe = None,
    weights: Weights = None,
) -> None:
    """Talk with the listener.

    At a terminal, replies are streamed. From a pipe, each line is answered with one line, and the lines
    are one conversation.
    """
    from listenwell.listener import Listener

    at_terminal = sys.stdin.isatty()
    if at_terminal:
        typer.echo("Waking the listener …", err=True)
    listener = Listener.load(model, recipe=recipe, weights=weights)
    talk = Talk(listener, tuple(persona_line or ()), seed, save)
    if at_terminal:
        _at_terminal(talk)
    else:
        _from_pipe(talk)


@dataclass
class Talk:
    """A conversation that grows, and is kept on disk where the user asked for it."""

    listener: "Listener"
    persona: tuple[str, ...]
    seed: int | None
    save: Path | None
    dialogue: "Dialogue | None" = None

    def say(self, text: str, stream: bool) -> tuple[str, tuple[str, ...]]:
        """Answer and remember both turns; returns the reply and its notices."""
        from dataclasses import replace

        from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Turn

        reply = self.listener.reply(
            text,
            history=self.dialogue,
            persona=self.persona,
            seed=self.seed,
            on_text=(lambda piece: typer.echo(visible(piece), nl=False)) if stream else None,
        )
        turns = (Turn(SPEAKER, text), Turn(LISTENER, reply.text))
        known = self.dialogue
        self.dialogue = replace(known, turns=(*known.turns, *turns)) if known else Dialogue(turns)
        if self.save:
            self.keep(self.save)
        return reply.text, reply.notices

    def keep(self, file: Path) -> None:
        """Write the talk, whole or not at all."""
        from listenwell.files import written_whole

        if self.dialogue:
            with written_whole(file) as out:
                out.write(self.dialogue.to_json().encode() + b"\n")


def _from_pipe(talk: Talk) -> None:
    answered = 0
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        text = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not text.strip():
            typer.echo(f"listenwell: line {number} is empty and was passed over.", err=True)
            continue
        reply, notices = talk.say(text, stream=False)
        typer.echo(one_line(reply))
        sys.stdout.flush()  # a program at the other end waits for this line
        answered += 1
        for notice in notices:
            typer.echo(f"listenwell: line {number}: {notice}", err=True)
    if not answered:
        typer.echo(
            "listenwell: standard input had nothing to answer. Try: "
            "echo 'I finally got promoted today!' | listenwell chat",
            err=True,
        )


def _at_terminal(talk: Talk) -> None:
    typer.echo(f"I am listening. {HELP}")
    for text in _lines():
        command, _, rest = text.strip().partition(" ")
        if command == "/quit":
            return
        if command == "/new":
            talk.dialogue = None
            typer.echo("A new talk.")
        elif command == "/save":
            _save(talk, rest.strip())
        elif command.startswith("/"):
            typer.echo(HELP)
        elif text.strip():
            _answer(talk, text)


def _answer(talk: Talk, text: str) -> None:
    typer.secho("listener › ", fg="cyan", nl=False)
    try:
        _, notices = talk.say(text, stream=True)
    except KeyboardInterrupt:
        notices = ("The reply was stopped; this exchange is not remembered.",)
    typer.echo("")
    for notice in notices:
        typer.secho(notice, fg="yellow")


def _save(talk: Talk, name: str) -> None:
    from listenwell.errors import ListenwellError

    if not name or not talk.dialogue:
        typer.echo("Say something first, then: /save FILE" if name else "Name a file: /save FILE")
        return
    try:
        talk.keep(Path(name))
        typer.echo(f"Kept in {name}.")
    except ListenwellError as error:  # the talk goes on
        typer.secho(str(error), fg="yellow")


def _lines() -> Iterator[str]:
    """What the person types, with the arrow keys working, until Ctrl-D."""
    import contextlib

    with contextlib.suppress(ImportError):  # not on Windows
        import readline  # noqa: F401

    while True:
        try:
            yield input("you › ")
        except KeyboardInterrupt:
            typer.echo("")
        except EOFError:
            typer.echo("")
            return
