"""Accuracy, precision, recall, F1, top-k and calibration of a classifier; realization of a plan.

All in percent, as CoMAE's Tables 1 and 5 print them.
"""

from collections.abc import Collection, Sequence

import numpy as np

from listenwell.errors import InputError, unknown_name
from listenwell.metrics.checks import check_pairs, library
from listenwell.metrics.ranking import rank_of_truth, recall_at


def accuracy(truth: Sequence[str], predicted: Sequence[str]) -> float:
    """The share of right predictions, in percent."""
    check_pairs(truth, predicted, "labels")
    return 100 * sum(map(str.__eq__, truth, predicted)) / len(truth)


def classification_metrics(
    truth: Sequence[str], predicted: Sequence[str], labels: Sequence[str]
) -> dict[str, float]:
    """Accuracy, and macro and weighted precision, recall and F1, in percent (by scikit-learn).

    Macro is the plain mean over `labels`; weighted is by how often a label is the truth. A ratio without a
    denominator, such as the precision of a label that is never predicted, is 0: a label that occurs on
    neither side therefore pulls the macro mean down. Macro F1 is the mean of the labels' F1.
    Any other label than `labels` is an error.
    """
    check_pairs(truth, predicted, "labels")
    if len(set(labels)) != len(labels):
        raise InputError("A label stands twice in the list of labels.", "Give each label once.")
    if unknown := [label for label in (*truth, *predicted) if label not in labels]:
        raise unknown_name("label", unknown[0], labels)
    sklearn = library("sklearn.metrics", "scikit-learn", "Precision and recall")
    scores = sklearn.precision_recall_fscore_support
    metrics = {"accuracy": accuracy(truth, predicted)}
    for average in ("macro", "weighted"):
        averages = scores(list(truth), list(predicted), labels=list(labels), average=average, zero_division=0)
        for name, value in zip(("precision", "recall", "f1"), averages[:3], strict=True):
            metrics[f"{average}_{name}"] = 100 * float(value)
    return metrics


def label_set_metrics(truth: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Macro and micro F1 where an item can have several labels, in percent (by scikit-learn).

    Both arrays are (n, labels) of true and false.
    """
    f1 = library("sklearn.metrics", "scikit-learn", "F1 of label sets").f1_score
    return {
        f"{average}_f1": 100 * float(f1(truth, predicted, average=average, zero_division=0))
        for average in ("macro", "micro")
    }


def top_k_accuracy(truth: np.ndarray, probabilities: np.ndarray, k: int) -> float:
    """The share of items, in percent, whose true class is among the k likeliest; ties count against us.

    Args:
        truth: (n,) class numbers.
        probabilities: (n, classes), or any scores in the same order.
        k: how many guesses.
    """
    return recall_at(rank_of_truth(probabilities, truth), k)


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
    check_pairs(probabilities, truth, "probabilities and truths")
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


def realization(planned: Sequence[str | Collection[str]], shown: Sequence[str | Collection[str]]) -> float:
    """The share of replies, in percent, that show the factor they were planned with (CoMAE §6.5, Table 5).

    Args:
        planned: the factor each reply was generated under: act, expressed emotion or set of mechanisms.
        shown: what a classifier identifies in the reply. Sets are equal in any order, and as a whole: one
            mechanism too many or too few is a miss.
    """
    check_pairs(planned, shown, "factors")
    same = (_as_set(plan) == _as_set(fact) for plan, fact in zip(planned, shown, strict=True))
    return 100 * sum(same) / len(planned)


def _as_set(factor: str | Collection[str]) -> set[str]:
    return {factor} if isinstance(factor, str) else set(factor)
