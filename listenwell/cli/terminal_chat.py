"""The chat at a terminal: what a person types is said, or is one of a few commands."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from listenwell.cli.conversation import Talk, earlier_talks
from listenwell.cli.terminal import one_line, visible
from listenwell.errors import ListenwellError

if TYPE_CHECKING:
    from listenwell.dialogue import Factors, Reply, Scored

COMMANDS = {
    "/heard": "what I heard",
    "/why": "what I meant, and could have said",
    "/again": "another reply in place of the last",
    "/act": "steer what replies do, such as /act questioning",
    "/tone": "steer what they express, such as /tone caring",
    "/mechanism": "steer how they show empathy, such as /mechanism exploration",
    "/free": "let me decide again",
    "/persona": "who I am: /persona I work as a nurse.",
    "/new": "start over",
    "/save": "keep the talk: /save FILE",
    "/quit": "leave (or Ctrl-D)",
}
HELP = "I am listening. /help shows what you can do; Ctrl-C stops a reply."


def talk_at_terminal(talk: Talk) -> None:
    """Answer until the person leaves."""
    typer.echo(HELP)
    for text in _lines():
        command, _, rest = text.strip().partition(" ")
        if command == "/quit":
            return
        if command.startswith("/"):
            obey(talk, command, rest.strip())
        elif text.strip():
            _answer(lambda text=text: talk.say(text, stream=True))  # type: ignore[misc]


def obey(talk: Talk, command: str, rest: str) -> None:
    """Do what a command says; one that is unknown shows all of them."""
    if command == "/new":
        talk.start_over()
        typer.echo("A new talk.")
    elif command == "/heard":
        typer.echo(_heard(talk.last.emotion if talk.last else None))
    elif command == "/why":
        typer.echo(_why(talk.last))
    elif command == "/again":
        if talk.dialogue is None:
            typer.echo("Say something first.")
        else:
            _answer(lambda: talk.again(stream=True))
    elif command in ("/act", "/tone", "/mechanism", "/free"):
        _steer(talk, command, rest)
    elif command == "/persona":
        _introduce(talk, rest)
    elif command == "/save":
        _save(talk, rest)
    else:
        widest = max(map(len, COMMANDS))
        typer.echo("\n".join(f"{name:<{widest}}  {meaning}" for name, meaning in COMMANDS.items()))


def completions(line: str) -> list[str]:
    """How a line that was begun can go on: commands, and the names that they take."""
    from listenwell.labels import ACTS, MECHANISMS, TONES

    names = {"/act": ACTS.labels, "/tone": TONES.labels, "/mechanism": (*MECHANISMS.labels, "none")}
    command, blank, rest = line.partition(" ")
    if blank:
        return [name for name in names.get(command, ()) if name.startswith(rest)]
    return [name for name in (*COMMANDS, "/help") if line and name.startswith(line)]


def in_words(plan: "Factors") -> str:
    """A plan for people, such as `sad · exploration · questioning · caring`."""
    mechanisms = " and ".join(plan.mechanisms) if plan.mechanisms else None
    parts = (plan.emotion, "no mechanism" if plan.mechanisms == () else mechanisms, plan.act, plan.tone)
    return " · ".join(part.replace("_", " ") for part in parts if part)


def _answer(ask: "Callable[[], Reply | None]") -> None:
    typer.secho("listener › ", fg="cyan", nl=False)
    notices: tuple[str, ...] = ()
    try:
        reply = ask()
        notices = reply.notices if reply else ()
    except KeyboardInterrupt:
        notices = ("The reply was stopped; this exchange is not remembered.",)
    except ListenwellError as error:  # the talk goes on
        notices = (str(error),)
    typer.echo("")
    for notice in notices:
        typer.secho(visible(notice), fg="yellow")


def _steer(talk: Talk, command: str, rest: str) -> None:
    """Fix a part of the plans to come; without a name, free it."""
    from listenwell.dialogue import Factors
    from listenwell.generators.plans import wanted

    if command == "/free":
        talk.want = None
        typer.echo("I decide myself again.")
        return
    field = command[1:] + ("s" if command == "/mechanism" else "")
    try:
        if talk.listener.plan is None:
            typer.echo(f"The model {visible(talk.listener.generate.name)} makes no plans.")
            return
        given = wanted(**{field: (rest.split() if field == "mechanisms" else rest) if rest else None})  # type: ignore[arg-type]
    except ListenwellError as error:  # the talk goes on
        typer.secho(visible(str(error)), fg="yellow")
        return
    talk.want = replace(talk.want or Factors(), **{field: getattr(given, field)})
    if talk.want == Factors():
        talk.want = None
    now = in_words(talk.want) if talk.want else "nothing"
    typer.echo(f"Fixed from now on: {now}. /again says the last reply anew, /free lets me decide.")


def _introduce(talk: Talk, rest: str) -> None:
    """Show who the listener is, add a sentence, or forget all of them."""
    if rest == "none":
        talk.persona = ()
    elif rest:
        talk.persona = (*talk.persona, rest)
    lines = "\n".join(f"  {visible(line)}" for line in talk.persona)
    typer.echo(f"Who I am:\n{lines}\n(/persona none forgets it.)" if lines else "Nothing is known of me.")


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
    """What the person types, with history and completion while the talk lasts, until Ctrl-D."""
    _complete()
    while True:
        try:
            yield input("you › ")
        except KeyboardInterrupt:
            typer.echo("")
        except EOFError:
            typer.echo("")
            return


def _complete() -> None:
    """Arrow keys and the tab key; what was typed is remembered nowhere but here."""
    try:
        import readline
    except ImportError:  # not on Windows
        return

    def complete(text: str, number: int) -> str | None:
        found = completions(readline.get_line_buffer())
        return f"{found[number]} " if number < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
