"""Calibration: how well probabilities match accuracy."""

import numpy as np

from listenwell.errors import InputError


def expected_calibration_error(
    probabilities: np.ndarray, truth: np.ndarray, bins: int = 15, several: bool = False
) -> float:
    """The mean gap between confidence and accuracy over bins of like confidence, in percent.

    Guo et al. 2017, equation 3: Σ_b |B_b| / n · |accuracy(B_b) − confidence(B_b)|, with bins of equal width.

    Args:
        probabilities: (n, classes).
        truth: (n,) class indices; with `several`, (n, classes) of 0 and 1.
        bins: how many.
        several: each label of each item counts by itself, its probability being the confidence that it
            holds; otherwise only the likeliest label of an item counts.
    """
    if len(probabilities) == 0 or len(probabilities) != len(truth):
        raise InputError(
            f"{len(probabilities)} rows of probabilities and {len(truth)} truths.",
            "Give one of each an item.",
        )
    if several:
        confidence, right = probabilities.reshape(-1), truth.reshape(-1).astype(float)
    else:
        confidence = probabilities.max(axis=1)
        right = (probabilities.argmax(axis=1) == truth).astype(float)
    index = np.minimum((confidence * bins).astype(int), bins - 1)
    size = np.bincount(index, minlength=bins)
    gap = np.bincount(index, weights=right, minlength=bins) - np.bincount(index, confidence, minlength=bins)
    used = size > 0
    return 100 * float((size[used] * np.abs(gap[used] / size[used])).sum() / size.sum())
