"""The fixed answers in a crisis, from `answers.toml`; they are never generated.

Each acknowledges the message, says that a program cannot do what a person can, names help, and invites the
user to continue. It asks nothing that a program could not act on, and promises nothing.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from listenwell.errors import InputError
from listenwell.safety.help import Help
from listenwell.safety.patterns.base import KINDS

FILE = Path(__file__).with_name("answers.toml")
FIRST, AGAIN = "first", "again"
IDENTITY = "identity"
"""The section about being a program (identity.py)."""
FALLBACKS = (
    "I am listening. Would you like to tell me more about it?",
    "Thank you for telling me. What is it like for you right now?",
    "I want to be sure that I understand you. Could you say a little more?",
    "I hear you. What matters most to you in this?",
)
"""Used if every candidate was dropped: safe after any message, and true of a program."""


def answer(kind: str, help: Help, again: bool = False) -> str:
    """The fixed answer to a kind of crisis.

    Args:
        kind: one of `KINDS`.
        help: where to find help (`help_for`).
        again: whether it was given in this conversation before; then a shorter one.
    """
    parts = answers()[AGAIN if again else FIRST][kind]
    words = {"lines": describe_lines(help, kind), "directory": help.directory, "emergency": help.emergency}
    return "\n\n".join(part.format(**words) for part in parts)


def describe_lines(help: Help, kind: str) -> str:
    """The help lines for a kind of crisis as text."""
    lines = help.lines_for(kind)
    if not lines:
        return f"You can find someone to talk to, in your country and language, at {help.directory}."
    *first, last = (
        f"{line.name}: {line.number}" + (f" ({line.hours})" if line.hours else "") for line in lines
    )
    named = f"{', '.join(first)} or {last}" if first else last
    return f"You can call {named}. More lines, also to chat with, are at {help.directory}."


def given_before(kind: str, own_turns: Sequence[str]) -> bool:
    """Whether one of a listener's earlier turns was a fixed answer to this kind."""
    return any(answered_kind(text) == kind for text in own_turns)


def answered_kind(text: str) -> str | None:
    """The kind of crisis that a listener's turn is the fixed answer to; None for any other turn."""
    return next((kind for kind, beginning in _beginnings() if beginning.match(text)), None)


@cache
def _beginnings() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """For each kind, its answers' first paragraphs with anything in the place of numbers and names."""
    return tuple(
        (kind, re.compile(re.sub(r"\\\{\w+\\\}", ".+?", re.escape(answers()[part][kind][0]))))
        for part in (FIRST, AGAIN)
        for kind in KINDS
    )


def fallback(own_turns: Sequence[str]) -> str:
    """The first safe reply that the listener has not used in this conversation."""
    return next((text for text in FALLBACKS if text not in own_turns), FALLBACKS[0])


@cache
def answers(file: Path = FILE) -> Mapping[str, Mapping[str, Sequence[str]]]:
    """The paragraphs of each kind, for the first time and for later ones."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"The answers in {file} cannot be read: {error}.", "Correct the file.") from None
    for part in (FIRST, AGAIN):
        if missing := [kind for kind in KINDS if not table.get(part, {}).get(kind)]:
            raise InputError(f"{file.name} has no {part} answer to {missing[0]}.", "Write one.")
        if not table.get(IDENTITY, {}).get(part):
            raise InputError(f"{file.name} has no {part} answer to {IDENTITY}.", "Write one.")
    return table
