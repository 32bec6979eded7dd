"""Choosing one label where a few are far more frequent than the others.

The likeliest label of the reply to come is nearly always "questioning" or "acknowledging". Taking off a share
τ of the labels' log frequency, argmax_y log p(y|x) − τ log π(y), lets the rarer ones be chosen where the
context speaks for them (Menon et al. 2021, equation 9).
"""

from collections.abc import Iterable

import numpy as np

from listenwell.labels import LabelSet
from listenwell.metrics import classification_metrics

SHARES = tuple(round(0.05 * step, 2) for step in range(11))
"""Values of τ that are tried, from 0 to a half."""


def log_frequencies(labels: LabelSet, seen: Iterable[str]) -> np.ndarray:
    """log π of each label in the training data; one is added to every count."""
    counts = np.ones(len(labels))
    for label in seen:
        counts[labels.index(label)] += 1
    return np.asarray(np.log(counts / counts.sum()))


def choose(probabilities: np.ndarray, frequencies: np.ndarray, share: float) -> np.ndarray:
    """The number of the chosen label of each item.

    Args:
        probabilities: (n, labels), probabilities.
        frequencies: (labels,), `log_frequencies`.
        share: τ; 0 chooses the likeliest.
    """
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
