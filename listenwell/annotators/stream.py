"""Annotating streams of any length into JSONL, so that a run stopped at any moment can go on.

Lines are added to `FILE.part`, beside it `FILE.part.json` says which run they belong to; the finished file
takes its place in one move. The input is read again from its start when a run goes on, and every line that
is there already is held against it.
"""

import json
import os
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

from listenwell.annotators import WINDOW
from listenwell.annotators.inputs import Source
from listenwell.dialogue import Dialogue
from listenwell.errors import InputError
from listenwell.files import disk_errors
from listenwell.progress import Advance
from listenwell.serialization import Json, Record
from listenwell.version import __version__

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator


@dataclass(frozen=True)
class Run(Record):
    """All that shapes the lines, beside the input itself."""

    annotator: str
    """The annotator's key."""
    heads: tuple[str, ...]
    top: int
    source: str
    splits: tuple[str, ...]
    window: int
    version: str
    listener: str | None = None
    """Who was made the listener of every dialogue, if anyone was."""
    replaces: bool = False
    """Whether it may take the place of a file that is there."""

    def differences(self, other: "Run") -> list[str]:
        """What shapes lines and is not the same in another run, for people."""
        mine, theirs = asdict(self), asdict(other)
        return [
            f"{name} {_shown(value)}, now {_shown(theirs[name])}"
            for name, value in mine.items()
            if name != "replaces" and value != theirs[name]
        ]


@dataclass
class Stream:
    """Dialogues on their way through an annotator, and how far it has come; read once."""

    annotator: "Annotator"
    source: Source
    top: int = 5
    """How many labels of each head to keep."""
    listener: str | None = None
    """Who becomes the listener of every dialogue; None leaves it to each."""
    lines: int = field(default=0, init=False)
    """Lines that the output holds."""
    earlier: int = field(default=0, init=False)
    """How many of them an earlier run made."""
    without_listener: int = field(default=0, init=False)
    """Dialogues of two turns or more, none of them their listener's."""
    read: set[str] = field(default_factory=set, init=False)
    """Heads that gave a reading."""
    started: float = field(default_factory=time.perf_counter, init=False)

    def write(self, out: IO[bytes], advance: Advance) -> None:
        """Write one dialogue a line, each flushed, to what cannot be gone back on: a pipe, a terminal.

        Where the input pauses, all that came is annotated and written first.
        """
        windows = _as_they_come if self.source.is_live else _windows
        for line in self._lines(windows(self._dialogues()), advance):
            out.write(line)
            out.flush()

    def write_file(self, growing: "GrowingFile", advance: Advance) -> None:
        """Write one dialogue a line to a file, or go on where an earlier run was stopped.

        Where the source holds no dialogue, nothing is left behind, and a file that is there stays.
        """
        with growing:
            dialogues = self._dialogues()
            first = list(islice(dialogues, 1))  # an input that cannot be read leaves no file behind
            rest = growing.begin(self.run(), chain(first, dialogues))
            self.lines = self.earlier = growing.kept
            self.read |= growing.read
            self.started = time.perf_counter()
            if self.earlier:
                advance(self.earlier)
            for line in self._lines(_windows(rest), advance):
                growing.add(line)
            growing.finish(is_empty=not self.lines)

    def run(self) -> Run:
        """What shapes the lines."""
        annotator, source = self.annotator, self.source
        about = (self.top, source.identity, source.splits, WINDOW, __version__, self.listener)
        return Run(annotator.key, tuple(annotator.heads), *about)

    def rate(self) -> float:
        """Lines made in a second of this run."""
        return (self.lines - self.earlier) / max(time.perf_counter() - self.started, 1e-9)

    def _dialogues(self) -> Iterator[Dialogue]:
        """The source's dialogues with listener and annotator; those that lack a listener are counted."""
        for original in self.source:
            # Which annotator it was must be known wherever the labels go.
            notes = tuple((dict(original.notes) | {"annotator": self.annotator.key[:16]}).items())
            dialogue = replace(original, notes=notes, listener=self.listener or original.listener)
            if len(dialogue.turns) > 1 and all(turn.speaker != dialogue.listener for turn in dialogue.turns):
                self.without_listener += 1
            yield dialogue

    def _lines(self, windows: Iterable[list[Dialogue]], advance: Advance) -> Iterator[bytes]:
        """The annotated dialogues, in order; each is counted when it was written."""
        for window in windows:
            for dialogue in self.annotator.annotate_all(window, self.top):
                self.read.update(reading.head for turn in dialogue.turns for reading in turn.readings)
                yield dialogue.to_json().encode() + b"\n"
                self.lines += 1
                advance(1)


class GrowingFile:
    """A JSONL file that grows as FILE.part, and replaces FILE once it is whole; a link is followed.

    With `overwrite` it begins anew, and replaces in the end what is there.
    """

    def __init__(self, file: Path, overwrite: bool = False) -> None:
        self.file = file.expanduser().resolve()
        self.overwrite = overwrite
        self.part = self.file.with_name(f"{self.file.name}.part")
        self.mark = self.file.with_name(f"{self.file.name}.part.json")
        self.kept = 0
        """Lines of an earlier run that stay."""
        self.read: set[str] = set()
        """Heads that gave a reading in an earlier run."""
        self._out: IO[bytes] | None = None

    def check(self) -> None:
        """Raise an error if the file is finished, or cannot be one; before anything costly is done."""
        with disk_errors(self.file):
            is_folder, is_there = self.file.is_dir(), self.file.exists()
        if is_folder:
            raise InputError(f"{self.file} is a folder.", "Name a file with --out.")
        if not is_there or self.overwrite:
            return
        earlier = self._earlier()
        if not self.part.exists():
            if earlier is not None:  # killed after the last move
                self.mark.unlink(missing_ok=True)
        elif earlier is not None and earlier.replaces:
            return
        raise InputError(
            f"{self.file} is there already, and finished.", "Name another --out, or replace it: --overwrite."
        )

    def begin(self, run: Run, dialogues: Iterator[Dialogue]) -> Iterator[Dialogue]:
        """Claim the file for a run, compare it with the input, and return the dialogues still to annotate."""
        self.check()
        if run.source == str(self.part):
            raise InputError(f"{self.part} would be read and written at once.", "Name another --out.")
        with disk_errors(self.part):
            self.part.parent.mkdir(parents=True, exist_ok=True)
            self._out = self.part.open("ab", buffering=0)
            self._lock(self._out)
            is_fresh = os.fstat(self._out.fileno()).st_size == 0
        if not is_fresh and not self.mark.exists():
            raise InputError(
                f"{self.part} is in the way, and no run of this command began it.",
                "Move it away, or name another --out.",
            )
        if not is_fresh and not self.overwrite:
            if (earlier := self._earlier()) is None:
                raise InputError(f"{self.mark} is damaged.", "Begin anew with --overwrite.")
            if differences := earlier.differences(run):
                raise InputError(
                    f"{self.part} was begun under other settings: {'; '.join(differences)}.",
                    "Give the same ones to go on, or begin anew with --overwrite.",
                )
            return self._resume(dialogues)
        with disk_errors(self.part):
            # In this order: lines without their mark would be a stranger's.
            self._out.truncate(0)
            text = replace(run, replaces=self.file.exists()).to_json() + "\n"
            self.mark.write_text(text, encoding="utf-8")
        return dialogues

    def add(self, line: bytes) -> None:
        """Add a line; a kill in the midst of it leaves a half one, which is cut off when the run goes on."""
        assert self._out is not None
        rest = memoryview(line)
        try:
            with disk_errors(self.part):
                while rest:
                    rest = rest[os.write(self._out.fileno(), rest) :]
        except InputError as error:
            raise InputError(error.problem, f"{error.advice} {self.how_to_go_on()}") from error

    def how_to_go_on(self) -> str:
        """What a user does after a stop."""
        return f"The same command{' without --overwrite' if self.overwrite else ''} goes on from there."

    def finish(self, is_empty: bool) -> None:
        """Move the whole file to its name, or remove everything if it is empty."""
        assert self._out is not None
        with disk_errors(self.file):
            if is_empty:
                self.part.unlink()
            else:
                os.fsync(self._out.fileno())
                self.part.replace(self.file)
            self.mark.unlink(missing_ok=True)

    def __enter__(self) -> "GrowingFile":
        return self

    def __exit__(self, *error: object) -> None:
        if self._out is not None:
            self._out.close()
            self._out = None

    def _lock(self, out: IO[bytes]) -> None:
        """Let no second process write the same lines; one that is killed lets go."""
        try:
            import fcntl

            fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The other one may have finished between our opening and locking it.
            if os.path.samestat(os.fstat(out.fileno()), self.part.stat()):
                return
        except (BlockingIOError, FileNotFoundError):
            pass
        except (ModuleNotFoundError, OSError):  # Windows, or a file system without locks
            return
        raise InputError(f"Another process is writing {self.file}.", "Wait for it, or name another --out.")

    def _earlier(self) -> Run | None:
        """The run that the lines belong to, if that can be told."""
        try:
            return Run.from_json(self.mark.read_bytes())
        except (OSError, InputError):
            return None

    def _resume(self, dialogues: Iterator[Dialogue]) -> Iterator[Dialogue]:
        """Keep the whole windows that are there, if they come from the same input."""
        assert self._out is not None
        window: list[Dialogue] = []
        offset = end = 0
        with self.part.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n"):
                    break
                window.append(self._held_against(line, next(dialogues, None), number))
                offset += len(line)
                if len(window) == WINDOW:
                    end, self.kept = offset, number
                    window = []
        with disk_errors(self.part):
            self._out.truncate(end)
        return chain(window, dialogues)

    def _held_against(self, line: bytes, dialogue: Dialogue | None, number: int) -> Dialogue:
        """The dialogue of the input, if the line was made from it."""
        try:
            written = json.loads(line)
            self.read.update(read["head"] for turn in written["turns"] for read in turn.get("readings", ()))
            is_same = dialogue is not None and _comes_from(written, dialogue.to_dict())
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            raise InputError(f"{self.part}:{number} is damaged.", "Begin anew with --overwrite.") from None
        if dialogue is None or not is_same:
            raise InputError(
                f"{self.part}:{number} was made from another input.",
                "Give the same input to go on, or begin anew with --overwrite.",
            )
        return dialogue


def _windows(dialogues: Iterable[Dialogue]) -> Iterator[list[Dialogue]]:
    """All in whole windows; no more than one is read ahead."""
    rest = iter(dialogues)
    while window := list(islice(rest, WINDOW)):
        yield window


def _as_they_come(dialogues: Iterable[Dialogue]) -> Iterator[list[Dialogue]]:
    """At least one dialogue, and as many more as are there already, up to a window."""
    waiting: queue.Queue[Dialogue | BaseException | None] = queue.Queue(WINDOW)

    def read() -> None:
        try:
            for dialogue in dialogues:
                waiting.put(dialogue)
            waiting.put(None)
        except BaseException as error:  # raised again where the lines are written
            waiting.put(error)

    # A daemon: whoever stops the command does not wait for one more line.
    threading.Thread(target=read, daemon=True).start()
    while True:
        window: list[Dialogue] = []
        item = waiting.get()
        while isinstance(item, Dialogue):
            window.append(item)
            try:
                if len(window) == WINDOW:
                    break
                item = waiting.get_nowait()
            except queue.Empty:
                break
        if window:
            yield window
        if isinstance(item, BaseException):
            raise item
        if item is None:
            return


def _comes_from(written: Json, original: Json) -> bool:
    """Whether a dialogue is another one with readings added, and factors where they were unknown.

    Both are JSON values: making dialogues of all that is there would take as long as small annotators do.
    """
    known_factors_stay = True
    for new, old in zip(written["turns"], original["turns"], strict=False):
        new.pop("readings", None)
        old.pop("readings", None)
        known_factors_stay &= old.pop("factors", {}).items() <= new.pop("factors", {}).items()
    return known_factors_stay and bool(written == original)


def _shown(value: object) -> str:
    text = ", ".join(value) if isinstance(value, tuple) else str(value or "")
    return (text if len(text) <= 60 else f"{text[:57]}…") or "none"
