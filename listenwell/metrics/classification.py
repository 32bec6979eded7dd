"""Accuracy, precision, recall, F1 and top-k of a classifier; realization of a plan.

All in percent, as CoMAE's Tables 1 and 5 print them.
"""

from collections.abc import Collection, Sequence

import numpy as np

from listenwell.errors import InputError, unknown_name
from listenwell.metrics.checks import check_pairs
from listenwell.metrics.libraries import library
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

    Args:
        truth: the right label of each item.
        predicted: the classifier's label of each item.
        labels: all labels there are; anything else on either side is an error.
    """
    _check_labels(truth, predicted, labels)
    scores = library(
        "sklearn.metrics", "scikit-learn", "Precision and recall"
    ).precision_recall_fscore_support
    metrics = {"accuracy": accuracy(truth, predicted)}
    for average in ("macro", "weighted"):
        averages = scores(list(truth), list(predicted), labels=list(labels), average=average, zero_division=0)
        for name, value in zip(("precision", "recall", "f1"), averages[:3], strict=True):
            metrics[f"{average}_{name}"] = 100 * float(value)
    return metrics


def label_set_metrics(truth: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Macro and micro F1 where an item can have several labels, in percent (by scikit-learn).

    Args:
        truth: (n, labels) of true and false.
        predicted: the same, of the classifier.
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


def realization(planned: Sequence[str | Collection[str]], shown: Sequence[str | Collection[str]]) -> float:
    """The share of replies, in percent, that show the factor they were planned with (CoMAE §6.5, Table 5).

    Args:
        planned: the factor each reply was generated under: an act, a tone, or the set of mechanisms.
        shown: what a classifier identifies in the reply. Sets are equal in any order, and as a whole: one
            mechanism too many or too few is a miss.
    """
    check_pairs(planned, shown, "factors")
    same = (_as_set(plan) == _as_set(fact) for plan, fact in zip(planned, shown, strict=True))
    return 100 * sum(same) / len(planned)


def _as_set(factor: str | Collection[str]) -> frozenset[str]:
    return frozenset([factor] if isinstance(factor, str) else factor)


def _check_labels(truth: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> None:
    check_pairs(truth, predicted, "labels")
    known = set(labels)
    if len(known) != len(labels):
        raise InputError("A label stands twice in the list of labels.", "Give each label once.")
    for label in (*truth, *predicted):
        if label not in known:
            raise unknown_name("label", label, labels)
