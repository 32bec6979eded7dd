"""Train the crisis head: python -m listenwell.safety.train FOLDER

Softmax regression with an L2 penalty, the whole set in every step of Adam (Kingma and Ba 2015). The
sentences are ours, so the weights may be used as freely as the code.
"""

import argparse
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from listenwell.checkpoint import writing
from listenwell.files import sha256
from listenwell.safety.crisis import Detector
from listenwell.safety.head import KIND, LABELS, Features, Head, HeadConfig, softmax
from listenwell.safety.measure import read_list, report, table, written
from listenwell.safety.normalizer import normalize
from listenwell.safety.teaching import SENTENCES, taught
from listenwell.serialization import Record, indented

PLACE = "{{figures}}"


@dataclass(frozen=True)
class Lesson(Record):
    """How the head is trained."""

    each: int = 12
    """Wordings of a line at most."""
    steps: int = 150
    rate: float = 0.2
    penalty: float = 3e-7
    """Of the squared weights."""
    calm: float = 2.0
    """How much a sentence without crisis weighs against one with: most of what people say is none."""
    seed: int = 1


def train(lesson: Lesson, examples: list[tuple[str, str]], config: HeadConfig | None = None) -> Head:
    """A head that learned these labelled texts."""
    config = config or HeadConfig()
    features = Features(config)
    inputs = np.zeros((len(examples), config.buckets), np.float32)
    targets = np.zeros((len(examples), len(config.labels)), np.float32)
    for row, (label, text) in enumerate(examples):
        found = features.of(normalize(text).text)
        inputs[row, found] = 1 / np.sqrt(max(1, len(found)))
        targets[row, config.labels.index(label)] = 1
    importance = np.where(targets[:, :1] > 0, lesson.calm, 1).astype(np.float32)
    importance /= importance.sum()
    return Head(config, descend(inputs, targets, importance, lesson))


def descend(inputs: np.ndarray, targets: np.ndarray, importance: np.ndarray, lesson: Lesson) -> np.ndarray:
    """Weights (buckets + 1, labels), the bias last, with the smallest penalized cross-entropy, nearly."""
    weights = np.zeros((inputs.shape[1] + 1, targets.shape[1]), np.float32)
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, lesson.steps + 1):
        error = (softmax(inputs @ weights[:-1] + weights[-1]) - targets) * importance
        slope = np.vstack([inputs.T @ error + lesson.penalty * weights[:-1], error.sum(axis=0)])
        first += 0.1 * (slope - first)
        second += 0.001 * (slope**2 - second)
        lr_multiplier = lesson.rate * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        weights -= lr_multiplier * first / (np.sqrt(second) + 1e-8)
    return weights


def main() -> None:
    """Train and write a checkpoint, with what it was made of and how well it does beside it."""
    parser = argparse.ArgumentParser(prog="python -m listenwell.safety.train", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the checkpoint goes")
    parser.add_argument("--card", type=Path, help="a model card; its line {{figures}} becomes a table")
    parser.add_argument(
        "--list", type=Path, help="labelled sentences to measure on, with all of the detector"
    )
    given = parser.parse_args()
    lesson = Lesson()
    examples = list(taught(lesson.each, lesson.seed))
    head = train(lesson, examples)
    figures = report(Detector(head), read_list(given.list)) if given.list else None
    with writing(given.folder, KIND) as folder:
        head.save(folder)
        recipe = asdict(lesson) | {
            "sentences": {"sha256": sha256(SENTENCES)}
            | {label: sum(own == label for own, _ in examples) for label in LABELS}
        }
        (folder / "recipe.json").write_text(indented(recipe), encoding="utf-8")
        if figures:
            (folder / "metrics.json").write_text(written(figures) + "\n", encoding="utf-8")
        if given.card:
            card = given.card.read_text(encoding="utf-8").replace(PLACE, table(figures) if figures else "")
            (folder / "README.md").write_text(card, encoding="utf-8")


if __name__ == "__main__":
    main()
