"""A checkpoint is a folder that says what it is and can tell whether it is whole.

It holds config.json, model.safetensors (or an adapter), the tokenizer, recipe.yaml, result.json, whatever
of these its maker has, and checkpoint.json: the kind of model, our format number and a sha256 sum of
every file. Nothing is pickled.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from listenwell.errors import CheckpointError
from listenwell.files import bring_back, folder_written_whole, sha256
from listenwell.serialization import Json, dumps

MANIFEST = "checkpoint.json"
FORMAT = 1
OLD_KINDS = {"ear": "classifier", "bag": "fasttext", "liking": "reward_model"}
"""Kinds that earlier releases wrote, and what they are called now: such checkpoints can still be opened."""
BEST = "best"
"""The folder in a training run's that holds its best checkpoint."""


@dataclass(frozen=True)
class Checkpoint:
    """A whole checkpoint folder of a known kind."""

    folder: Path
    kind: str
    """What the folder holds, such as "llama"; the loader checks that it is what it expects."""
    sums: dict[str, str]

    def path(self, name: str) -> Path:
        """A file of the checkpoint; one that it does not list is refused, whatever lies in the folder."""
        if name not in self.sums:
            raise CheckpointError(
                f"The checkpoint {self.folder} holds no {name}.", f"It holds: {', '.join(sorted(self.sums))}."
            )
        return self.folder / name

    def config(self) -> dict[str, Json]:
        """The contents of config.json."""
        return json.loads(self.path("config.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


@contextmanager
def writing(folder: Path, kind: str) -> Iterator[Path]:
    """A folder to fill; it becomes a checkpoint, whole or not at all, when the block ends without error."""
    with folder_written_whole(folder) as aside:
        yield aside
        names = sorted(str(path.relative_to(aside)) for path in aside.rglob("*") if path.is_file())
        manifest = {"format": FORMAT, "kind": kind, "sha256": {name: sha256(aside / name) for name in names}}
        (aside / MANIFEST).write_text(dumps(manifest) + "\n", encoding="utf-8")


def open_checkpoint(folder: Path, kind: str | None = None) -> Checkpoint:
    """Open a checkpoint after reading every file of it once against its sum.

    Args:
        folder: where it is.
        kind: what it must hold; None takes any kind.
    """
    bring_back(folder)
    manifest = _manifest(folder)
    sums, actual_kind = manifest["sha256"], OLD_KINDS.get(str(manifest["kind"]), str(manifest["kind"]))
    if kind is not None and actual_kind != kind:
        raise CheckpointError(
            f"{folder} holds a {actual_kind!r} checkpoint, not {kind!r}.", "Name another folder."
        )
    for name, expected_sum in sums.items():
        if not (folder / name).resolve().is_relative_to(folder.resolve()):
            raise CheckpointError(f"{folder} lists {name!r}, outside of itself.", "Do not use this folder.")
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder} lacks {name}.", "Copy the folder again, or make it anew.")
        if sha256(folder / name) != expected_sum:
            raise CheckpointError(
                f"{folder / name} is damaged: its sha256 sum is not the one it was written with.",
                "Copy the folder again, or make it anew.",
            )
    return Checkpoint(folder, actual_kind, sums)


def kind_of(folder: Path) -> str:
    """The kind of a checkpoint by its manifest alone; its files are not checked."""
    kind = str(_manifest(folder)["kind"])
    return OLD_KINDS.get(kind, kind)


def find_checkpoint(folder: Path) -> Path:
    """The checkpoint that a folder is, or a training run's best one; the folder itself where neither is."""
    for candidate in (folder, folder / BEST):
        bring_back(candidate)
        if (candidate / MANIFEST).is_file():
            return candidate
    return folder


def _manifest(folder: Path) -> dict[str, Json]:
    path = folder / MANIFEST
    advice = "Name a folder that listenwell wrote."
    if not path.is_file():
        problem = f"it has no {MANIFEST}" if folder.is_dir() else "there is no such folder"
        raise CheckpointError(f"{folder} is not a listenwell checkpoint: {problem}.", advice)
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        version, sums, _ = manifest["format"], manifest["sha256"], manifest["kind"]
        well_formed = isinstance(sums, dict) and all(isinstance(value, str) for value in sums.values())
    except (OSError, ValueError, TypeError, KeyError):
        well_formed = False
    if not well_formed:
        raise CheckpointError(f"{path} is damaged or foreign.", advice)
    if version != FORMAT:
        raise CheckpointError(
            f"{folder} is in checkpoint format {version}; this listenwell reads format {FORMAT}.",
            "Install the listenwell that wrote it, or make it anew.",
        )
    return manifest  # type: ignore[no-any-return]
