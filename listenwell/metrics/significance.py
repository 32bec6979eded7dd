"""Significance of differences and intervals of shares: sign test, paired bootstrap, Wilson interval."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from listenwell.errors import InputError
from listenwell.metrics.checks import check_pairs, library

_DRAWS_AT_ONCE = 1 << 20


class Difference(NamedTuple):
    """The result of a paired bootstrap."""

    difference: float
    """Mean of ours minus mean of theirs."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the 95 % interval."""
    p: float
    """Two-sided."""


def sign_test(wins: int, losses: int) -> float:
    """The exact two-sided p of a sign test, by scipy; ties are left out (as in CoMAE's Table 3)."""
    if wins < 0 or losses < 0:
        raise InputError(f"{wins} wins and {losses} losses cannot be.", "Give counts of pairs.")
    if wins + losses == 0:
        return 1.0
    test = library("scipy.stats", "scipy", "The sign test").binomtest
    return float(test(wins, wins + losses, 0.5).pvalue)


def wilson_interval(hits: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """The interval of a share of `count` items (Wilson 1927), with 95 % by default; unlike the normal
    approximation it is right for shares near 0 and 1."""
    if not 0 <= hits <= count or count < 1:
        raise InputError(f"{hits} of {count} is no share.", "Give hits from 0 to the count.")
    share, square = hits / count, z * z / count
    middle = (share + square / 2) / (1 + square)
    half = z * math.sqrt(share * (1 - share) / count + square / (4 * count)) / (1 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


def paired_bootstrap(
    ours: Sequence[float], theirs: Sequence[float], seed: int, samples: int = 10_000
) -> Difference:
    """The difference of two means on the same items, its 95 % interval and p (Koehn 2004).

    Items are drawn with replacement, both systems' values together. The interval holds the middle 95 % of
    the drawn differences; p is twice the share of draws on the rarer side of zero, draws at zero on both,
    and never below 2 / (samples + 1), as a finite number of draws cannot show less.
    """
    check_pairs(ours, theirs, "values of the two systems")
    if samples < 1:
        raise InputError(f"There are {samples} samples.", "Give 1 or more; 10000 is usual.")
    gains = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    if not np.all(np.isfinite(gains)):
        raise InputError("A value is not a finite number.", "Leave out or mend the item for both systems.")
    random = np.random.default_rng(seed)
    step = max(1, _DRAWS_AT_ONCE // len(gains))
    means = np.concatenate(
        [
            gains[random.integers(len(gains), size=(min(step, samples - start), len(gains)))].mean(axis=1)
            for start in range(0, samples, step)
        ]
    )
    low, high = np.quantile(means, [0.025, 0.975])
    rarer = min(np.sum(means <= 0), np.sum(means >= 0))
    p = min(1.0, 2 * (1 + int(rarer)) / (1 + samples))
    return Difference(float(gains.mean()), float(low), float(high), p)
