"""The ledger: what was measured, on what, under which conditions, by which code.

Every number that stands in the docs comes from a result.json written here. Standard library only: training
machines write results too.
"""

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from listenwell.errors import InputError
from listenwell.files import slug, written_whole
from listenwell.serialization import Record, indented, pairs

PACKAGES = (
    "listenwell",
    "torch",
    "transformers",
    "tokenizers",
    "scikit-learn",
    "peft",
    "numpy",
    "sacrebleu",
    "rouge-score",
    "nltk",
    "vaderSentiment",
)
COMMIT = "LISTENWELL_COMMIT"
"""The environment variable that names the commit on a machine without git."""


@dataclass(frozen=True)
class Result(Record):
    """One system measured once by one protocol."""

    task: str
    """The table it belongs to, such as "replies" or "perplexity"."""
    system: str
    """The row's name, such as "MoEL"."""
    metrics: tuple[tuple[str, float], ...]
    corpus: str
    split: str
    count: int
    """How many items were measured."""
    data: str
    """sha256 over the files the items came from."""
    spreads: tuple[tuple[str, float], ...] = ()
    """The standard deviation of a metric over several seeds, where it is their mean."""
    units: tuple[tuple[str, str], ...] = ()
    """The unit of each metric, by its name."""
    conditions: tuple[tuple[str, str], ...] = ()
    """Every switch that can move a number: factors, pool, decoding, sample, tokenizer, …"""
    seed: int | None = None
    checkpoint: str | None = None
    """sha256 over the model's files, where there is a model."""
    command: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    commit: str = ""
    machine: str = ""
    time: str = ""
    """When it was measured, in UTC."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "metrics", pairs("metrics", self.metrics, float))
        object.__setattr__(self, "spreads", pairs("spreads", self.spreads, float))
        object.__setattr__(self, "units", pairs("units", self.units, str))
        object.__setattr__(self, "conditions", pairs("conditions", self.conditions, str))
        object.__setattr__(self, "versions", pairs("versions", self.versions, str))

    def metric(self, name: str) -> float | None:
        """One of the figures, if it was measured."""
        return dict(self.metrics).get(name)


def environment() -> dict[str, object]:
    """Versions, commit, machine and time, to be put into a Result: `Result(..., **surroundings())`."""
    return {
        "versions": tuple(_versions().items()),
        "commit": _commit(),
        "machine": _machine(),
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": _command(sys.argv),
    }


def write_result(result: Result, file: Path) -> None:
    """Write a result.json, indented for people to read."""
    with written_whole(file) as out:
        out.write(indented(result.to_dict()).encode())


def read_result(file: Path) -> Result:
    """Read a result.json."""
    try:
        return Result.from_json(file.read_bytes())
    except InputError as error:
        raise InputError(f"{file}: {error.problem}", error.advice) from None


def _versions() -> Mapping[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _commit() -> str:
    """The commit of the source this runs from, marked where files were changed.

    Where git gives none (a GPU machine that got the files alone), it is what the environment variable
    LISTENWELL_COMMIT says, such as `git describe --always --dirty` gave it where the files came from; else
    empty.
    """
    return _described() or os.environ.get(COMMIT, "").strip()


def _described() -> str:
    """What git says of the source's commit; empty without git or outside of a repository."""
    root = Path(__file__).resolve().parents[2]
    try:
        run = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=root,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout.strip()


def _machine() -> str:
    """What kind of machine it was, without its name."""
    cores = f"{platform.machine()}, {_cores()} cores"
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return f"{torch.cuda.get_device_name()}, {cores}"
    return cores


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _command(arguments: list[str]) -> str:
    """The command line as a user would type it: no place on this machine, quoted for a shell."""
    program = _program(arguments[0]) if arguments else "listenwell"
    return shlex.join([*program.split(), *map(_without_place, arguments[1:])])


def _program(file: str) -> str:
    """What a file of the package is called by; `listenwell` for any other."""
    root = Path(__file__).parents[2]
    place = Path(file).resolve()
    if place.suffix != ".py" or not place.is_relative_to(root / "listenwell"):
        return "listenwell"
    parts = place.relative_to(root).with_suffix("").parts
    return f"python -m {'.'.join(parts[:-1] if parts[-1] == '__main__' else parts)}"


def _without_place(argument: str) -> str:
    """An absolute path as the name alone, also after `--option=`."""
    option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    return f"{option}{equals}{Path(value).name}" if Path(value).is_absolute() else argument


def file_name(result: Result) -> str:
    """The name of a row's file; arrows and bars are spelled out, so that CM → DA and CM ‖ DA are two."""
    spelled = result.system.replace("→", " to ").replace("‖", " and ").replace("+", " plus ")
    return f"{slug(result.task)}-{slug(spelled)}.json"
