"""The replies that the authors of MoEL and MIME released for the test contexts of EmpatheticDialogues.

Both files hold blocks of `key: text` lines, one block a context: MoEL's (Lin et al. 2019) are parted by an
empty line and hold two baselines as well, MIME's (Majumder et al. 2020) by a line of dashes, after a head
with the paper's own figures. Texts are in lower case and taken apart into tokens ("did n't").
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import yaml

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
    replies: dict[str, str]
    """The reply of each system, the human one included."""

    def reply(self, system: str) -> str:
        """The reply of one system."""
        return self.replies[system]

    @property
    def reference(self) -> str:
        """The human reply."""
        return self.replies[HUMAN]


@dataclass(frozen=True)
class BaselineFormat:
    """The layout of one of the released files, as in baselines.yaml."""

    name: str
    separator: str
    head: list[str]
    systems: dict[str, dict[str, str]]

    def names(self) -> list[str]:
        """The names of all systems in the file."""
        return [system["name"] for system in self.systems.values()]

    def conditions_of(self, name: str) -> dict[str, str]:
        """What is known of how a system's replies were generated."""
        (system,) = (system for system in self.systems.values() if system["name"] == name)
        return {setting: value for setting, value in system.items() if setting != "name"}


_LAYOUTS = yaml.safe_load(files(__package__).joinpath("baselines.yaml").read_text(encoding="utf-8"))
MOEL, MIME = FORMATS = tuple(BaselineFormat(name, **layout) for name, layout in _LAYOUTS.items())


def recognize(file: Path) -> BaselineFormat | None:
    """Which of the released files this is, by its first lines; None if it is neither."""
    with file.open("rb") as lines:
        start = lines.read(1 << 16).decode("utf-8", "replace")
    keys = {line.partition(":")[0] for line in start.split("\n")}
    return next((form for form in FORMATS if form.systems.keys() <= keys), None)


def read_baselines(file: Path, form: BaselineFormat, report: Report) -> Iterator[BaselineRecord]:
    """The records of a released file in its order; broken blocks are skipped and counted."""
    for where, block in _blocks(file, form, report):
        record = _record(block, form)
        if isinstance(record, str):
            report.skip(record, where)
        else:
            yield record


def check_system(form: BaselineFormat, system: str) -> str:
    """The name of a system in the file, whatever its case; the error names similar ones."""
    for name in form.names():
        if name.casefold() == system.casefold():
            return name
    raise unknown_name(f"system in {form.name}'s file", system, form.names())


def _blocks(file: Path, form: BaselineFormat, report: Report) -> Iterator[tuple[str, list[str]]]:
    """The lines of each block, with the position of its first."""
    block, first = list[str](), 0
    for number, line in text_lines(file, report):
        if re.fullmatch(form.separator, line):
            if block:
                yield f"{file.name}:{first}", block
            block = []
        elif block or not line.startswith(tuple(form.head)):
            first = first if block else number
            block.append(line)
    if block:
        yield f"{file.name}:{first}", block


def _record(lines: list[str], form: BaselineFormat) -> BaselineRecord | str:
    """The record of a block, or what is wrong with it."""
    keys = {key.casefold(): key for key in (*form.systems, _CONTEXT, _EMOTION)}
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
    try:
        turns = ast.literal_eval(values[_CONTEXT])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        turns = None
    if not isinstance(turns, list) or not turns or not all(isinstance(turn, str) for turn in turns):
        return "block whose context is no list of texts"
    replies = {system["name"]: values[key] for key, system in form.systems.items()}
    return BaselineRecord(tuple(turns), values[_EMOTION].split("\t")[0], replies)
