"""Where files live, and how they are written so that a killed process never leaves half of one."""

import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from listenwell.errors import InputError


def cache_folder() -> Path:
    """Where what can be made again is kept: LISTENWELL_CACHE, else the system's cache folder."""
    return _folder("LISTENWELL_CACHE", "user_cache_path", ".cache/listenwell")


def data_folder() -> Path:
    """Where corpora are looked for and downloaded to: LISTENWELL_DATA, else the system's data folder."""
    return _folder("LISTENWELL_DATA", "user_data_path", ".local/share/listenwell", "data")


def _folder(variable: str, system: str, usual: str, *below: str) -> Path:
    if named := os.environ.get(variable):
        return Path(named).expanduser()
    try:
        import platformdirs
    except ModuleNotFoundError:  # a bare training machine
        return Path.home().joinpath(usual, *below)
    path: Path = getattr(platformdirs, system)("listenwell")
    return path.joinpath(*below)


def sha256(path: Path) -> str:
    """The sha256 sum of a file, as hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_files(files: Iterable[Path]) -> str:
    """One sum over several files: their names and contents, in the order of their names."""
    total = hashlib.sha256()
    for file in sorted(set(files)):
        total.update(f"{file.name} {sha256(file)}\n".encode())
    return total.hexdigest()


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Say what a full or read-only disk means for the user, instead of a bare OSError."""
    try:
        yield
    except OSError as error:
        advice = {
            errno.ENOSPC: "The disk is full: free some space, or name another folder.",
            errno.EDQUOT: "Your disk quota is used up: free some space, or name another folder.",
            errno.EACCES: "Choose a folder you may write to.",
            errno.EROFS: "The disk is read-only: choose another folder.",
        }.get(error.errno or 0, "Name another place.")
        raise InputError(f"Cannot write {path}: {error}.", advice) from error


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that takes its place under `path` only when all of it is on disk.

    A link is followed. What is no ordinary file (a pipe, a device) is written to, never replaced.
    """
    path = path.expanduser()
    with disk_errors(path):
        path = path.resolve()
        if path.exists() and not path.is_file():
            with path.open("wb") as special:
                yield special
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        aside = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            aside.chmod(0o666 & ~_umask())  # mkstemp makes private files; an export is an ordinary one
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)


@contextmanager
def folder_written_whole(folder: Path) -> Iterator[Path]:
    """A folder to fill that takes its place only when all of it is on disk; one already there is replaced.

    The old folder is moved aside before the new one is moved in. A kill between the two moves leaves it
    under `.NAME.previous`, from where `recover` brings it back.
    """
    folder = _named(folder.expanduser())
    with disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".part"))
        try:
            yield aside
            for path in [*aside.rglob("*"), aside]:
                # Some libraries write private files; a model folder is an ordinary one.
                path.chmod((0o777 if path.is_dir() else 0o666) & ~_umask())
                _sync(path)
            previous = _previous(folder)
            if folder.exists():
                shutil.rmtree(previous, ignore_errors=True)
                folder.rename(previous)
            aside.rename(folder)
            _sync(folder.parent)
            shutil.rmtree(previous, ignore_errors=True)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Let one process after the other make a folder; a process that is killed lets go of it."""
    try:
        import fcntl
    except ModuleNotFoundError:  # Windows: two at once would do the work twice
        yield
        return
    folder = _named(folder)
    with disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = folder.with_name(f".{folder.name}.lock").open("wb")
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def recover(folder: Path) -> None:
    """Bring back the previous folder if a kill left only that, and remove what half-done writes left.

    Only for a folder that nobody else is writing now.
    """
    folder = _named(folder)
    for leftover in folder.parent.glob(f".{folder.name}.*.part"):
        shutil.rmtree(leftover, ignore_errors=True)
    bring_back(folder)


def bring_back(folder: Path) -> None:
    """Put the previous folder in its place again if a kill left only that."""
    if not folder.exists() and (previous := _previous(_named(folder))).exists():
        previous.rename(folder)


def _named(folder: Path) -> Path:
    """The same folder by a name that neighbours can be named after: `.` and `..` are none."""
    return folder if folder.name not in ("", "..") else folder.resolve()


def _previous(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.previous")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def slug(name: str) -> str:
    """A name as part of a file's name: lower case, with - for all that is no letter or figure."""
    return re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-") or "nameless"


class ResumableJsonl:
    """A JSONL file that is written group by group, so that a killed run loses one group at most.

    Groups are collected in PATH.part, whose first line says what they are made of; `finish` writes PATH.

    Args:
        path: the file to write; it must not be there yet.
        about: what the lines depend on: a run with other values does not go on in the same file.
    """

    def __init__(self, path: Path, about: Mapping[str, object]) -> None:
        self.path, self._part = path, path.with_name(f"{path.name}.part")
        if path.exists():
            raise InputError(f"{path} is there already, and finished.", "Name another file, or remove it.")
        header = json.dumps({"about": about}, sort_keys=True)
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = self._part.read_bytes().splitlines(keepends=True) if self._part.exists() else []
            if lines and not lines[-1].endswith(b"\n"):  # a kill cut it off
                lines.pop()
            if lines and lines[0].decode() != f"{header}\n":
                raise InputError(
                    f"{self._part} was begun with other inputs or settings.",
                    "Give the same ones to go on, or remove the file.",
                )
            self._groups: dict[str, list[str]] = dict(json.loads(line) for line in lines[1:])
            self._part.write_bytes(b"".join(lines) or f"{header}\n".encode())

    def __contains__(self, key: str) -> bool:
        """Whether a group is already written."""
        return key in self._groups

    def add(self, key: str, rows: Iterable[str]) -> None:
        """Write the lines of one group to disk."""
        self._groups[key] = list(rows)
        with disk_errors(self._part), self._part.open("ab") as file:
            file.write(json.dumps([key, self._groups[key]]).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def finish(self) -> list[str]:
        """Write all lines, group after group, to the file itself; returns them."""
        rows = [row for group in self._groups.values() for row in group]
        with written_whole(self.path) as file:
            file.writelines(f"{row}\n".encode() for row in rows)
        self._part.unlink()
        return rows
