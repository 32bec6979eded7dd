"""Teachers' probabilities, mixed into the targets of the training texts (Hinton et al. 2015)."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from listenwell.annotators.config import ClassifierConfig, probabilities
from listenwell.annotators.inference import classify
from listenwell.annotators.model import load_classifier
from listenwell.annotators.sources import Labelled
from listenwell.annotators.views import encode_views
from listenwell.corpora.base import hash_bucket
from listenwell.recipe import read_recipe
from listenwell.training.classifier_batch import ClassifierExample
from listenwell.training.recipe import TrainRecipe
from listenwell.training.task_configs import ClassifierTaskConfig


def with_teachers(
    texts: Sequence[tuple[Labelled, ClassifierExample]],
    recipe: TrainRecipe,
    learning: Collection[str],
    device: torch.device,
) -> list[ClassifierExample]:
    """The examples with targets between their labels and the teachers' probabilities.

    A teacher that was trained without a part of the data is used for that part only.
    """
    settings = recipe.settings(ClassifierTaskConfig).classifier
    predictions: list[dict[str, list[np.ndarray]]] = [{} for _ in texts]
    for folder in settings.teachers:
        taught = read_recipe(TrainRecipe, folder / "recipe.yaml").settings(ClassifierTaskConfig)
        left_out = taught.classifier.leave_out
        indices = [
            index
            for index, (item, _) in enumerate(texts)
            if left_out is None or is_left_out(item.group, left_out)
        ]
        classifier, vocabulary = load_classifier(folder, _weights_of(folder, recipe))
        inputs = encode_views(
            vocabulary, [texts[index][0].view for index in indices], classifier.config.limit
        )
        outputs = classify(classifier.to(device), inputs)
        for head in set(classifier.config.heads) & set(learning):
            rows = probabilities(outputs.logits(head), head, classifier.config.temperature(head))
            for index, row in zip(indices, rows.astype(np.float32), strict=True):
                if head in texts[index][1].targets or settings.spread:
                    predictions[index].setdefault(head, []).append(row)
    return [
        replace(example, targets=_mixed(example, predicted, settings.teacher_share))
        for (_, example), predicted in zip(texts, predictions, strict=True)
    ]


def _mixed(
    example: ClassifierExample, predicted: dict[str, list[np.ndarray]], share: float
) -> dict[str, np.ndarray]:
    """The mean of the teachers' predictions, as `share` of the target where a label is known."""
    targets = dict(example.targets)
    for head, rows in predicted.items():
        mean: np.ndarray = np.mean(rows, axis=0)
        known = example.targets.get(head)
        targets[head] = mean if known is None else (1 - share) * known + share * mean
    return targets


def _weights_of(teacher: Path, recipe: TrainRecipe) -> Path | None:
    """The user's own base weights, where a teacher has the same base."""
    config = ClassifierConfig.from_json((teacher / "config.json").read_text(encoding="utf-8"))
    return recipe.weights if config.base == recipe.base else None


def is_left_out(group: str, part: tuple[int, int]) -> bool:
    """Whether a group falls into part `part[0]` of `part[1]`, by a hash of its name."""
    number, parts = part
    return hash_bucket(group, parts) == number
