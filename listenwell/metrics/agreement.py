"""How far raters agree beyond chance agreement: Fleiss' kappa and Krippendorff's alpha."""

from typing import Literal, get_args

import numpy as np

from listenwell.errors import InputError, unknown_name
from listenwell.metrics.checks import check_some

Level = Literal["nominal", "ordinal", "interval"]


def fleiss_kappa(counts: np.ndarray) -> float:
    """Fleiss' kappa (Fleiss 1971): 1 is perfect agreement, 0 what chance gives.

    NaN where every rating is the same category: chance then agrees always, and there is nothing to explain.

    Args:
        counts: (items, categories), how many raters put the item into the category. Every item has the
            same number of raters, 2 or more.
    """
    counts = np.asarray(counts, dtype=np.float64)
    check_some(counts, "items")
    raters = counts.sum(axis=-1)
    if counts.ndim != 2 or counts.min() < 0 or np.any(raters != raters[0]) or raters[0] < 2:
        raise InputError(
            "Fleiss' kappa needs the same number of raters, at least 2, for every item.",
            "Leave out other items, or use krippendorff_alpha, which allows missing ratings.",
        )
    pairs_agreeing = (counts * (counts - 1)).sum(axis=1) / (raters * (raters - 1))
    observed = float(pairs_agreeing.mean())
    expected = float(np.square(counts.sum(axis=0) / counts.sum()).sum())
    return (observed - expected) / (1 - expected) if expected < 1 else float("nan")


def krippendorff_alpha(ratings: np.ndarray, level: Level = "nominal") -> float:
    """Krippendorff's alpha (Krippendorff 2011): 1 is perfect agreement, 0 what chance gives.

    An item with fewer than two ratings says nothing about agreement and is left out. NaN where all ratings
    are alike.

    Args:
        ratings: (raters, items), NaN where a rater did not rate.
        level: what a difference is: of any size (nominal), in ranks (ordinal), or in units (interval).
    """
    ratings = np.asarray(ratings, dtype=np.float64)
    if level not in get_args(Level):
        raise unknown_name("level", level, get_args(Level))
    if ratings.ndim != 2:
        raise InputError(f"Ratings have the shape {ratings.shape}.", "Give an array (raters, items).")
    values = np.unique(ratings[~np.isnan(ratings)])
    counts = (ratings.T[:, :, None] == values).sum(axis=1)  # (items, values)
    counts = counts[counts.sum(axis=1) >= 2].astype(np.float64)
    if not len(counts):
        raise InputError("No item has two ratings.", "Give items that two or more people rated.")
    per_item = counts.sum(axis=1)
    # Coincidences (values, values): ordered pairs of ratings of one item, each item weighing its raters.
    weighted = counts / (per_item - 1)[:, None]
    coincidences = weighted.T @ counts - np.diag(weighted.sum(axis=0))
    totals = coincidences.sum(axis=1)
    distances = _distances(values, totals, level)
    expected = float((np.outer(totals, totals) * distances).sum()) / (totals.sum() - 1)
    observed = float((coincidences * distances).sum())
    return 1 - observed / expected if expected > 0 else float("nan")


def _distances(values: np.ndarray, totals: np.ndarray, level: Level) -> np.ndarray:
    """Squared difference of each two values (values, values) at a level of measurement."""
    if level == "nominal":
        return 1 - np.eye(len(values))
    # In ranks, two values are as far apart as the ratings between them, their own by half.
    positions = {"interval": values, "ordinal": np.cumsum(totals) - totals / 2}[level]
    squares: np.ndarray = np.square(positions[:, None] - positions[None, :])
    return squares
