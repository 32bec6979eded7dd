"""A pool's vectors: encoded once, kept in the cache folder under a key that names all that shaped them.

In a pool's folder:
- `replies.bin` and `offsets.npy`: the cleaned replies, one after the other, and where each begins;
- `pool.json`: how many they are, what was left out, and the sums of those two files;
- `vectors.f16`: a row per reply, written in parts of PART rows;
- `vectors.json`: size and sum of what is on disk of it, written after every part, so that a killed run
  continues there.

Everything is memory-mapped: a pool of a million replies opens in a moment, and only what is read is in
memory.
"""

import errno
import hashlib
import os
import shutil
import zlib
from array import array
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from listenwell.errors import InputError
from listenwell.files import cache_folder, disk_errors, one_at_a_time, written_whole
from listenwell.progress import progress
from listenwell.retrieval.pool import Pool
from listenwell.serialization import Record

if TYPE_CHECKING:
    from listenwell.rankers.ranker import Ranker

PART = 2048
"""Rows that are made and written at a time: what a kill can cost."""
FORMAT = 1
"""Of the files in a pool's folder."""
BLOCK = 1 << 20


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
    """Size, time and sum of a file when it was written."""

    size: int
    modified: int
    """Nanoseconds; a file with another time is read and compared with the sum."""
    crc: int

    @classmethod
    def of(cls, file: Path, crc: int | None = None) -> "Stamp":
        """Of a file as it is now; its sum is computed if not given."""
        stat = file.stat()
        return cls(stat.st_size, stat.st_mtime_ns, _crc(file, stat.st_size) if crc is None else crc)

    def fits(self, file: Path, may_be_longer: bool = False) -> bool:
        """Whether the file, or with `may_be_longer` its beginning, is still the one described."""
        try:
            stat = file.stat()
            if stat.st_size != self.size and not (may_be_longer and stat.st_size > self.size):
                return False
            is_untouched = stat.st_size == self.size and stat.st_mtime_ns == self.modified
            return is_untouched or _crc(file, self.size) == self.crc
        except OSError:
            return False


@dataclass(frozen=True)
class Contents(Record):
    """What a pool holds, and what was left out of it."""

    count: int
    skipped: tuple[tuple[str, int], ...]
    """How many things were left out for each reason."""
    remarks: tuple[str, ...]
    """The same for people, with the first lines."""
    replies: Stamp
    offsets: Stamp


class Replies:
    """Texts in a memory-mapped file."""

    def __init__(self, folder: Path) -> None:
        self._bytes = np.memmap(folder / "replies.bin", dtype=np.uint8, mode="r")
        self._offsets = np.load(folder / "offsets.npy", mmap_mode="r")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._bytes[self._offsets[index] : self._offsets[index + 1]].tobytes().decode()


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

        With 384 numbers a reply that is 0.9 GB for a million; the system takes most of it back at need.
        """
        return sum(file.stat().st_size for file in self.folder.iterdir() if file.is_file())


def open_index(selector: "Ranker", pool: Pool, batch: int = PART) -> Index:
    """Open a pool's index; what is missing or damaged is made first, `batch` rows at a time."""
    key = Key(selector.key, pool.hash, selector.width, part=batch)
    folder = key.folder
    with one_at_a_time(folder):
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        contents = _contents(folder, pool, key)
        replies = Replies(folder)
        file = _vectors(folder, replies, selector, key)
    vectors = np.memmap(file, dtype=np.float16, mode="r", shape=(len(replies), key.width))
    return Index(pool.name, folder, key, contents, replies, vectors)


def _contents(folder: Path, pool: Pool, key: Key) -> Contents:
    """What the folder holds of the pool; the texts are written first if they are missing or damaged."""
    about, texts, offsets = folder / "pool.json", folder / "replies.bin", folder / "offsets.npy"
    with suppress(OSError, InputError):
        known = Contents.from_json(about.read_bytes())
        if known.replies.fits(texts) and known.offsets.fits(offsets):
            return known
    ends = array("q", [0])
    with written_whole(texts) as file:
        for reply in pool:
            ends.append(ends[-1] + file.write(reply.encode()))
        if len(ends) == 1:
            skipped = "; ".join(pool.report.lines()[:3])
            raise InputError(
                f"{pool.name} holds no reply{f': {skipped}' if skipped else ''}.",
                'Give one reply a line, or JSONL with {"text": "…"} or whole dialogues.',
            )
        if pool.hash != key.pool:
            raise InputError(f"{pool.name} was changed while it was read.", "Try again.")
    with written_whole(offsets) as file:
        np.save(file, np.frombuffer(ends, dtype=np.int64))
    report = pool.report
    contents = Contents(
        len(ends) - 1,
        tuple(report.skipped.most_common()),
        tuple(report.lines()),
        Stamp.of(texts),
        Stamp.of(offsets),
    )
    with written_whole(about) as file:
        file.write(contents.to_json().encode())
    return contents


def _vectors(folder: Path, replies: Replies, selector: "Ranker", key: Key) -> Path:
    """The file of vectors; rows that are not on disk yet are encoded, a part at a time."""
    file, about = folder / "vectors.f16", folder / "vectors.json"
    row_bytes = key.width * np.dtype(key.kind).itemsize
    size = crc = 0
    with suppress(OSError, InputError):
        known = Stamp.from_json(about.read_bytes())
        if known.fits(file, may_be_longer=True):
            size, crc = known.size, known.crc
    with disk_errors(file), file.open("ab", buffering=0) as out:
        if out.tell() != size:
            out.truncate(size)
        if shutil.disk_usage(folder).free < len(replies) * row_bytes - size:
            # Said now, not after hours.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        first = size // row_bytes
        if first == len(replies):
            return file
        with progress("encoding the pool", total=len(replies), unit="replies", rate=True) as advance:
            advance(first)
            for start in range(first, len(replies), key.part):
                texts = [replies[row] for row in range(start, min(start + key.part, len(replies)))]
                data = _checked(selector.reply_vectors(texts, advance), len(texts), key)
                crc = zlib.crc32(data, crc)
                rest = memoryview(data)
                while rest:  # the system may take it in parts
                    rest = rest[os.write(out.fileno(), rest) :]
                os.fsync(out.fileno())
                with written_whole(about) as noted:
                    noted.write(Stamp.of(file, crc).to_json().encode())
    return file


def _checked(vectors: np.ndarray, count: int, key: Key) -> bytes:
    with np.errstate(over="ignore"):
        small = np.asarray(vectors).astype(key.kind)
    if small.shape != (count, key.width) or not np.isfinite(small).all():
        raise InputError(
            f"The ranker gave vectors of the shape {small.shape} that cannot be kept as {key.kind}.",
            f"Use a ranker that gives ({count}, {key.width}) finite numbers.",
        )
    return small.tobytes()


def _crc(file: Path, size: int) -> int:
    """Of the first `size` bytes."""
    total = 0
    with file.open("rb") as opened:
        while block := opened.read(min(BLOCK, size)):
            total, size = zlib.crc32(block, total), size - len(block)
    return total
