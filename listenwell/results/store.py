"""Result files: what was measured, on what, with which settings, by which code.

Every number in the docs comes from a result file written here.
"""

import hashlib
import importlib.util
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from listenwell.errors import InputError
from listenwell.files import slug, written_whole
from listenwell.serialization import Json, Record, indented, pairs

if TYPE_CHECKING:
    import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    *("listenwell", "torch", "transformers", "tokenizers", "scikit-learn", "peft", "numpy"),
    *("sacrebleu", "rouge-score", "nltk", "vaderSentiment"),
)
COMMIT = "LISTENWELL_COMMIT"
"""The environment variable that names the commit on a machine without git."""
DIGEST = "digest"
"""The key of a result file that holds the digest over all the others."""
RATINGS = "ratings"
"""The task of blind ratings."""
HUMAN, OURS = "human", "planned"
"""How rows of human replies and of our own generator are called in result files."""
FOLDERS = {
    "ranking": "rankers",
    "word by word": "word_level_rankers",
    "reading": "pairwise_accuracy",
    "judges": "rater_agreement",
    "planning": "factor_prediction",
    "realization": "plan_adherence",
    "family": "comae",
    "comae": "comae_sweep",
}
"""The folders of tasks whose name in result files is not what a reader would look for."""


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
    """Every setting that can change a number: factors, pool, decoding, sample, tokenizer, …"""
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
        for name in ("metrics", "spreads"):
            object.__setattr__(self, name, pairs(name, getattr(self, name), float))
        for name in ("units", "conditions", "versions"):
            object.__setattr__(self, name, pairs(name, getattr(self, name), str))

    def metric(self, name: str) -> float | None:
        """A metric's value, if it was measured."""
        return dict(self.metrics).get(name)


def environment() -> dict[str, object]:
    """Versions, commit, machine and time, to be put into a Result: `Result(..., **environment())`."""
    return {
        "versions": tuple(_versions().items()),
        "commit": _commit(),
        "machine": _machine(),
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": _command(sys.argv),
    }


def write_result(result: Result, file: Path) -> None:
    """Write a result file, indented for people to read, with a digest that shows later edits."""
    content = result.to_dict()
    with written_whole(file) as out:
        out.write(indented(content | {DIGEST: digest(content)}).encode())


def read_result(file: Path) -> Result:
    """Read a result file."""
    try:
        content = json.loads(file.read_bytes())
        if isinstance(content, dict):
            content.pop(DIGEST, None)
        return Result.from_dict(content)
    except ValueError as error:
        raise InputError(f"{file}: this is not JSON: {error}.", "Measure it again.") from None
    except InputError as error:
        raise InputError(f"{file}: {error.problem}", error.advice) from None


def digest(content: Mapping[str, Json]) -> str:
    """sha256 over a result's fields, whatever their order; the digest itself is left out."""
    fields = {name: value for name, value in content.items() if name != DIGEST}
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def result_files(folder: Path) -> list[Path]:
    """The result files of a folder, one folder a task; files of the older flat layout are found too."""
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.", "Run this where it is, or name it with --results.")
    return sorted([*folder.glob("*.json"), *folder.glob("*/*.json")])


def read_results(folder: Path) -> list[Result]:
    """Every result of a folder by task: ours first, then baselines, then people."""
    results = [read_result(file) for file in result_files(folder)]
    ranks = ("ours", "baseline", "people")
    return sorted(
        results, key=lambda result: (result.task, ranks.index(source(result)), natural_order(result.system))
    )


def load(folder: str | Path | None = None) -> "pd.DataFrame | list[dict[str, Any]]":
    """Every result of a folder as a table, one row for each metric value.

    The columns are those of `results/README.md`: task, system, source ("ours", "baseline" or "people"),
    corpus, split, metric, value, spread, unit, count, seed, settings (a mapping), data, checkpoint, commit,
    command, machine, time.

    Args:
        folder: the results folder; by default `results` here, else that of the source checkout.

    Returns:
        A pandas DataFrame where pandas is installed (`pip install "listenwell[bench]"`), otherwise a list of
        dicts with the same keys.
    """
    if folder is None:
        here = Path("results")
        folder = here if here.is_dir() else ROOT / "results"
    rows = [row for result in read_results(Path(folder)) for row in _metric_rows(result)]
    if importlib.util.find_spec("pandas") is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows)


def _metric_rows(result: Result) -> list[dict[str, Any]]:
    spreads, units = dict(result.spreads), dict(result.units)
    return [
        {
            "task": result.task,
            "system": result.system,
            "source": source(result),
            "corpus": result.corpus,
            "split": result.split,
            "metric": name,
            "value": value,
            "spread": spreads.get(name),
            "unit": units.get(name, ""),
            "count": result.count,
            "seed": result.seed,
            "settings": dict(result.conditions),
            "data": result.data,
            "checkpoint": result.checkpoint or None,
            "commit": result.commit,
            "command": result.command,
            "machine": result.machine,
            "time": result.time,
        }
        for name, value in result.metrics
    ]


def source(result: Result) -> str:
    """Whose replies or predictions a row holds: "ours", "baseline" or "people"."""
    # The reply filter has no model of its own: its rows of our generators are known by their names.
    if result.checkpoint or result.system.startswith(OURS):
        return "ours"
    return "people" if result.system.partition(",")[0] == HUMAN else "baseline"


def natural_order(name: str) -> list[tuple[int, str]]:
    """A sort key that ignores case and orders numbers by their size: 2 before 10."""
    parts = re.split(r"(\d+)", name.casefold())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def file_name(result: Result) -> str:
    """A result's path in a results folder: TASK/SYSTEM.json.

    Arrows and bars are spelled out, so that CM → DA and CM ‖ DA are two files.
    """
    spelled = result.system.replace("→", " to ").replace("‖", " and ").replace("+", " plus ")
    return f"{task_folder(result.task)}/{slug(spelled)}.json"


def task_folder(task: str) -> str:
    """The folder of a task's results."""
    return FOLDERS.get(task) or slug(task).replace("-", "_")


def _versions() -> Mapping[str, str]:
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def _commit() -> str:
    """The commit of the running source, marked "-dirty" where files were changed.

    Without git or outside of a repository, as on a GPU host, it is the value of the environment variable
    LISTENWELL_COMMIT (the output of `git describe --always --dirty` where the files came from), or empty.
    """
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=10, check=False)
        described = run.stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        described = ""
    return described or os.environ.get(COMMIT, "").strip()


def _machine() -> str:
    """What kind of machine it was, without its name."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = f"{platform.machine()}, {count} cores"
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return f"{torch.cuda.get_device_name()}, {cores}"
    return cores


def _command(arguments: list[str]) -> str:
    """The command line as a user would type it: without paths of this machine, quoted for a shell."""
    file = Path(arguments[0] if arguments else "").resolve()
    program = ["listenwell"]
    if file.suffix == ".py" and file.is_relative_to(ROOT / "listenwell"):
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        program = ["python", "-m", module.removesuffix(".__main__")]
    return shlex.join([*program, *map(_without_folder, arguments[1:])])


def _without_folder(argument: str) -> str:
    """An absolute path as the name alone, also after `--option=`."""
    option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    return f"{option}{equals}{Path(value).name}" if Path(value).is_absolute() else argument
