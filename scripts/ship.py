"""Put a trained checkpoint under listenwell/pretrained, with its model card.

python scripts/ship.py annotators RUN/best      (card: docs/cards/annotators.md)

The card's line `{{figures}}` becomes a table of what results/ holds for the checkpoint, so that no figure is
typed by hand. Weights are committed once, when they are final: history keeps every copy.
"""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from listenwell.checkpoint import MANIFEST, open_checkpoint, writing
from listenwell.evaluation.ledger import Result
from listenwell.evaluation.markdown import Grid
from listenwell.evaluation.tables import figure_grids, read_results

ROOT = Path(__file__).resolve().parents[1]
CARD = "README.md"


def ship(name: str, run: Path, root: Path = ROOT) -> Path:
    """Copy a checkpoint and its card; returns the new folder."""
    saved = open_checkpoint(run)
    card = (root / "docs" / "cards" / f"{name}.md").read_text(encoding="utf-8")
    grids = figures(name, read_results(root / "results"))
    tables = "\n".join(f"**{grid.title}**\n\n{grid.markdown()}" for grid in grids)
    target = root / "listenwell" / "pretrained" / name
    with writing(target, saved.kind) as folder:
        for file in saved.sums:
            if file not in (CARD, MANIFEST):
                shutil.copyfile(run / file, folder / file)
        (folder / CARD).write_text(card.replace("{{figures}}", tables), encoding="utf-8")
    return target


def figures(name: str, results: Sequence[Result]) -> list[Grid]:
    """The tables of the shipped rows alone, without the papers'."""
    own = [result for result in results if result.system.endswith(f": {name}")]
    return [grid for task in dict.fromkeys(r.task for r in own) for grid in figure_grids(task, own, ())]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="the folder's name, and the card's")
    parser.add_argument("run", type=Path, help="the checkpoint's folder")
    given = parser.parse_args()
    print(f"shipped: {ship(given.name, given.run).relative_to(ROOT)}")
