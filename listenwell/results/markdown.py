"""Tables as data, and as Markdown."""

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
