"""What is said in a crisis: fixed words from `answers.toml`, written by people and never generated.

Each answer to a crisis says that it was heard, that a program cannot do what a person can, where help is, and
that the talk may go on. It asks nothing that a program could not act on, and promises nothing.
"""

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
"""The part that tells who is there (identity.py)."""
FALLBACKS = (
    "I am listening. Would you like to tell me more about it?",
    "Thank you for telling me. What is it like for you right now?",
    "I want to be sure that I understand you. Could you say a little more?",
    "I hear you. What matters most to you in this?",
)
"""Said where every proposed reply was dropped: safe after anything, true of a program."""


def answer(kind: str, found: Help, again: bool = False) -> str:
    """The fixed answer to a kind of crisis.

    Args:
        kind: one of `KINDS`.
        found: where help is (`help_for`).
        again: whether it was given in this talk before; the shorter words then.
    """
    parts = answers()[AGAIN if again else FIRST][kind]
    words = {"lines": shown(found), "directory": found.directory, "emergency": found.emergency}
    return "\n\n".join(part.format(**words) for part in parts)


def shown(found: Help) -> str:
    """The help lines as a sentence or two."""
    if not found.lines:
        return f"You can find someone to talk to, in your country and language, at {found.directory}."
    named = " or ".join(
        f"{line.name}: {line.number}" + (f" ({line.hours})" if line.hours else "") for line in found.lines
    )
    return f"You can call {named}. More lines, also to chat with, are at {found.directory}."


def given_before(kind: str, said: Sequence[str]) -> bool:
    """Whether one of a listener's earlier turns was the fixed answer to this kind."""
    beginning = answers()[FIRST][kind][0].partition("{")[0]
    return any(text.startswith(beginning) for text in said)


def fallback(said: Sequence[str]) -> str:
    """The first safe reply that the listener has not used in this talk; the first one after all of them."""
    return next((text for text in FALLBACKS if text not in said), FALLBACKS[0])


@cache
def answers(file: Path = FILE) -> Mapping[str, Mapping[str, Sequence[str]]]:
    """The table: for the first time and for later ones, the paragraphs of each kind."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"The answers in {file} cannot be read: {error}.", "Mend the file.") from None
    for part in (FIRST, AGAIN):
        if missing := [kind for kind in KINDS if not table.get(part, {}).get(kind)]:
            raise InputError(f"{file.name} has no {part} answer to {missing[0]}.", "Write one.")
        if not table.get(IDENTITY, {}).get(part):
            raise InputError(f"{file.name} does not say who is there ({IDENTITY}: {part}).", "Write it.")
    return table
