"""Put a trained checkpoint under listenwell/pretrained, with its model card.

python scripts/ship.py annotators RUN/best      (card: docs/cards/annotators.md)

The card's line `{{figures}}` becomes a table of what results/ holds for the checkpoint, so that no figure is
typed by hand. Weights are committed once, when they are final: history keeps every copy.
"""

import argparse
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from listenwell.checkpoint import MANIFEST, Checkpoint, open_checkpoint, writing
from listenwell.errors import CheckpointError, InputError, ListenwellError
from listenwell.evaluation.report.tables import figure_grids, read_results
from listenwell.results.markdown import Grid
from listenwell.results.store import Result

ROOT = Path(__file__).resolve().parents[1]
CARD = "README.md"
PLACE = "{{figures}}"
TEXTS = ("recipe.yaml", "config.json", "metrics.json", "result.json", "adapter_config.json")
"""The files in which a run may have written where it was made."""
_PATH = re.compile(
    r"""(?:^|(?<=[\s"'=:,(\[]))(?:file://|/\w|/\.\w|~[\w.-]*/|[A-Za-z]:\\|[A-Za-z]:/(?!/))[^\s"',\])]*""",
    re.MULTILINE,
)
"""A path from the root, the home folder or a drive; not an address, not a mark that stands alone."""


def ship(name: str, run: Path, root: Path = ROOT) -> Path:
    """Copy a checkpoint and its card; returns the new folder."""
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
    """Refuse a checkpoint that tells where on a machine it was made."""
    for file in TEXTS:
        if file in saved.sums and (found := _PATH.search(saved.path(file).read_text(encoding="utf-8"))):
            raise CheckpointError(
                f"{saved.folder / file} holds the absolute path {found[0]}.",
                "Train with paths that begin where the command is run: others have no such folder.",
            )


def card_of(name: str, root: Path = ROOT) -> str:
    """The model card with its figures put in."""
    file = root / "docs" / "cards" / f"{name}.md"
    if not file.is_file():
        raise InputError(f"There is no card {file}.", "Write it first: data, licence, figures, limits.")
    text = file.read_text(encoding="utf-8")
    if PLACE not in text:
        raise InputError(f"{file} has no line {PLACE}.", "Put it where the figures belong.")
    grids = figures(name, read_results(root / "results"))
    if not grids:
        raise InputError(
            f"No result in {root / 'results'} belongs to {name}.",
            f"Measure it first: listenwell evaluate annotators (or rankers) … --system {name} --keep results",
        )
    return text.replace(PLACE, "\n".join(f"**{grid.title}**\n\n{grid.markdown()}" for grid in grids))


def figures(name: str, results: Sequence[Result]) -> list[Grid]:
    """The tables of the shipped rows alone, without the papers'."""
    # A row's name may go on with whose factors it had.
    own = [result for result in results if f"{result.system},".partition(f": {name},")[1]]
    return [grid for task in dict.fromkeys(r.task for r in own) for grid in figure_grids(task, own, ())]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="the folder's name, and the card's")
    parser.add_argument("run", type=Path, help="the checkpoint's folder")
    given = parser.parse_args()
    try:
        print(f"shipped: {ship(given.name, given.run).relative_to(ROOT)}")
    except ListenwellError as error:
        sys.exit(str(error))
