"""The base class of corpus loaders, and the report of what a loader leaves out."""

import csv
import hashlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from listenwell.corpora.download import Download
from listenwell.dialogue import Dialogue, Example, LabelledText
from listenwell.errors import CorpusError, unknown_name
from listenwell.files import data_folder
from listenwell.serialization import Json

Item = Dialogue | LabelledText


class Report:
    """What a loader counted and skipped, by reason; it grows while items are read."""

    def __init__(self) -> None:
        self.skipped: Counter[str] = Counter()
        self.first: dict[str, str] = {}
        """Where each reason was met first, as file:line."""
        self.counts: Counter[str] = Counter()
        """Other things worth knowing, such as repaired rows."""

    def skip(self, reason: str, where: str) -> None:
        """Count one thing that was left out, and remember where it was first met."""
        self.skipped[reason] += 1
        self.first.setdefault(reason, where)

    def lines(self) -> list[str]:
        """The report for people, one line a reason."""
        noted = [f"{count} {what}" for what, count in sorted(self.counts.items())]
        return noted + [
            f"skipped {count}: {reason} (first at {self.first[reason]})"
            for reason, count in self.skipped.most_common()
        ]


class CorpusLoader(ABC):
    """Reads one corpus in its publisher's own file format.

    Args:
        path: the corpus's folder (or a file, where it is one); None looks in the data folder.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    licence: ClassVar[str]
    citation: ClassVar[str]
    splits: ClassVar[tuple[str, ...]]
    folder: ClassVar[str] = ""
    """Its folder in the data folder, where that is not its name."""
    downloads: ClassVar[tuple[Download, ...]] = ()
    """Where the publisher offers it; empty if only a person can fetch it."""
    not_downloaded: ClassVar[tuple[str, ...]] = ()
    """Splits that the downloads do not bring."""
    obtain: ClassVar[str] = ""
    """How to get it, where there is no download."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = (path or data_folder() / (self.folder or self.name)).expanduser()
        self.report = Report()

    @abstractmethod
    def read(self, split: str) -> Iterator[Item]:
        """The items of a split, one by one, in the order of the files; `report` grows along."""

    def examples(self, split: str) -> Iterator[Example]:
        """Every reply to be learned or ranked, once, with the dialogue before it."""
        for item in self.read(split):
            if isinstance(item, Dialogue):
                yield from item.examples()

    def available(self) -> tuple[str, ...]:
        """The splits whose files are there."""
        return tuple(split for split in self.splits if all(file.exists() for file in self.files(split)))

    def chosen(self, split: str | None) -> tuple[str, ...]:
        """The split that was named, or all that are here; an error if none is."""
        here = self.available() if split is None else (split,)
        for name in here[:1] or self.splits[:1]:
            self.check(name)
        return here

    @abstractmethod
    def files(self, split: str) -> tuple[Path, ...]:
        """The files a split is read from."""

    def check(self, split: str) -> tuple[Path, ...]:
        """The files of a split, or an error that says how to get them."""
        if split not in self.splits:
            raise unknown_name(f"split of {self.name}", split, self.splits)
        files = self.files(split)
        for file in files:
            if not file.exists():
                raise CorpusError(f"{self.name} is not here: there is no {file}.", self.how_to_get(split))
        return files

    def how_to_get(self, split: str = "") -> str:
        """What to do when the files (of a split) are missing."""
        here = "or say where it is with --path or LISTENWELL_DATA."
        if split in self.not_downloaded:
            return f"Its publisher offers no {split} that we can pin: get it by hand, {here}"
        if self.downloads:
            return f"Download it with `listenwell corpus download {self.name}`, {here}"
        return f"{self.obtain} Then say where it is with --path or LISTENWELL_DATA."


def hash_bucket(text: str, buckets: int = 100) -> int:
    """The first 8 hexadecimal digits of sha256(text), modulo `buckets`, to divide a corpus by."""
    return int(hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8], 16) % buckets


def is_number(text: str) -> bool:
    """Whether `int` reads a text as a whole number; isdigit also holds for "²" and for 5,000 digits."""
    return len(text) < 19 and text.isdecimal()


def text_lines(file: Path, report: Report) -> Iterator[tuple[int, str]]:
    """Each line's number, from 1, and its text without the line's end.

    Lines end at a line feed only: texts hold other separators that str.splitlines would cut at. A line
    that is not UTF-8 is skipped and counted.
    """
    with file.open("rb") as lines:
        for number, raw in enumerate(lines, start=1):
            try:
                yield number, raw.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                report.skip("not UTF-8", f"{file.name}:{number}")


def json_lines(file: Path, report: Report) -> Iterator[tuple[str, Json]]:
    """The value of each line that is not blank, with its file:line; lines that are no JSON are counted."""
    for number, line in text_lines(file, report):
        where = f"{file.name}:{number}"
        try:
            if line.strip():
                yield where, json.loads(line)
        except (ValueError, RecursionError):
            report.skip("not JSON", where)


def csv_rows(file: Path, columns: tuple[str, ...], report: Report) -> Iterator[tuple[str, dict[str, str]]]:
    """Rows of an ordinary quoted CSV file as dictionaries, each with its file:line.

    Rows with too few columns or bytes that are not UTF-8 are skipped and counted; a file without these
    columns is not the corpus.
    """
    with file.open(encoding="utf-8", errors="surrogateescape", newline="") as lines:
        rows = csv.DictReader(lines)
        try:
            present = rows.fieldnames or ()
        except csv.Error:  # one field without end: a binary file
            present = ()
        if missing := [column for column in columns if column not in present]:
            raise CorpusError(f"{file} has no column {missing[0]!r}.", "Name the publisher's own file.")
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                report.skip(f"broken row: {error}", f"{file.name}:{rows.line_num}")
                continue
            where = f"{file.name}:{rows.line_num}"
            values = [row[column] for column in columns]
            if any(value is None for value in values):
                report.skip("wrong number of columns", where)
            elif any("\udc80" <= letter <= "\udcff" for value in values for letter in value):
                report.skip("not UTF-8", where)
            else:
                yield where, row
