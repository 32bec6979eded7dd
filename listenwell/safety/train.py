"""Training of the crisis classifier (`listenwell safety train`).

Softmax regression with an L2 penalty, by full-batch Adam (Kingma and Ba 2015). The sentences are ours, so the
weights have the license of the code.
"""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import prod
from pathlib import Path

import numpy as np

from listenwell.checkpoint import writing
from listenwell.errors import InputError
from listenwell.files import sha256
from listenwell.safety.crisis import Detector
from listenwell.safety.head import KIND, LABELS, Features, Head, HeadConfig, softmax
from listenwell.safety.measure import as_json, read_list, report, table
from listenwell.safety.normalizer import normalize
from listenwell.serialization import Record, indented

SENTENCES = Path(__file__).with_name("sentences.txt")
"""Our own templates, with [one|other] alternatives."""
_ALTERNATIVES = re.compile(r"\[([^\[\]]*)\]")
PLACEHOLDER = "{{figures}}"


@dataclass(frozen=True)
class TrainConfig(Record):
    """Settings of the training."""

    each: int = 12
    """Maximum number of variants of a line."""
    steps: int = 150
    rate: float = 0.2
    penalty: float = 3e-7
    """L2 penalty."""
    calm: float = 2.0
    """Weight of a sentence without crisis: most messages have none."""
    seed: int = 1


def train(settings: TrainConfig, examples: list[tuple[str, str]], config: HeadConfig | None = None) -> Head:
    """Train a classifier on labelled texts."""
    config = config or HeadConfig()
    features = Features(config)
    inputs = np.zeros((len(examples), config.buckets), np.float32)
    targets = np.zeros((len(examples), len(config.labels)), np.float32)
    for row, (label, text) in enumerate(examples):
        indices = features.of(normalize(text).text)
        inputs[row, indices] = 1 / np.sqrt(max(1, len(indices)))
        targets[row, config.labels.index(label)] = 1
    importance = np.where(targets[:, :1] > 0, settings.calm, 1).astype(np.float32)
    importance /= importance.sum()
    return Head(config, descend(inputs, targets, importance, settings))


def descend(
    inputs: np.ndarray, targets: np.ndarray, importance: np.ndarray, settings: TrainConfig
) -> np.ndarray:
    """Weights (buckets + 1, labels), the bias last, that minimize the penalized cross-entropy."""
    weights = np.zeros((inputs.shape[1] + 1, targets.shape[1]), np.float32)
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, settings.steps + 1):
        error = (softmax(inputs @ weights[:-1] + weights[-1]) - targets) * importance
        slope = np.vstack([inputs.T @ error + settings.penalty * weights[:-1], error.sum(axis=0)])
        first += 0.1 * (slope - first)
        second += 0.001 * (slope**2 - second)
        rate = settings.rate * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        weights -= rate * first / (np.sqrt(second) + 1e-8)
    return weights


def write_checkpoint(target: Path, card: Path | None = None, sentences: Path | None = None) -> None:
    """Train the classifier and write a checkpoint with its recipe.

    Args:
        target: the folder of the checkpoint.
        card: a model card, in which PLACEHOLDER becomes a table of metrics.
        sentences: labelled sentences on which the whole detector is measured.
    """
    settings = TrainConfig()
    examples = list(training_examples(settings.each, settings.seed))
    head = train(settings, examples)
    figures = report(Detector(head), read_list(sentences)) if sentences else None
    with writing(target, KIND) as folder:
        head.save(folder)
        recipe = asdict(settings) | {
            "sentences": {"sha256": sha256(SENTENCES)}
            | {label: sum(own == label for own, _ in examples) for label in LABELS}
        }
        (folder / "recipe.json").write_text(indented(recipe), encoding="utf-8")
        if figures:
            (folder / "metrics.json").write_text(as_json(figures) + "\n", encoding="utf-8")
        if card:
            text = card.read_text(encoding="utf-8").replace(PLACEHOLDER, table(figures) if figures else "")
            (folder / "README.md").write_text(text, encoding="utf-8")


def training_examples(each: int, seed: int, file: Path = SENTENCES) -> Iterator[tuple[str, str]]:
    """Label and text of every example.

    Args:
        each: the maximum number of variants per line.
        seed: for drawing them.
        file: lines of sentences under lines "= label".
    """
    draw, label = random.Random(seed), ""
    for number, raw in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("= "):
            label = line[2:]
            continue
        if label not in LABELS:
            raise InputError(
                f"{file.name}:{number} is under the label {label!r}.", f"Known: {', '.join(LABELS)}."
            )
        yield from ((label, text) for text in variants(line, each, draw))


def variants(line: str, most: int, draw: random.Random) -> list[str]:
    """Up to `most` different variants of a line."""
    options = [group.split("|") for group in _ALTERNATIVES.findall(line)]
    counts = [len(group) for group in options]
    selections: Iterable[Sequence[str]] = product(*options)
    if (count := prod(counts)) > most:
        numbers = draw.sample(range(count), most)
        indices = zip(*np.unravel_index(numbers, counts, order="F"), strict=True)
        selections = [[group[index] for group, index in zip(options, row, strict=True)] for row in indices]
    return [" ".join(_filled(line, selected).split()) for selected in selections]


def _filled(line: str, selected: Sequence[str]) -> str:
    remaining = iter(selected)
    return _ALTERNATIVES.sub(lambda _: next(remaining), line)
