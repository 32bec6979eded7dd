"""Which results cannot be trusted to come from one run of committed code.

A result is refused where its commit is missing, was changed ("-dirty") or is one of several ("mixed: …"),
and where its settings were not written by the code: its digest does not match, or, in files older than the
digest, a setting has a name that the code never wrote. KNOWN_PROBLEMS.yaml of the results folder lists what
is accepted in spite of that, with the reason; pages mark those rows.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from listenwell.errors import InputError
from listenwell.results.store import DIGEST, Result, digest, read_result, result_files
from listenwell.serialization import Json

FILE = "KNOWN_PROBLEMS.yaml"
CHANGED, SEVERAL, NONE, EDITED = KINDS = ("changed_tree", "several_commits", "no_commit", "edited")
MARKS = dict(zip(KINDS, "¹²³⁴", strict=True))
"""The footnote mark of each kind of problem on the pages."""
_OLD_SETTINGS = frozenset(
    yaml.safe_load(Path(__file__).with_name("old_settings.yaml").read_text(encoding="utf-8"))
)
"""The settings that the code wrote before results had a digest."""


@dataclass(frozen=True)
class Known:
    """A problem that was accepted: its kind, what the pages say about it, and the files that have it."""

    kind: str
    note: str
    files: frozenset[str]
    same_replies: frozenset[str] = frozenset()
    """Results of the same replies: sound by themselves, but marked too."""


def problem_kinds(content: Mapping[str, Json]) -> list[str]:
    """What is wrong with the origin of a result file, as `KINDS`."""
    kinds = []
    commit = content.get("commit", "")
    if not commit:
        kinds.append(NONE)
    if "-dirty" in commit:
        kinds.append(CHANGED)
    if commit.startswith("mixed"):
        kinds.append(SEVERAL)
    if DIGEST in content:
        is_written = content[DIGEST] == digest(content)
    else:
        is_written = set(content.get("conditions", {})) <= _OLD_SETTINGS
    return kinds if is_written else [*kinds, EDITED]


def read_known(folder: Path) -> list[Known]:
    """The accepted problems of a results folder."""
    file = folder / FILE
    if not file.is_file():
        return []
    entries = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    if unknown := sorted(set(entries) - set(KINDS)):
        raise InputError(f"{file}: unknown kind {unknown[0]!r}.", f"Use one of {', '.join(KINDS)}.")
    return [
        Known(kind, entry["note"], frozenset(entry["files"]), frozenset(entry.get("same_replies", ())))
        for kind, entry in entries.items()
    ]


def result_problems(folder: Path) -> list[str]:
    """The results whose origin is refused, and entries of KNOWN_PROBLEMS.yaml that are out of date."""
    listed = {(name, known.kind) for known in read_known(folder) for name in known.files}
    problems = {
        (file.relative_to(folder).as_posix(), kind)
        for file in result_files(folder)
        for kind in problem_kinds(json.loads(file.read_bytes()))
    }
    refused = [f"results/{name}: {_REASONS[kind]}" for name, kind in sorted(problems - listed)]
    stale = [f"results/{FILE}: {name} is no longer {kind}" for name, kind in sorted(listed - problems)]
    return refused + stale


_REASONS = {
    CHANGED: "it was measured from a tree with uncommitted changes: commit, then measure again",
    SEVERAL: "its runs have different commits: measure all of them with one",
    NONE: "it names no commit: set LISTENWELL_COMMIT where there is no git, and measure again",
    EDITED: "its settings were not written by the code that measured it: measure again",
}


def row_marks(folder: Path) -> dict[tuple[str, str], str]:
    """The footnote marks of rows with an accepted problem, by task and system."""
    marks: dict[tuple[str, str], str] = {}
    for known in read_known(folder):
        for name in known.files | known.same_replies:
            result: Result = read_result(folder / name)
            key = (result.task, result.system)
            marks[key] = marks.get(key, "") + MARKS[known.kind]
    return marks
