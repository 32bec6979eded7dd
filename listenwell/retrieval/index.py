"""A pool's vectors: made once, kept in the cache folder under a key that names all that shaped them.

In a pool's folder:
- `replies.bin` and `offsets.npy`: the cleaned replies, one after the other, and where each begins;
- `pool.json`: how many they are, what was left out, and the sums of those two files;
- `vectors.f16`: a row a reply, made in parts of PART rows;
- `vectors.sums`: a line for each part that is on disk, with its sum; thus a killed run goes on where it was,
  and a part that is damaged is made again, alone.

Everything is memory-mapped: a pool of a million replies is open in a moment, and what is not looked at is not
in memory.
"""

import errno
import hashlib
import json
import os
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, overload

import numpy as np

from listenwell.dialogue import Dialogue
from listenwell.errors import InputError
from listenwell.files import cache_folder, disk_errors, one_at_a_time, written_whole
from listenwell.progress import Advance, progress
from listenwell.retrieval.pool import Pool
from listenwell.serialization import Record

PART = 2048
"""Rows that are made and written at a time: what a kill can cost."""
FORMAT = 1
"""Of the files in a pool's folder."""
BLOCK = 1 << 20


class Ranks(Protocol):
    """What searching a pool needs of a ranker; `rankers.ranker.Ranker` has it."""

    name: str
    key: str
    """sha256 over weights and settings."""

    @property
    def width(self) -> int:
        """Of the vectors."""
        ...

    def reply_vectors(self, replies: Sequence[str], advance: Advance | None = None) -> np.ndarray:
        """(replies, width) float32."""
        ...

    def context_vector(self, dialogue: Dialogue) -> np.ndarray:
        """(width,) float32; its inner product with a reply's vector is the first score."""
        ...

    def scores(self, dialogue: Dialogue, replies: Sequence[str]) -> np.ndarray:
        """(replies,): the full ranker's, the higher the better."""
        ...


@dataclass(frozen=True)
class Key(Record):
    """All that shapes the files of a pool."""

    selector: str
    """The ranker's key."""
    pool: str
    """The pool's hash."""
    width: int
    kind: str = "float16"
    part: int = PART
    format: int = FORMAT

    @property
    def folder(self) -> Path:
        """Where such files are."""
        return cache_folder() / "pools" / hashlib.sha256(self.to_json().encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Stamp(Record):
    """A file as it was when it was whole."""

    size: int
    modified: int
    """Nanoseconds; a file with another time is read through and held against the sum."""
    crc: int

    @classmethod
    def of(cls, file: Path) -> "Stamp":
        """Of a file as it is now."""
        return cls(file.stat().st_size, file.stat().st_mtime_ns, _crc(file))

    def fits(self, file: Path) -> bool:
        """Whether the file is still that one."""
        try:
            found = file.stat()
            if found.st_size != self.size:
                return False
            return found.st_mtime_ns == self.modified or _crc(file) == self.crc
        except OSError:
            return False


@dataclass(frozen=True)
class Contents(Record):
    """What a pool holds, and what was left out of it."""

    count: int
    skipped: tuple[tuple[str, int], ...]
    """How many things were left out for each reason."""
    remarks: tuple[str, ...]
    """The same for people, with the first places."""
    replies: Stamp
    offsets: Stamp


class Replies(Sequence[str]):
    """Texts in a memory-mapped file."""

    def __init__(self, folder: Path) -> None:
        self._bytes = np.memmap(folder / "replies.bin", dtype=np.uint8, mode="r")
        self._offsets = np.load(folder / "offsets.npy", mmap_mode="r")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        place %= len(self)
        return self._bytes[self._offsets[place] : self._offsets[place + 1]].tobytes().decode()


@dataclass(frozen=True)
class Index:
    """A pool that is ready to be searched."""

    name: str
    """The pool's, for people; `key.pool` tells it from others."""
    folder: Path
    key: Key
    contents: Contents
    replies: Replies
    vectors: np.ndarray
    """(replies, width) float16, memory-mapped."""

    @property
    def most_memory(self) -> int:
        """Bytes of all its files: about the most that is in memory when every page was touched.

        Of 384 numbers a reply that is 0.9 GB for a million, all but the lists (0.1 GB) pages of files, which
        the system takes back when it needs the room.
        """
        return sum(file.stat().st_size for file in self.folder.iterdir() if file.is_file())


def open_index(selector: Ranks, pool: Pool, batch: int = PART) -> Index:
    """The pool's index; made first, or made whole again, where it is not there.

    Args:
        selector: makes the vectors.
        pool: the replies.
        batch: rows of a part.
    """
    key = Key(selector.key, pool.hash, selector.width, part=batch)
    folder = key.folder
    with one_at_a_time(folder):
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        contents = _contents(folder, pool, key)
        replies = Replies(folder)
        parts = _Parts(folder, len(replies), key)
        if missing := parts.missing():
            with progress("encoding the pool", total=len(replies), unit="replies", rate=True) as advance:
                advance(len(replies) - sum(stop - start for start, stop in map(parts.rows, missing)))
                parts.make(missing, replies, selector, advance)
    vectors = np.memmap(parts.file, dtype=np.float16, mode="r", shape=(len(replies), key.width))
    return Index(pool.name, folder, key, contents, replies, vectors)


def _contents(folder: Path, pool: Pool, key: Key) -> Contents:
    """What the folder holds of the pool; the texts are written first where they are not there or damaged."""
    about, texts, offsets = folder / "pool.json", folder / "replies.bin", folder / "offsets.npy"
    try:
        known = Contents.from_json(about.read_bytes())
        if known.replies.fits(texts) and known.offsets.fits(offsets):
            return known
    except (OSError, InputError):
        pass
    ends = array("q", [0])
    with written_whole(texts) as file:
        for reply in pool:
            ends.append(ends[-1] + file.write(reply.encode()))
        if len(ends) == 1:
            found = "; ".join(pool.report.lines()[:3])
            raise InputError(
                f"{pool.name} holds no reply{f': {found}' if found else ''}.",
                'Give one reply a line, or JSONL with {"text": "…"} or whole dialogues.',
            )
        if pool.hash != key.pool:
            raise InputError(f"{pool.name} was changed while it was read.", "Try again.")
    with written_whole(offsets) as file:
        np.save(file, np.frombuffer(ends, dtype=np.int64))
    report = pool.report
    skipped = tuple(report.skipped.most_common())
    made = Contents(len(ends) - 1, skipped, tuple(report.lines()), Stamp.of(texts), Stamp.of(offsets))
    with written_whole(about) as file:
        file.write(made.to_json().encode())
    return made


class _Parts:
    """The parts of a file of vectors, and which of them are there."""

    def __init__(self, folder: Path, count: int, key: Key) -> None:
        self.file, self.sums = folder / "vectors.f16", folder / "vectors.sums"
        self.count, self.key = count, key
        self.row = key.width * np.dtype(key.kind).itemsize

    def rows(self, part: int) -> tuple[int, int]:
        """First row of a part, and the one after its last."""
        start = part * self.key.part
        return start, min(start + self.key.part, self.count)

    def missing(self) -> list[int]:
        """Parts that are not on disk as their sums say; an untouched whole file is taken at its word."""
        every = range(-(-self.count // self.key.part))
        sums, finished = self._known()
        try:
            found = self.file.stat()
        except OSError:
            return list(every)
        is_whole = found.st_size == self.count * self.row and all(part in sums for part in every)
        if is_whole and found.st_mtime_ns == finished:
            return []
        with self.file.open("rb") as file:
            lost = [part for part in every if zlib.crc32(self._read(file.fileno(), part)) != sums.get(part)]
        if not lost:
            with disk_errors(self.file):
                os.truncate(self.file, self.count * self.row)  # something may hang on behind
                self._note({"finished": self.file.stat().st_mtime_ns})
        return lost

    def make(self, parts: Sequence[int], replies: Replies, selector: Ranks, advance: Advance) -> None:
        """Make some parts; each is on disk before its sum is."""
        with disk_errors(self.file):
            out = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            with disk_errors(self.file):
                self._make_room(out)
            for part in parts:
                start, stop = self.rows(part)
                made = self._checked(selector.reply_vectors(replies[start:stop], advance), stop - start)
                with disk_errors(self.file):
                    _write(out, made, start * self.row)
                    os.fsync(out)
                    self._note({"part": part, "crc": zlib.crc32(made)})
            self._note({"finished": os.fstat(out).st_mtime_ns})
        finally:
            os.close(out)

    def _make_room(self, out: int) -> None:
        """Claim all of the disk that is needed: one that is too small says so now, not after hours."""
        size = self.count * self.row
        os.ftruncate(out, size)
        if claim := getattr(os, "posix_fallocate", None):  # not on every system
            try:
                claim(out, 0, size)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # nor on every file system
                    raise

    def _checked(self, vectors: np.ndarray, count: int) -> bytes:
        with np.errstate(over="ignore"):
            small = np.asarray(vectors).astype(self.key.kind)
        if small.shape != (count, self.key.width) or not np.isfinite(small).all():
            raise InputError(
                f"The ranker gave vectors of the shape {small.shape} that cannot be kept as {self.key.kind}.",
                f"Use a ranker that gives ({count}, {self.key.width}) finite numbers.",
            )
        return small.tobytes()

    def _read(self, file: int, part: int) -> bytes:
        start, stop = self.rows(part)
        os.lseek(file, start * self.row, os.SEEK_SET)
        return os.read(file, (stop - start) * self.row)

    def _note(self, line: dict[str, int]) -> None:
        with disk_errors(self.sums), self.sums.open("ab") as file:
            # A line that a kill cut short is closed first.
            file.write(b"\n" + json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _known(self) -> tuple[dict[int, int], int | None]:
        """Each part's sum, the last that was noted, and the time of the file when it was whole."""
        sums: dict[int, int] = {}
        finished: int | None = None
        try:
            lines = self.sums.read_bytes().splitlines()
        except OSError:
            return sums, finished
        for line in lines:
            try:
                noted = json.loads(line)
                if "finished" in noted:
                    finished = int(noted["finished"])
                else:
                    sums[int(noted["part"])] = int(noted["crc"])
            except (ValueError, TypeError, KeyError):  # cut short or damaged: that part is made again
                continue
        return sums, finished


def _write(out: int, data: bytes, place: int) -> None:
    """All of the data at a place; the system may take it in pieces."""
    os.lseek(out, place, os.SEEK_SET)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(out, rest) :]


def _crc(file: Path) -> int:
    total = 0
    with file.open("rb") as opened:
        while block := opened.read(BLOCK):
            total = zlib.crc32(block, total)
    return total
