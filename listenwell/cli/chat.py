"""`listenwell chat`: a talk in the terminal; from a pipe, an answer to each line."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from listenwell.cli.options import (
    Candidates,
    Model,
    PersonaLines,
    Plans,
    Pool,
    Recipe,
    Seed,
    Weights,
    Without,
)
from listenwell.cli.reply import unheard
from listenwell.cli.terminal import one_line, visible
from listenwell.errors import ListenwellError

if TYPE_CHECKING:
    from listenwell.dialogue import Dialogue, Factors, Reply, Scored
    from listenwell.listener import Listener

HELP = (
    "/heard shows what I heard, /why what I meant and could have said, /new starts over, /save FILE keeps the "
    "talk, /quit (or Ctrl-D) leaves; Ctrl-C stops a reply."
)


def chat(
    persona_line: PersonaLines = None,
    seed: Seed = None,
    save: Annotated[
        Path | None, typer.Option(help="Add the talk to this JSONL file, written after each reply.")
    ] = None,
    model: Model = "prompted",
    recipe: Recipe = None,
    weights: Weights = None,
    pool: Pool = None,
    plans: Plans = None,
    candidates: Candidates = None,
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
        model, recipe=recipe, weights=weights, pool=pool, plans=plans, candidates=candidates, without=off
    )
    talk = Talk(listener, tuple(persona_line or ()), seed, save, kept)
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
    earlier: bytes = b""
    """Talks that the file held before, as lines: they stay."""
    dialogue: "Dialogue | None" = None
    last: "Reply | None" = None
    """The last reply, with what was heard and meant."""

    def say(self, text: str, stream: bool) -> tuple[str, tuple[str, ...]]:
        """Answer and remember both turns; returns the reply and its notices."""
        from dataclasses import replace

        from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Persona, Turn

        reply = self.listener.reply(
            text,
            history=self.dialogue,
            persona=self.persona,
            seed=self.seed,
            on_text=(lambda piece: typer.echo(visible(piece), nl=False)) if stream else None,
        )
        turns = (Turn(SPEAKER, text), Turn(LISTENER, reply.text))
        if self.dialogue is None:
            personas = (Persona(LISTENER, self.persona),) if self.persona else ()
            self.dialogue = Dialogue(turns, personas=personas)
        else:
            self.dialogue = replace(self.dialogue, turns=(*self.dialogue.turns, *turns))
        self.last = reply
        if self.save:
            self.keep(self.save, self.earlier)
        return reply.text, reply.notices

    def start_over(self) -> None:
        """Begin a new talk; the one before stays in the file."""
        if self.dialogue and self.save:
            self.earlier += self.dialogue.to_json().encode() + b"\n"
        self.dialogue = self.last = None

    def keep(self, file: Path, earlier: bytes) -> None:
        """Write the talk after the earlier ones, whole or not at all."""
        from listenwell.files import written_whole

        if self.dialogue:
            with written_whole(file) as out:
                out.write(earlier + self.dialogue.to_json().encode() + b"\n")


def earlier_talks(file: Path) -> bytes:
    """The lines of a file of talks; empty where there is none, an error where it holds something else."""
    from listenwell.corpora.own import OwnJsonl
    from listenwell.errors import InputError

    file = file.expanduser()
    if not file.exists():
        if file.parent.exists() and not file.parent.is_dir():
            raise InputError(f"{file.parent} is no folder.", "Name another file for the talk.")
        return b""
    if file.is_dir():
        raise InputError(f"{file} is a folder.", "Name a file for the talk.")
    reader = OwnJsonl(file)
    for _ in reader.read("all"):
        pass
    if reader.report.skipped:
        raise InputError(
            f"{file} holds something else than talks.", "Name another file, so that nothing is lost."
        )
    content = file.read_bytes()
    return content if not content or content.endswith(b"\n") else content + b"\n"


def _from_pipe(talk: Talk) -> None:
    answered = failed = 0
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        text = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not text.strip():
            typer.echo(f"listenwell: line {number} is empty and was passed over.", err=True)
            continue
        try:
            reply, notices = talk.say(text, stream=False)
        except ListenwellError as error:  # the lines after this one are answered all the same
            typer.echo(f"listenwell: line {number}: {error}", err=True)
            failed += 1
            typer.echo("")  # still a line for a line
            continue
        typer.echo(one_line(reply))
        sys.stdout.flush()  # a program at the other end waits for this line
        answered += 1
        for notice in notices:
            typer.echo(f"listenwell: line {number}: {notice}", err=True)
    if failed:
        raise typer.Exit(1)
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
            talk.start_over()
            typer.echo("A new talk.")
        elif command == "/heard":
            typer.echo(_heard(talk.last.emotion if talk.last else None))
        elif command == "/why":
            typer.echo(_why(talk.last))
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
    except ListenwellError as error:  # the talk goes on
        notices = (str(error),)
    typer.echo("")
    for notice in notices:
        typer.secho(notice, fg="yellow")


def _heard(emotions: "tuple[Scored, ...] | None") -> str:
    """The likeliest emotions, as bars."""
    if not emotions:
        return "Say something first."
    widest = max(len(found.label) for found in emotions)
    return "\n".join(
        f"{found.label:>{widest}} {'█' * round(30 * found.probability):<30} {found.probability:.0%}"
        for found in emotions
    )


def _why(reply: "Reply | None") -> str:
    """The plan of the last reply, and the other candidates with theirs."""
    if reply is None:
        return "Say something first."
    if reply.plan is None and len(reply.candidates) < 2:
        return "Nothing was planned, and there was nothing to choose from."
    lines = [f"I meant: {in_words(reply.plan)}"] if reply.plan else []
    others = [one for one in reply.candidates if one.text != reply.text]
    lines += ["I could also have said:"] if others else []
    lines += [f"  {one_line(one.text)}" + (f"  ({in_words(one.plan)})" if one.plan else "") for one in others]
    return "\n".join(lines)


def in_words(plan: "Factors") -> str:
    """A plan for people, such as `sad · exploration · questioning · caring`."""
    mechanisms = " and ".join(plan.mechanisms) if plan.mechanisms else None
    parts = (plan.emotion, "no mechanism" if plan.mechanisms == () else mechanisms, plan.act, plan.tone)
    return " · ".join(part.replace("_", " ") for part in parts if part)


def _save(talk: Talk, name: str) -> None:
    if not name or not talk.dialogue:
        typer.echo("Say something first, then: /save FILE" if name else "Name a file: /save FILE")
        return
    try:
        talk.keep(Path(name), earlier_talks(Path(name)))
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
