"""R@k, MRR and P@1,100: the rank of the true reply.

The task of PEC (Zhong et al. 2020, §5.2) and of EmpatheticDialogues (Rashkin et al. 2019, §4), which calls
R@1 among 100 candidates P@1,100. A score depends on the pool, so its name belongs beside it: "shuffled" and
"unshuffled" pools are made here, "given" candidates come with the data.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from listenwell.errors import InputError
from listenwell.metrics.checks import check_some


class Spread(NamedTuple):
    """A figure over several seeds."""

    mean: float
    spread: float
    """Sample standard deviation; NaN for a single value, which has none."""


def rank_of_truth(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The rank of each row's true reply, 1 the best. Ties count against us, and so does a score that is NaN.

    Args:
        scores: (n, c), the higher the better.
        truth: (n,), the column of the true reply in each row.
    """
    scores, truth = np.asarray(scores), np.asarray(truth)
    if scores.ndim != 2 or truth.shape != scores.shape[:1]:
        raise InputError(
            f"Scores of shape {scores.shape} and truths of shape {truth.shape} do not pair up.",
            "Give scores (n, c) and truths (n,).",
        )
    check_some(scores, "scores")
    if truth.min() < 0 or truth.max() >= scores.shape[1]:
        raise InputError(
            f"A true reply is outside the {scores.shape[1]} candidates.", "Number candidates from 0."
        )
    own = np.take_along_axis(scores, truth[:, None].astype(np.int64), axis=1)
    # Only what is surely below the truth is beaten; the truth itself, never below itself, makes the 1.
    ranks: np.ndarray = np.sum(~(scores < own), axis=1)
    return ranks


def recall_at(ranks: np.ndarray, k: int) -> float:
    """R@k in percent: the share of true replies among the first k."""
    check_some(ranks, "ranks")
    if k < 1:
        raise InputError(f"k is {k}.", "Give 1 or more.")
    return 100 * float(np.mean(np.asarray(ranks) <= k))


def mean_reciprocal_rank(ranks: np.ndarray) -> float:
    """MRR in percent (Voorhees 1999)."""
    check_some(ranks, "ranks")
    return 100 * float(np.mean(1 / np.asarray(ranks, dtype=np.float64)))


def ranking_metrics(ranks: np.ndarray) -> dict[str, float]:
    """R@1, R@10, R@50 and MRR in percent, as in PEC's Table 5; every true reply weighs the same."""
    recalls = {f"R@{k}": recall_at(ranks, k) for k in (1, 10, 50)}
    return recalls | {"MRR": mean_reciprocal_rank(ranks)}


def pools(count: int, size: int = 100, shuffled: bool = True, seed: int = 0) -> list[np.ndarray]:
    """Blocks of test replies that are each other's candidates, by their indices below `count`.

    A short last block is left out, since few candidates are easily beaten.

    Args:
        count: the number of test replies.
        size: the replies in a block.
        shuffled: blocks of random replies; otherwise of neighbours, among them those of the same dialogue,
            which are harder.
        seed: of the shuffle.
    """
    if size < 2 or count < size:
        raise InputError(
            f"{count} replies make no pool of {size}.", "Give more replies, or pools of fewer (2 at least)."
        )
    order = np.random.default_rng(seed).permutation(count) if shuffled else np.arange(count)
    return [order[start : start + size] for start in range(0, count - size + 1, size)]


def over_seeds(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation (n − 1) of one figure over several seeds."""
    check_some(values, "values")
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return Spread(float(np.mean(values)), spread)
