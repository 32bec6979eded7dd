"""Tables as data, and as Markdown."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Grid:
    """A table: headings and rows of formatted cells."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = field(default_factory=frozenset)
    """Columns of numbers, which are right-aligned."""

    def markdown(self) -> str:
        """The table in GitHub's Markdown, without its title."""
        rule = ["---:" if index in self.numbers else "---" for index in range(len(self.columns))]
        return "\n".join(_line(cells) for cells in (self.columns, rule, *self.rows)) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(text: str) -> str:
    """One cell: a bar would end it, a new line the row, an angle bracket could be a tag."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


_MARKS = re.compile(r"[\\`*_{}\[\]<>~|@$&#]")
"""What Markdown, HTML, GitHub's mentions or its formulas could take for their own inside a line."""
_LINKS = re.compile(r"(?<=\w):(?=//)|(?<=www)\.", re.IGNORECASE)


def escaped(text: str) -> str:
    """A text as data inside a line of Markdown: no mark, tag, link or new line of its own."""
    line = " ".join(text.split())
    shown = "".join(letter if letter.isprintable() else "�" for letter in line)
    return _LINKS.sub(lambda match: f"\\{match[0]}", _MARKS.sub(lambda match: f"\\{match[0]}", shown))
