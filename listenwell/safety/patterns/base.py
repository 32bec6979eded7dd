"""Crisis patterns, and the parts that they share.

Patterns are in text files, one per kind of crisis: a regular expression per line, under [strong] or [weak]; a
line that starts with two blanks continues the previous one. Names in <> are those of parts.txt. They match
normalized text (`normalizer`), from one blank to the next.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from listenwell.errors import InputError

SUICIDE, SELF_HARM, HARM_TO_OTHERS, ABUSE, EMERGENCY, SOMEONE_ELSE = KINDS = (
    "suicide",
    "self_harm",
    "harm_to_others",
    "abuse",
    "emergency",
    "someone_else",
)
"""The kinds of crisis; the last is about a person other than the writer."""
STRONG, WEAK = "strong", "weak"
"""Whether a pattern suffices by itself, or needs the classifier to agree."""

FOLDER = Path(__file__).parent
_NAME = re.compile(r"<(\w+)>")


@dataclass(frozen=True)
class Pattern:
    """A regular expression for one kind of crisis."""

    kind: str
    strength: str
    regex: re.Pattern[str]


@cache
def patterns() -> tuple[Pattern, ...]:
    """All patterns, from the files in this folder."""
    return tuple(
        Pattern(kind, strength, regex)
        for kind in KINDS
        for strength, regex in read((FOLDER / f"{kind}.txt").read_text("utf-8"), (STRONG, WEAK), kind)
    )


@cache
def parts() -> dict[str, str]:
    """The named parts of parts.txt."""
    named: dict[str, str] = {}
    for line in _lines((FOLDER / "parts.txt").read_text("utf-8")):
        name, _, expression = line.partition(": ")
        named[name] = _NAME.sub(lambda match: named[match[1]], expression)
    return named


def _lines(text: str) -> Iterator[str]:
    for line in text.replace("\n  ", "").splitlines():
        if line and not line.startswith("#"):
            yield line


def read(text: str, sections: Collection[str], name: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    """The section and expression of every line; an invalid one is an error that names it.

    Args:
        text: of a file of patterns.
        sections: the names allowed in [].
        name: of the file, for the message.
    """
    section = ""
    for line in _lines(text):
        if line[1:-1] in sections:
            section = line[1:-1]
            continue
        try:
            if not section:
                raise re.error("no section before it")
            expression = _NAME.sub(lambda match: parts()[match[1]], line)
            yield section, re.compile(f" (?:{expression})(?= )")
        except (re.error, KeyError) as error:
            problem = f"The pattern {line!r} of {name} cannot be read: {error}."
            raise InputError(problem, "Correct it in its file.") from None
