"""The file format of preference pairs: two replies to one context, of which the first is preferred.

`listenwell preference pairs` and `listenwell preference rated-pairs` write such files, one `Pair` a line.
"""

import gzip
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from listenwell.dialogue import Dialogue, Factors
from listenwell.errors import InputError, ListenwellError
from listenwell.generators.plans import is_whole
from listenwell.serialization import Record, strings

OWN, OTHER = "own", "other"
"""Sources of a rejected reply: sampled from the generator, or a person's reply to somebody else."""


@dataclass(frozen=True, slots=True)
class Pair(Record):
    """Two replies to one context, of which the first is preferred."""

    context: Dialogue
    plan: Factors
    chosen: str
    rejected: str
    source: str
    """Where the rejected reply comes from, such as `own` or `other`."""
    rejected_plan: Factors | None = None
    """The rejected reply's plan, where it differs from `plan`."""

    def __post_init__(self) -> None:
        strings("replies and the source of a pair", (self.chosen, self.rejected, self.source))
        if not all(map(is_whole, self.plans)):
            raise InputError("A plan of the pair lacks a factor.", "Decide every level.")

    @property
    def plans(self) -> tuple[Factors, Factors]:
        """Of the chosen and of the rejected reply."""
        return self.plan, self.rejected_plan or self.plan


def read_pairs(file: Path) -> list[Pair]:
    """All pairs of a file; a line that is none is an error that names it."""
    pairs = []
    for number, line in read_lines(file):
        try:
            pairs.append(Pair.from_json(line))
        except ListenwellError as error:
            raise InputError(
                f"{file}:{number} is no pair: {error.problem}",
                "Correct the line, or write the file again: listenwell preference pairs.",
            ) from None
    return pairs


def conversation_key(dialogue: Dialogue) -> str:
    """The same text for every context out of one conversation."""
    return dialogue.id or dialogue.turns[0].text


def conversation_hash(pair: Pair) -> float:
    """A number from 0 to 1 by the pair's conversation: all of its pairs are held out together."""
    return held_out_share(conversation_key(pair.context))


def held_out_share(key: str) -> float:
    """A number from 0 to 1 by a conversation's key: those below a share are held out."""
    return int(hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:8], 16) / 2**32


def read_lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """Lines of a file, compressed or not, that are not blank, with their numbers from 1."""
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
            yield from ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    except OSError as error:
        raise InputError(f"Cannot read {file}: {error.strerror}.", "Name a file of JSON lines.") from None
