"""Fit the temperatures of a trained ear anew on validation, and measure it there; the weights stay.

python scripts/calibrate.py RUN/best OUT

Needed where what an ear reads was changed after it was trained, such as how long texts are cut.
"""

import argparse
import shutil
from dataclasses import replace
from pathlib import Path

import torch

from listenwell.annotators.model import KIND, save_ear
from listenwell.checkpoint import open_checkpoint, writing
from listenwell.recipe import read_recipe
from listenwell.records import dumps
from listenwell.training.ears import EarTask, settings_of
from listenwell.training.recipe import TrainRecipe


def calibrate(run: Path, out: Path) -> dict[str, float]:
    """Write the ear with new temperatures; returns its figures on validation."""
    saved = open_checkpoint(run, KIND)
    recipe = read_recipe(TrainRecipe, saved.path("recipe.yaml"))
    without = replace(recipe, ear=replace(settings_of(recipe), teachers=(), start=None, only=()))
    task = EarTask.prepare(without, torch.device("cpu"))
    task.load(run)
    figures = task.measure(recipe.data.valid)
    with writing(out, KIND) as folder:
        save_ear(task.model, folder)
        shutil.copyfile(run / "recipe.yaml", folder / "recipe.yaml")
        (folder / "metrics.json").write_text(dumps({"valid": figures}), encoding="utf-8")
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="the trained checkpoint")
    parser.add_argument("out", type=Path, help="the folder to write")
    given = parser.parse_args()
    print(dumps(calibrate(given.run, given.out)))
