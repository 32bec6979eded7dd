"""One temperature a head, fitted on validation: probabilities that can be trusted (Guo et al. 2017)."""

import numpy as np

from listenwell.annotators.config import probabilities
from listenwell.annotators.heads import HEADS


def fit_temperature(logits: np.ndarray, targets: np.ndarray, head: str) -> float:
    """The temperature with the smallest negative log-likelihood.

    The likelihood is concave in 1/T, so a search between thirds finds its one top.

    Args:
        logits: (n, labels).
        targets: (n, labels), 1 at the true labels.
        head: whose they are.
    """
    low, high = np.log(0.05), np.log(20.0)
    for _ in range(40):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if negative_log_likelihood(logits, targets, head, float(np.exp(left))) < negative_log_likelihood(
            logits, targets, head, float(np.exp(right))
        ):
            high = right
        else:
            low = left
    return round(float(np.exp((low + high) / 2)), 4)


def negative_log_likelihood(logits: np.ndarray, targets: np.ndarray, head: str, temperature: float) -> float:
    """Mean over items, in nats; for heads with several labels the sum over labels."""
    clipped = np.clip(probabilities(logits, head, temperature), 1e-12, 1.0)
    total = (targets * np.log(clipped)).sum()
    if HEADS[head].several:
        total += ((1 - targets) * np.log(np.clip(1 - clipped, 1e-12, 1.0))).sum()
    return float(-total / len(targets))
