"""What is fitted on validation: a temperature a head (Guo et al. 2017), and how rare labels are chosen.

The likeliest label of the reply to come is nearly always "questioning" or "acknowledging". Taking off a share
τ of the labels' log frequency, argmax_y log p(y|x) − τ log π(y), lets the rarer ones be chosen where the
context speaks for them (Menon et al. 2021, equation 9).
"""

from collections.abc import Iterable

import numpy as np

from listenwell.annotators.config import probabilities as head_probabilities
from listenwell.annotators.heads import HEADS
from listenwell.labels import LabelSet
from listenwell.metrics import classification_metrics

SHARES = tuple(round(0.05 * step, 2) for step in range(11))
"""Values of τ that are tried, from 0 to a half."""


def fit_temperature(logits: np.ndarray, targets: np.ndarray, head: str) -> float:
    """The temperature with the smallest negative log-likelihood; `targets` is 1 at the true labels.

    The likelihood is concave in 1/T, so a search between thirds finds its one top.
    """

    def loss(log_temperature: float) -> float:
        return negative_log_likelihood(logits, targets, head, float(np.exp(log_temperature)))

    low, high = np.log(0.05), np.log(20.0)
    for _ in range(40):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if loss(left) < loss(right) else (left, high)
    return round(float(np.exp((low + high) / 2)), 4)


def negative_log_likelihood(logits: np.ndarray, targets: np.ndarray, head: str, temperature: float) -> float:
    """Mean over items, in nats; for heads with several labels the sum over labels."""
    clipped = np.clip(head_probabilities(logits, head, temperature), 1e-12, 1.0)
    total = (targets * np.log(clipped)).sum()
    if HEADS[head].several:
        total += ((1 - targets) * np.log(np.clip(1 - clipped, 1e-12, 1.0))).sum()
    return float(-total / len(targets))


def log_frequencies(labels: LabelSet, seen: Iterable[str]) -> np.ndarray:
    """log π of each label in the training data; one is added to every count."""
    counts = np.ones(len(labels))
    for label in seen:
        counts[labels.index(label)] += 1
    return np.asarray(np.log(counts / counts.sum()))


def choose(probabilities: np.ndarray, frequencies: np.ndarray, share: float) -> np.ndarray:
    """The index of each item's label, from `log_frequencies` and the share τ; 0 chooses the likeliest."""
    chosen: np.ndarray = (np.log(np.maximum(probabilities, 1e-12)) - share * frequencies).argmax(axis=1)
    return chosen


def fit_share(
    probabilities: np.ndarray, truth: np.ndarray, frequencies: np.ndarray, labels: LabelSet
) -> float:
    """The τ with the best weighted F1 on validation; the smallest where several are as good."""
    right = [labels[int(number)] for number in truth]

    def score(share: float) -> float:
        chosen = [labels[int(number)] for number in choose(probabilities, frequencies, share)]
        return classification_metrics(right, chosen, labels.labels)["weighted_f1"]

    return max(SHARES, key=lambda share: (score(share), -share))
