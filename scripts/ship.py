"""Put a trained checkpoint under listenwell/pretrained, with its model card.

python scripts/ship.py annotators RUN/best      (card: docs/cards/annotators.md)
python scripts/ship.py annotators               (writes the shipped checkpoint's card and sums anew)

The card's line `{{figures}}` becomes the tables of the checkpoint's results: no number is typed by hand.
Weights are committed once, when they are final: history keeps every copy.
"""

import argparse
import re
import shutil
import sys
from pathlib import Path

from listenwell.checkpoint import MANIFEST, Checkpoint, open_checkpoint, writing
from listenwell.errors import CheckpointError, InputError, ListenwellError
from listenwell.evaluation.report.tables import figure_grids
from listenwell.results.markdown import Grid
from listenwell.results.metric_registry import GROUPS
from listenwell.results.provenance import MARKS, read_known, row_marks
from listenwell.results.store import read_results

ROOT = Path(__file__).resolve().parents[1]
CARD = "README.md"
TABLES = "{{figures}}"
ROWS = {
    "fasttext_emotion": "bag_emotion",
}
"""How older result files call a shipped checkpoint."""
TEXTS = ("recipe.yaml", "config.json", "metrics.json", "result.json", "adapter_config.json")
"""The files in which a run may have written paths of the machine it ran on."""
_PATH = re.compile(
    r"""(?:^|(?<=[\s"'=:,(\[]))(?:file://|/\w|/\.\w|~[\w.-]*/|[A-Za-z]:\\|[A-Za-z]:/(?!/))[^\s"',\])]*""",
    re.MULTILINE,
)
"""A path from the root, the home folder or a drive; not a URL, not a slash that stands alone."""
_PART = re.compile(r" without |, \d+ contexts")
"""Rows of ablations and samples: they are in docs/results, not on the card."""


def ship(name: str, run: Path, root: Path = ROOT) -> Path:
    """Copy a checkpoint and write its card; returns the new folder.

    Args:
        name: of the folder under listenwell/pretrained, and of the card.
        run: the checkpoint; the shipped folder itself is fine, its weights stay as they are.
        root: the repository.
    """
    saved = open_checkpoint(run)
    check_paths(saved)
    card = card_of(name, root)
    target = root / "listenwell" / "pretrained" / name
    with writing(target, saved.kind) as folder:
        for file in saved.sums:
            if file not in (CARD, MANIFEST):
                shutil.copyfile(run / file, folder / file)
        (folder / CARD).write_text(card, encoding="utf-8")
    return target


def check_paths(saved: Checkpoint) -> None:
    """Refuse a checkpoint that holds a path of the machine it was trained on."""
    for file in TEXTS:
        if file in saved.sums and (match := _PATH.search(saved.path(file).read_text(encoding="utf-8"))):
            raise CheckpointError(
                f"{saved.folder / file} holds the absolute path {match[0]}.",
                "Train with relative paths: others have no such folder.",
            )


def card_of(name: str, root: Path = ROOT) -> str:
    """The model card with its tables."""
    file = root / "docs" / "cards" / f"{name}.md"
    if not file.is_file():
        raise InputError(
            f"There is no card {file}.", "Write it first: data, licence, evaluation, limitations."
        )
    text = file.read_text(encoding="utf-8")
    if TABLES not in text:  # its figures are in the checkpoint's config
        return text
    grids = tables(name, root / "results")
    if not grids:
        raise InputError(
            f"No result in {root / 'results'} belongs to {name}.",
            f"Measure it first: listenwell evaluate annotators (or rankers) … --system {name} --keep results",
        )
    body = "\n".join(f"**{grid.title}**\n\n{grid.markdown()}" for grid in grids)
    notes = [
        f"{MARKS[known.kind]} {known.note}"
        for known in read_known(root / "results")
        if MARKS[known.kind] in body
    ]
    return text.replace(TABLES, "\n".join([body, *notes]))


def tables(name: str, folder: Path) -> list[Grid]:
    """The tables of a shipped checkpoint's own rows, without published ones."""
    endings = tuple(f": {known}," for known in {name, ROWS.get(name, name)})
    # A row's name may go on with the factors it was given.
    own = [
        result
        for result in read_results(folder)
        if any(ending in f"{result.system}," for ending in endings) and not _PART.search(result.system)
    ]
    marks = row_marks(folder)
    return [
        grid
        for task in dict.fromkeys(result.task for result in own)
        for grid in figure_grids(task, own, (), marks)
        if grid.title != GROUPS["other"]
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="the folder's name, and the card's")
    parser.add_argument(
        "run",
        type=Path,
        nargs="?",
        help="the checkpoint's folder; by default the shipped one, for a new card",
    )
    options = parser.parse_args()
    shipped = ROOT / "listenwell" / "pretrained" / options.name
    try:
        print(f"shipped: {ship(options.name, options.run or shipped).relative_to(ROOT)}")
    except ListenwellError as error:
        sys.exit(str(error))
