"""The chat at a terminal: each line is a message or a command."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from listenwell.cli.conversation import Conversation, read_saved
from listenwell.cli.terminal import one_line, visible
from listenwell.errors import ListenwellError

if TYPE_CHECKING:
    from listenwell.dialogue import Factors, Reply, Scored

COMMANDS = {
    "/emotion": "show the emotion predicted from your last message",
    "/why": "show the plan of the last reply and the other candidates",
    "/again": "replace the last reply by another",
    "/act": "set the dialogue act of replies, such as /act questioning",
    "/express": "set the emotion they express, such as /express caring",
    "/mechanisms": "set the communication mechanisms, such as /mechanisms exploration",
    "/free": "stop steering",
    "/persona": "add a sentence about the listener: /persona I work as a nurse.",
    "/new": "start a new conversation",
    "/save": "save the conversation: /save FILE",
    "/quit": "leave (or Ctrl-D)",
}
ALIASES = {"/heard": "/emotion", "/mechanism": "/mechanisms", "/tone": "/express"}
HELP = "Write a message. /help lists the commands; Ctrl-C stops a reply."


def chat_at_terminal(conversation: Conversation) -> None:
    """Reply until the user leaves."""
    typer.echo(HELP)
    for text in _lines():
        command, _, rest = text.strip().partition(" ")
        if command == "/quit":
            return
        if command.startswith("/"):
            run_command(conversation, command, rest.strip())
        elif text.strip():
            _answer(lambda text=text: conversation.say(text, stream=True))  # type: ignore[misc]


def run_command(conversation: Conversation, command: str, rest: str) -> None:
    """Run a command; an unknown one lists all of them."""
    command = ALIASES.get(command, command)
    if command == "/new":
        conversation.start_over()
        typer.echo("Started a new conversation.")
    elif command == "/emotion":
        typer.echo(_emotion_bars(conversation.last.emotion if conversation.last else None))
    elif command == "/why":
        typer.echo(_why(conversation.last))
    elif command == "/again":
        if conversation.dialogue is None:
            typer.echo("Write a message first.")
        else:
            _answer(lambda: conversation.again(stream=True))
    elif command in ("/act", "/express", "/mechanisms", "/free"):
        _steer(conversation, command, rest)
    elif command == "/persona":
        _set_persona(conversation, rest)
    elif command == "/save":
        _save(conversation, rest)
    else:
        widest = max(map(len, COMMANDS))
        typer.echo("\n".join(f"{name:<{widest}}  {meaning}" for name, meaning in COMMANDS.items()))


def completions(line: str) -> list[str]:
    """The completions of a line: commands and their labels."""
    from listenwell.labels import ACTS, EXPRESSED_EMOTIONS, MECHANISMS

    names = {
        "/act": ACTS.labels,
        "/express": EXPRESSED_EMOTIONS.labels,
        "/mechanisms": (*MECHANISMS.labels, "none"),
    }
    command, blank, rest = line.partition(" ")
    if blank:
        return [name for name in names.get(command, ()) if name.startswith(rest)]
    return [name for name in (*COMMANDS, "/help") if line and name.startswith(line)]


def describe_plan(plan: "Factors") -> str:
    """A plan as text, such as `sad · exploration · questioning · caring`."""
    mechanisms = " and ".join(plan.mechanisms) if plan.mechanisms else None
    parts = (
        plan.emotion,
        "no mechanism" if plan.mechanisms == () else mechanisms,
        plan.act,
        plan.expressed_emotion,
    )
    return " · ".join(part.replace("_", " ") for part in parts if part)


def _answer(ask: "Callable[[], Reply | None]") -> None:
    typer.secho("listener › ", fg="cyan", nl=False)
    notices: tuple[str, ...] = ()
    try:
        reply = ask()
        notices = reply.notices if reply else ()
    except KeyboardInterrupt:
        notices = ("The reply was stopped; this exchange is not part of the conversation.",)
    except ListenwellError as error:  # the conversation continues
        notices = (str(error),)
    typer.echo("")
    for notice in notices:
        typer.secho(visible(notice), fg="yellow")


def _steer(conversation: Conversation, command: str, rest: str) -> None:
    """Set a factor of the following replies; without a label, clear it."""
    from listenwell.dialogue import Factors
    from listenwell.generators.plans import wanted

    if command == "/free":
        conversation.target = None
        typer.echo("Replies are no longer steered.")
        return
    field = {"/express": "expressed_emotion"}.get(command, command[1:])
    try:
        if conversation.listener.plan is None:
            typer.echo(
                f"{visible(conversation.listener.generate.name)} does not plan, so it cannot be steered."
            )
            return
        factors = wanted(**{field: (rest.split() if field == "mechanisms" else rest) if rest else None})  # type: ignore[arg-type]
    except ListenwellError as error:  # the conversation continues
        typer.secho(visible(str(error)), fg="yellow")
        return
    conversation.target = replace(conversation.target or Factors(), **{field: getattr(factors, field)})
    if conversation.target == Factors():
        conversation.target = None
    target = describe_plan(conversation.target) if conversation.target else "nothing"
    typer.echo(f"Target of replies: {target}. /again replaces the last reply, /free stops steering.")


def _set_persona(conversation: Conversation, rest: str) -> None:
    """Show the persona, add a sentence to it, or clear it."""
    if rest == "none":
        conversation.persona = ()
    elif rest:
        conversation.persona = (*conversation.persona, rest)
    lines = "\n".join(f"  {visible(line)}" for line in conversation.persona)
    typer.echo(f"Persona:\n{lines}\n(/persona none clears it.)" if lines else "There is no persona.")


def _emotion_bars(emotions: "tuple[Scored, ...] | None") -> str:
    """The most probable emotions as bars."""
    if not emotions:
        return "Write a message first."
    widest = max(len(emotion.label) for emotion in emotions)
    return "\n".join(
        f"{emotion.label:>{widest}} {'█' * round(30 * emotion.probability):<30} {emotion.probability:.0%}"
        for emotion in emotions
    )


def _why(reply: "Reply | None") -> str:
    """The plan of the last reply, and the other candidates with theirs."""
    if reply is None:
        return "Write a message first."
    if reply.plan is None and len(reply.candidates) < 2:
        return "There was no plan and no other candidate."
    lines = [f"Plan: {describe_plan(reply.plan)}"] if reply.plan else []
    others = [candidate for candidate in reply.candidates if candidate.text != reply.text]
    lines += ["Other candidates:"] if others else []
    lines += [
        f"  {one_line(other.text)}" + (f"  ({describe_plan(other.plan)})" if other.plan else "")
        for other in others
    ]
    return "\n".join(lines)


def _save(conversation: Conversation, name: str) -> None:
    if not name or not conversation.dialogue:
        typer.echo("Write a message first, then: /save FILE" if name else "Name a file: /save FILE")
        return
    try:
        conversation.write(Path(name), read_saved(Path(name)))
        typer.echo(f"Saved to {name}.")
    except ListenwellError as error:  # the conversation continues
        typer.secho(str(error), fg="yellow")


def _lines() -> Iterator[str]:
    """The lines that the user types, with history and completion, until Ctrl-D."""
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
    """Enable arrow keys and tab completion; the history is not written to disk."""
    try:
        import readline
    except ImportError:  # not on Windows
        return

    def complete(text: str, number: int) -> str | None:
        options = completions(readline.get_line_buffer())
        return f"{options[number]} " if number < len(options) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
