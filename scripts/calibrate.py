"""Refit the temperatures of a trained classifier on validation, and measure it there; the weights stay.

python scripts/calibrate.py RUN/best OUT

Needed where a classifier's input has changed after training, such as how long texts are truncated.
"""

import argparse
import shutil
from dataclasses import replace
from pathlib import Path

import torch

from listenwell.annotators.config import KIND, ClassifierConfig
from listenwell.checkpoint import open_checkpoint, writing
from listenwell.recipe import read_recipe
from listenwell.runtime.names import ADAPTER, ADAPTER_CONFIG, HEAD_FILE, WHOLE
from listenwell.serialization import dumps
from listenwell.training.classifier import ClassifierTask
from listenwell.training.recipe import TrainRecipe
from listenwell.training.task_configs import ClassifierTaskConfig

KEPT = (ADAPTER, ADAPTER_CONFIG, HEAD_FILE, WHOLE, "recipe.yaml")
"""What stays, byte by byte; a card and results belong to the old temperatures."""


def calibrate(run: Path, out: Path) -> dict[str, float]:
    """Write the classifier with new temperatures; returns its metrics on validation."""
    saved = open_checkpoint(run, KIND)
    recipe = read_recipe(TrainRecipe, saved.path("recipe.yaml"))
    trained = recipe.settings(ClassifierTaskConfig).classifier
    plain = ClassifierTaskConfig(replace(trained, teachers=(), start=None, only=()))
    without = replace(recipe, task=plain)
    task = ClassifierTask.prepare(without, torch.device("cpu"))
    task.load(run)
    figures = task.measure(recipe.data.valid)
    old = ClassifierConfig.from_dict(saved.config())
    config = replace(old, temperatures=task.model.config.temperatures)
    with writing(out, KIND) as folder:
        for file in KEPT:
            if file in saved.sums:
                shutil.copyfile(run / file, folder / file)
        (folder / "config.json").write_text(dumps(config.to_dict()) + "\n", encoding="utf-8")
        (folder / "metrics.json").write_text(dumps({"valid": figures}), encoding="utf-8")
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="the trained checkpoint")
    parser.add_argument("out", type=Path, help="the folder to write")
    arguments = parser.parse_args()
    print(dumps(calibrate(arguments.run, arguments.out)))
