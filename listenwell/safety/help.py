"""Help lines by country, from one dated file: `help_lines.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from listenwell.errors import InputError, unknown_name
from listenwell.serialization import Record

FILE = Path(__file__).with_name("help_lines.toml")
LOCAL_EMERGENCY = "your local emergency number"
"""Used if no number is known."""
GENERAL = "suicide"
"""The topic of a line that names none: people in despair, whatever the reason."""
TOPICS = (GENERAL, "abuse", "child", "poison", "health")
"""What help lines are for: despair and suicide, violence and abuse, children, poisoning, illness."""
TOPICS_OF_KIND: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "abuse": ("abuse", "child"),
        "emergency": ("poison", "health"),
        "someone_else": (GENERAL, "abuse", "child"),
    }
)
"""Which lines help with a kind of crisis; GENERAL with every other."""
ALIASES = {"UK": "GB", "EL": "GR"}


@dataclass(frozen=True)
class HelpLine(Record):
    """A help line."""

    country: str
    """Two letters (ISO 3166-1)."""
    name: str
    number: str
    hours: str | None = None
    language: str | None = None
    topic: str = GENERAL
    """One of TOPICS."""

    def __post_init__(self) -> None:
        if self.topic not in TOPICS:
            raise unknown_name("topic of help lines", self.topic, TOPICS)


@dataclass(frozen=True)
class Help(Record):
    """Where to find help in one country, or worldwide."""

    directory: str
    """The address of a directory of help lines."""
    emergency: str
    """What to call: a number, several with words between them, or LOCAL_EMERGENCY."""
    checked: str
    """When the table was last checked, as year-month-day."""
    lines: tuple[HelpLine, ...] = ()
    country: str | None = None

    def lines_for(self, kind: str) -> tuple[HelpLine, ...]:
        """The lines that help with a kind of crisis, in the order of its topics."""
        topics = TOPICS_OF_KIND.get(kind, (GENERAL,))
        return tuple(line for topic in topics for line in self.lines if line.topic == topic)


def help_for(country: str | None = None, file: Path = FILE) -> Help:
    """Where to find help.

    Args:
        country: two letters such as "NL", in any case; without an entry, only the directory is given.
        file: another table, such as an operator's own.
    """
    table = _table(file)
    code = country_code(country) if country else None
    emergency = table["emergency"]
    common = emergency["number"] if code in emergency["countries"] else LOCAL_EMERGENCY
    return Help(
        directory=table["directory"],
        emergency=str(emergency.get("elsewhere", {}).get(code, common)),
        checked=str(table["checked"]),
        lines=tuple(line for line in all_lines(file) if line.country == code),
        country=code,
    )


def country_code(country: str) -> str:
    """Two capital letters; anything else is an error."""
    code = country.strip().upper()
    code = ALIASES.get(code, code)
    if len(code) != 2 or not (code.isascii() and code.isalpha()):
        raise InputError(f"The country is {country!r}.", "Give two letters, such as US or NL.")
    return code


@cache
def all_lines(file: Path = FILE) -> tuple[HelpLine, ...]:
    """Every help line of the table."""
    return tuple(HelpLine.from_dict(line) for line in _table(file)["line"])


@cache
def _table(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"The help lines in {file} cannot be read: {error}.", "Correct the file.") from None
