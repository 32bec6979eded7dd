"""Metrics of one head's predictions: accuracy, F1, and calibration."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from listenwell import metrics
from listenwell.annotators.config import probabilities as head_probabilities
from listenwell.annotators.heads import GIVEN_FROM, HEADS
from listenwell.labels import EMOTION_GROUPS, EMOTIONS, GROUP_OF_EMOTION, LEVELS


@dataclass(frozen=True)
class Answers:
    """One head's predictions for some texts."""

    head: str
    logits: np.ndarray  # (n, labels)
    truth: np.ndarray  # (n, labels), 1 at the true ones
    temperature: float

    @property
    def probabilities(self) -> np.ndarray:
        """Calibrated probabilities: (n, labels)."""
        return head_probabilities(self.logits, self.head, self.temperature)


def most_confused(answers: Answers, count: int = 8) -> str:
    """The pairs of true and predicted label that are confused most often, each with its number of texts."""
    head = HEADS[answers.head]
    if head.several or head.labels is LEVELS:
        return ""
    true, predicted = answers.truth.argmax(axis=1), answers.probabilities.argmax(axis=1)
    pairs = Counter((int(a), int(b)) for a, b in zip(true, predicted, strict=True) if a != b)
    ranked = sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0]))[:count]
    return ", ".join(f"{head.labels[a]} as {head.labels[b]} {times}" for (a, b), times in ranked)


def measure(answers: Answers) -> dict[str, float]:
    """The metrics of one question, by the names of the metric registry."""
    head, probabilities, truth = HEADS[answers.head], answers.probabilities, answers.truth
    uncalibrated = head_probabilities(answers.logits, answers.head, 1.0)
    if head.several:
        predicted = probabilities > GIVEN_FROM
        return {
            "exact_match": 100 * float((predicted == (truth > 0)).all(axis=1).mean()),
            **metrics.label_set_metrics(truth > 0, predicted),
            "ece": metrics.expected_calibration_error(probabilities, truth, several=True),
            "ece_uncalibrated": metrics.expected_calibration_error(uncalibrated, truth, several=True),
        }
    right = truth.argmax(axis=1)
    names = head.labels.labels
    scores = metrics.classification_metrics(
        [names[i] for i in right], [names[i] for i in probabilities.argmax(axis=1)], names
    )
    calibration = {
        "ece": metrics.expected_calibration_error(probabilities, right),
        "ece_uncalibrated": metrics.expected_calibration_error(uncalibrated, right),
    }
    if head.labels is LEVELS:
        return _yes_or_no(probabilities, right) | {
            "level_accuracy": scores["accuracy"],
            "level_macro_f1": scores["macro_f1"],
            **calibration,
        }
    if len(names) > 10:
        scores["top_5_accuracy"] = metrics.top_k_accuracy(right, probabilities, 5)
    if head.labels is EMOTIONS:
        scores["group_accuracy"] = _group_accuracy(probabilities, right)
    return scores | calibration


def _yes_or_no(probabilities: np.ndarray, right: np.ndarray) -> dict[str, float]:
    """Weak and strong merged (CoMAE §4.2)."""
    names = ("no", "yes")
    scores = metrics.classification_metrics(
        [names[int(level > 0)] for level in right],
        [names[int(probability < 0.5)] for probability in probabilities[:, 0]],
        names,
    )
    return {"accuracy": scores["accuracy"], "macro_f1": scores["macro_f1"]}


def _group_accuracy(probabilities: np.ndarray, right: np.ndarray) -> float:
    """Accuracy over the 16 groups; the probability of a group is the sum over its members."""
    group = np.array([EMOTION_GROUPS.index(GROUP_OF_EMOTION[name]) for name in EMOTIONS])
    group_probabilities = np.zeros((len(probabilities), len(EMOTION_GROUPS)))
    for column, number in enumerate(group):
        group_probabilities[:, number] += probabilities[:, column]
    return 100 * float((group_probabilities.argmax(axis=1) == group[right]).mean())
