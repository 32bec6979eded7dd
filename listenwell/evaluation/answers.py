"""The figures of one head's answers: how often it is right, and whether its probabilities can be trusted."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from listenwell import metrics
from listenwell.annotators.config import probabilities
from listenwell.annotators.heads import GIVEN_FROM, HEADS
from listenwell.labels import EMOTION_GROUPS, EMOTIONS, GROUP_OF_EMOTION, LEVELS


@dataclass(frozen=True)
class Answers:
    """One head's answers to some texts."""

    head: str
    logits: np.ndarray  # (n, labels)
    truth: np.ndarray  # (n, labels), 1 at the true ones
    temperature: float

    @property
    def found(self) -> np.ndarray:
        """Calibrated probabilities."""
        return probabilities(self.logits, self.head, self.temperature)


def most_confused(answers: Answers, count: int = 8) -> str:
    """The pairs of truth and answer that are mistaken most often, each with its number of texts."""
    head = HEADS[answers.head]
    if head.several or head.labels is LEVELS:
        return ""
    true, given = answers.truth.argmax(axis=1), answers.found.argmax(axis=1)
    pairs = Counter((int(a), int(b)) for a, b in zip(true, given, strict=True) if a != b)
    ranked = sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0]))[:count]
    return ", ".join(f"{head.labels[a]} as {head.labels[b]} {times}" for (a, b), times in ranked)


def measure(answers: Answers) -> dict[str, float]:
    """The figures of one question, by the names of `units.METRICS`."""
    head, found, truth = HEADS[answers.head], answers.found, answers.truth
    raw = probabilities(answers.logits, answers.head, 1.0)
    if head.several:
        given = found > GIVEN_FROM
        return {
            "exact_match": 100 * float((given == (truth > 0)).all(axis=1).mean()),
            **metrics.label_set_metrics(truth > 0, given),
            "ece": metrics.expected_calibration_error(found, truth, several=True),
            "ece_uncalibrated": metrics.expected_calibration_error(raw, truth, several=True),
        }
    right = truth.argmax(axis=1)
    names = head.labels.labels
    figures = metrics.classification_metrics(
        [names[i] for i in right], [names[i] for i in found.argmax(axis=1)], names
    )
    calibration = {
        "ece": metrics.expected_calibration_error(found, right),
        "ece_uncalibrated": metrics.expected_calibration_error(raw, right),
    }
    if head.labels is LEVELS:
        return _yes_or_no(found, right) | {
            "level_accuracy": figures["accuracy"],
            "level_macro_f1": figures["macro_f1"],
            **calibration,
        }
    if len(names) > 10:
        figures["top_5_accuracy"] = metrics.top_k_accuracy(right, found, 5)
    if head.labels is EMOTIONS:
        figures["group_accuracy"] = _group_accuracy(found, right)
    return figures | calibration


def _yes_or_no(found: np.ndarray, right: np.ndarray) -> dict[str, float]:
    """Weak and strong merged (CoMAE §4.2)."""
    names = ("no", "yes")
    figures = metrics.classification_metrics(
        [names[int(level > 0)] for level in right],
        [names[int(probability < 0.5)] for probability in found[:, 0]],
        names,
    )
    return {"accuracy": figures["accuracy"], "macro_f1": figures["macro_f1"]}


def _group_accuracy(found: np.ndarray, right: np.ndarray) -> float:
    """Right among the 16 groups; a group is as likely as its members together."""
    group = np.array([EMOTION_GROUPS.index(GROUP_OF_EMOTION[name]) for name in EMOTIONS])
    group_probabilities = np.zeros((len(found), len(EMOTION_GROUPS)))
    for place, number in enumerate(group):
        group_probabilities[:, number] += found[:, place]
    return 100 * float((group_probabilities.argmax(axis=1) == group[right]).mean())
