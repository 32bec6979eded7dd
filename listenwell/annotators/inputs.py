"""Where the dialogues to annotate come from: a file or a pipe, line by line, or a corpus."""

import codecs
import json
import os
import stat
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import IO, TypeVar

from listenwell.annotators.heads import EMOTION_GROUP, HEADS
from listenwell.corpora import CORPORA, CorpusLoader, Item, Report
from listenwell.dialogue import SPEAKER, Dialogue, LabelledText, Turn
from listenwell.errors import InputError, ListenwellError, nearest
from listenwell.labels import EMOTION_GROUPS

Parsed = TypeVar("Parsed")
STANDARD_INPUT = "-"
LONGEST = 10**6
"""Bytes of a line; a longer one is no utterance, and is never held in memory."""

_BROKEN_LINES, _BROKEN_REASONS, _REASON_LENGTH = 5, 20, 200
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_LABELS = {**{name: head.labels for name, head in HEADS.items()}, EMOTION_GROUP: EMOTION_GROUPS}


class LineReport(Report):
    """What was skipped, with the first few line numbers of each reason.

    A reason can quote the line, so their number and length are bounded.
    """

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[str, list[str]] = {}
        """By reason the first few line numbers."""

    def skip(self, reason: str, where: str) -> None:
        """Count a line that was left out; `where` is its number."""
        reason = reason if len(reason) <= _REASON_LENGTH else f"{reason[:_REASON_LENGTH]}…"
        if reason not in self.skipped and len(self.skipped) >= _BROKEN_REASONS:
            reason = "broken in other ways"
        super().skip(reason, where)
        numbers = self.numbers.setdefault(reason, [])
        if len(numbers) < _BROKEN_LINES:
            numbers.append(where)

    def lines(self) -> list[str]:
        """The report for people, one line a reason."""
        lines = []
        for reason, count in self.skipped.most_common():
            numbers = ", ".join(self.numbers[reason]) + (", …" if count > _BROKEN_LINES else "")
            lines.append(f"skipped {count}: {reason} (line{'s' if count > 1 else ''} {numbers})")
        return lines


class Source(ABC):
    """Dialogues, one by one, and an account of what was left out; read once."""

    name: str
    """For people."""
    identity: str
    """Tells it from other sources when a stopped run goes on."""
    splits: tuple[str, ...] = ()
    is_live: bool = False
    """Whether it can pause: a program or a person at the other end may wait for an answer."""
    report: Report

    @abstractmethod
    def __iter__(self) -> Iterator[Dialogue]: ...


class LineSource(Source):
    """A file or standard input: JSONL where its first character is `{`, else one utterance a line.

    A file named .json or .jsonl is JSONL whatever it begins with. What has no id gets its line's number.
    """

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.name = "standard input" if file is None else str(file)
        # What comes through a pipe has another name each time.
        self.identity = str(file.resolve()) if file is not None and file.is_file() else STANDARD_INPUT
        self.is_live = file is None and _can_pause(sys.stdin)
        self.report = LineReport()

    def __iter__(self) -> Iterator[Dialogue]:
        for dialogue, number in self.parsed(_dialogues):
            yield dialogue if dialogue.id else replace(dialogue, id=number)

    def parsed(
        self, parse: Callable[[str, bool], Sequence[Parsed]], if_nothing: str = ""
    ) -> Iterator[tuple[Parsed, str]]:
        """What every line holds, each with the line's number; lines that cannot be parsed are counted.

        Args:
            parse: is given a line, and whether the source is JSONL.
            if_nothing: the reason to count a line as skipped that holds nothing; such lines pass if empty.
        """
        is_json: bool | None = None
        with self._opened() as lines:
            for line_number, raw, is_whole in self._lines(lines):
                number = str(line_number)
                if is_json is None and (start := raw.decode("utf-8", "replace").lstrip()):
                    is_json = self._is_json(start)
                if not is_whole:
                    self.report.skip(f"longer than {LONGEST:,} bytes", number)
                    continue
                try:
                    items = parse(raw.decode("utf-8"), bool(is_json))
                except UnicodeDecodeError:
                    self.report.skip("not UTF-8", number)
                except (ValueError, RecursionError):
                    self.report.skip("not JSON", number)
                except ListenwellError as error:
                    self.report.skip(str(error), number)
                else:
                    if if_nothing and not items:
                        self.report.skip(if_nothing, number)
                    yield from ((item, number) for item in items)

    def _opened(self) -> AbstractContextManager[IO[bytes]]:
        try:
            if self.file is not None:
                return self.file.open("rb")
            # A thread that waits in sys.stdin itself would hold its lock, and Python could not end.
            if self.is_live:
                return os.fdopen(sys.stdin.fileno(), "rb", closefd=False)
            if sys.stdin is None:
                raise InputError("There is no standard input.", "Name a file, or pipe something in.")
            return nullcontext(sys.stdin.buffer)
        except OSError as error:
            raise unreadable(self.name, error) from error

    def _is_json(self, start: str) -> bool:
        """Whether the lines are JSON, from the first that is not blank; an error if all are one array."""
        is_named_so = self.file is not None and self.file.suffix.lower() in (".json", ".jsonl")
        # A text may begin with [laughs], or even with [1].
        is_array = start[0] == "[" and (is_named_so or start[1:].lstrip()[:1] in ("", "{", "[", '"', "]"))
        if is_array:
            raise InputError(
                f"{self.name} is one JSON array, which cannot be read line by line.",
                "Write one JSON object a line, without the brackets and commas around them.",
            )
        return is_named_so or start[0] == "{"

    def _lines(self, lines: IO[bytes]) -> Iterator[tuple[int, bytes, bool]]:
        """Each line's number, its bytes without the line's end, and whether they are all of it."""
        number = 0
        while raw := self._read(lines):
            number += 1
            last = raw
            while len(last) > LONGEST and not last.endswith(b"\n"):
                last = self._read(lines)
            is_whole = last is raw
            if number == 1:
                if raw.startswith(_UTF16):
                    raise InputError(f"{self.name} is UTF-16, not UTF-8.", "Save it as UTF-8.")
                raw = raw.removeprefix(codecs.BOM_UTF8)
            yield number, raw.rstrip(b"\r\n"), is_whole

    def _read(self, lines: IO[bytes]) -> bytes:
        try:
            return lines.readline(LONGEST + 1)
        except OSError as error:
            raise unreadable(self.name, error) from error


def unreadable(name: str, error: OSError) -> InputError:
    """The error of a file that cannot be read."""
    return InputError(f"Cannot read {name}: {error.strerror}.", "Name a file that you may read.")


class CorpusSource(Source):
    """One split of a corpus, or all that are there; each dialogue notes which it is from."""

    def __init__(self, reader: CorpusLoader, split: str | None = None) -> None:
        self.reader = reader
        self.splits = (split,) if split is not None else reader.available() or (reader.splits[0],)
        reader.check(self.splits[0])
        self.name = reader.name
        self.identity = f"{reader.name} in {reader.path.resolve()}"
        self.report = reader.report

    def __iter__(self) -> Iterator[Dialogue]:
        for split in self.splits:
            for item in self.reader.read(split):
                dialogue = as_dialogue(item)
                # A note that was there before (of a corpus that was converted) knows better.
                notes = {"split": split, **dict(dialogue.notes)}
                try:
                    yield _checked(replace(dialogue, notes=tuple(notes.items())))
                except ListenwellError as error:
                    self.report.skip(str(error), dialogue.id)


def find_source(name: str, split: str | None = None, path: Path | None = None) -> Source:
    """What a user means by a name: `-`, a corpus (with `split` and `path`) or a file.

    A corpus's name means the corpus, even where a file is called so: `./NAME` means that.
    """
    if name in CORPORA:
        return CorpusSource(CORPORA.load(name)(path), split)
    if split is not None or path is not None:
        raise InputError(
            f"--split and --path belong to a corpus, and {name!r} is none.", _corpus_advice(name, "")
        )
    if name == STANDARD_INPUT:
        return LineSource(None)
    return LineSource(
        existing_file(
            name,
            name,
            folder_advice="Name a file, or for train.jsonl etc.: listenwell annotate jsonl --path FOLDER",
            otherwise="- reads standard input.",
        )
    )


def existing_file(name: str, corpus: str, folder_advice: str, otherwise: str) -> Path:
    """The file that a user named; where there is none, the error advises near corpora."""
    file = Path(name).expanduser()
    try:
        is_there, is_folder = file.exists(), file.is_dir()
    except (OSError, ValueError):  # a name that no file can have
        is_there = is_folder = False
    if is_folder:
        raise InputError(f"{file} is a folder.", folder_advice)
    if not is_there:
        raise InputError(f"There is no file and no corpus named {name!r}.", _corpus_advice(corpus, otherwise))
    return file


def as_dialogue(item: Item) -> Dialogue:
    """A dialogue as it is; a labelled text as one turn of the speaker, its labels as a note."""
    if isinstance(item, Dialogue):
        return item
    notes = (("labels", ", ".join(item.labels)),) if item.labels else ()
    return Dialogue((Turn(SPEAKER, item.text),), item.id, notes=notes)


def _dialogues(line: str, is_json: bool) -> list[Dialogue]:
    """An utterance, or in JSON a `Dialogue`, a `LabelledText` or a text without labels; none if blank."""
    if not line.strip():
        return []
    if not is_json:
        return [Dialogue((Turn(SPEAKER, line),))]
    data = json.loads(line)
    if isinstance(data, dict) and "text" in data and "turns" not in data:
        return [as_dialogue(LabelledText.from_dict({"labels": [], **data}))]
    return [_checked(Dialogue.from_dict(data))]


def _checked(dialogue: Dialogue) -> Dialogue:
    """The dialogue, if its readings have the labels of their heads; heads that are not ours may be."""
    for turn in dialogue.turns:
        for reading in turn.readings:
            if (labels := _LABELS.get(reading.head)) is not None:
                for score in reading.scores:
                    labels.check(score.label)
    return dialogue


def _can_pause(stream: IO[str] | None) -> bool:
    """Whether it is a pipe or a terminal, not a file."""
    try:
        return stream is not None and not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # no file of the system's
        return False


def _corpus_advice(name: str, otherwise: str) -> str:
    if near := nearest(name, CORPORA):
        return f"Did you mean the corpus {' or '.join(map(repr, near))}?"
    return f"`listenwell corpus list` shows the corpora. {otherwise}".rstrip()
