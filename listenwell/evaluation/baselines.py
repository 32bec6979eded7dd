"""The replies that the authors of MoEL and MIME released for the test contexts of EmpatheticDialogues.

Both files hold blocks of `key: text` lines, one block a context: MoEL's (Lin et al. 2019) are parted by an
empty line and hold two baselines as well, MIME's (Majumder et al. 2020) by a line of dashes, after a head
with the paper's own figures. Texts are in lower case and taken apart into tokens ("did n't").
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from listenwell.corpora.base import Report, text_lines
from listenwell.errors import unknown_name

HUMAN = "human"
"""The row of the references themselves."""

_CONTEXT, _EMOTION = "context", "emotion"


@dataclass(frozen=True)
class BaselineRecord:
    """One context and the reply of each system of a file."""

    context: tuple[str, ...]
    """The turns so far; the first is the speaker's, then they alternate."""
    emotion: str
    replies: tuple[tuple[str, str], ...]
    """Display name and reply of each system, the human one included."""
    reference: str

    def reply(self, system: str) -> str:
        """The reply of one system."""
        return dict(self.replies)[system]


@dataclass(frozen=True)
class BaselineFormat:
    """The layout of one of the released files."""

    name: str
    systems: tuple[tuple[str, str], ...]
    """Key in the file and display name; the last is the reference."""
    separator: re.Pattern[str]
    """The line between two blocks."""
    head: tuple[str, ...]
    """The beginnings of lines before the first block, which belong to none."""
    conditions: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    """For each display name, the settings behind its replies, as far as the release tells."""

    def names(self) -> list[str]:
        """The display names of all systems in the file."""
        return [shown for _, shown in self.systems]

    def conditions_of(self, system: str) -> dict[str, str]:
        """What is known of how a system's replies were generated."""
        return dict(dict(self.conditions)[system])


_AUTHORS = ("decoding", "as released by MoEL's authors; the file does not name it")
_NONE = ("factors", "none")
_HUMAN = (
    ("decoding", "none: people wrote these"),
    _NONE,
    ("reference", "the replies themselves: likeness is at its ceiling by construction"),
)

MOEL = BaselineFormat(
    name="moel",
    systems=(
        ("trs", "Transformer"),
        ("trs+multitask", "Transformer multitask"),
        ("MOE", "MoEL"),
        ("MOE+oracle", "MoEL oracle emotion"),
        ("ref", HUMAN),
    ),
    separator=re.compile(r"\s*"),
    head=(),
    conditions=(
        ("Transformer", (_AUTHORS, _NONE)),
        ("Transformer multitask", (_AUTHORS, ("factors", "emotion predicted (a second loss)"))),
        ("MoEL", (_AUTHORS, ("factors", "emotion predicted"))),
        (
            "MoEL oracle emotion",
            (_AUTHORS, ("factors", "gold emotion given: it has more information than the others")),
        ),
        (HUMAN, _HUMAN),
    ),
)
MIME = BaselineFormat(
    name="mime",
    systems=(("Greedy", "MIME greedy"), ("Beam", "MIME beam"), ("Topk", "MIME top-k"), ("Ref", HUMAN)),
    separator=re.compile(r"-{10,}\s*"),
    head=("###", "EVAL\t", "test\t"),
    conditions=(
        ("MIME greedy", (("decoding", "greedy, as released"), ("factors", "emotion predicted"))),
        ("MIME beam", (("decoding", "beam search, as released"), ("factors", "emotion predicted"))),
        ("MIME top-k", (("decoding", "top-k sampling, as released"), ("factors", "emotion predicted"))),
        (HUMAN, _HUMAN),
    ),
)
FORMATS = (MOEL, MIME)


def recognize(file: Path) -> BaselineFormat | None:
    """Which of the released files this is, by its first lines; None if it is neither."""
    with file.open("rb") as lines:
        start = lines.read(1 << 16).decode("utf-8", "replace")
    keys = {line.partition(":")[0] for line in start.split("\n")}
    return next((form for form in FORMATS if {key for key, _ in form.systems} <= keys), None)


def read_baselines(file: Path, form: BaselineFormat, report: Report) -> Iterator[BaselineRecord]:
    """The records of a released file in its order; broken blocks are skipped and counted."""
    for where, block in _blocks(file, form, report):
        record = _record(block, form)
        if isinstance(record, str):
            report.skip(record, where)
        else:
            yield record


def check_system(form: BaselineFormat, system: str) -> str:
    """The display name of a system in the file, whatever its case; the error names similar ones."""
    for name in form.names():
        if name.casefold() == system.casefold():
            return name
    raise unknown_name(f"system in {form.name}'s file", system, form.names())


def _blocks(file: Path, form: BaselineFormat, report: Report) -> Iterator[tuple[str, list[str]]]:
    """The lines of each block, with the position of its first."""
    block, first = list[str](), 0
    for number, line in text_lines(file, report):
        if form.separator.fullmatch(line):
            if block:
                yield f"{file.name}:{first}", block
            block = []
        elif block or not line.startswith(form.head or ("\0",)):
            first = first if block else number
            block.append(line)
    if block:
        yield f"{file.name}:{first}", block


def _record(lines: list[str], form: BaselineFormat) -> BaselineRecord | str:
    """The record of a block, or what is wrong with it."""
    keys = {key.casefold(): key for key, _ in form.systems} | {_CONTEXT: _CONTEXT, _EMOTION: _EMOTION}
    values: dict[str, str] = {}
    for line in lines:
        key, colon, text = line.partition(":")
        known = keys.get(key.strip().casefold())
        if not colon or known is None:
            return "block with an unknown line"
        if known in values:
            return "block with a line twice"
        values[known] = text.strip()
    if missing := [key for key in keys.values() if not values.get(key)]:
        return f"block without {missing[0]}"
    context = _context(values[_CONTEXT])
    if context is None:
        return "block whose context is no list of texts"
    replies = tuple((shown, values[key]) for key, shown in form.systems)
    return BaselineRecord(context, values[_EMOTION].split("\t")[0], replies, values[form.systems[-1][0]])


def _context(text: str) -> tuple[str, ...] | None:
    """The turns, written as a Python list."""
    try:
        turns = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if not isinstance(turns, list) or not turns or not all(isinstance(turn, str) for turn in turns):
        return None
    return tuple(turns)
