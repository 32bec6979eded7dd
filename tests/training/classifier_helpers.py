"""Classifiers that learn from the sample corpora in a second."""

import torch

from listenwell import checkpoint
from listenwell.annotators.heads import HEADS
from listenwell.annotators.model import KIND, save_classifier, with_temperatures
from listenwell.recipe import write_recipe
from listenwell.training.batching import Epoch
from listenwell.training.classifier import ClassifierTask
from listenwell.training.recipe import BatchRecipe, DataRecipe, OptimizerRecipe, TrainRecipe
from listenwell.training.task_configs import ClassifierRecipe, ClassifierTaskConfig
from tests.tiny import ENCODER, sure_ear
from tests.training.helpers import with_changes

CPU = torch.device("cpu")
ACT_TEXTS = 10


def recipe_of(output, *heads, changes=(), **classifier):
    settings = ClassifierRecipe(heads or ("act",), **({"limit": 64, "dropout": 0.0} | classifier))
    recipe = TrainRecipe(
        output=output,
        model="classifier",
        base=ENCODER,
        epochs=4,
        patience=99,
        validate_every=1,
        metric="mean_nll",
        data=DataRecipe(test="test"),
        batches=BatchRecipe("packed", 128, 64),
        optimizer=OptimizerRecipe(learning_rate=3e-2, weight_decay=0.0),
        task=ClassifierTaskConfig(settings),
    )
    return with_changes(recipe, **dict(changes))


def task_of(tmp_path, *heads, **given):
    return ClassifierTask.prepare(recipe_of(tmp_path / "run", *heads, **given), CPU)


def opinions(task, **scores):
    """Let heads think the same of every text: label scores by head, all others 0."""
    with torch.no_grad():
        for head, layer in task.model.heads.items():
            layer.weight.zero_()
            layer.bias.zero_()
            for label, score in scores.get(head, {}).items():
                layer.bias[HEADS[head].labels.index(label)] = score


def loss_of(task, batches, part_tokens=None):
    steps = list(Epoch(task.examples(), task.collate, batches, 3, 0).steps(part_tokens=part_tokens))
    assert sum(step.targets for step in steps) == len(task.examples())
    with torch.no_grad():
        return sum(float(task.loss_sum(batch)) for step in steps for batch in step.batches)


def teacher(folder, encoder, scores, temperature=1.0, **classifier):
    """A trained classifier that is sure of its scores."""
    one = sure_ear(encoder, scores)
    with_temperatures(one, dict.fromkeys(scores, temperature))
    with checkpoint.writing(folder, KIND) as place:
        save_classifier(one, place)
        write_recipe(recipe_of(folder, *scores, **classifier), place / "recipe.yaml")
    return folder
