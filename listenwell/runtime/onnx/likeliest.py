"""The highest of many scores, quickly: most of a vocabulary is never looked at one by one."""

from typing import TYPE_CHECKING

from listenwell.runtime.base import Likeliest

if TYPE_CHECKING:
    import numpy as np

_BLOCK = 64


def likeliest_of(logits: "np.ndarray", count: int) -> Likeliest:
    """What `base.likeliest_of` gives, several times as fast.

    The `count`-th highest of the maxima of blocks is a bound: at least `count` scores reach it, one in each
    of those blocks, and not many more do.

    Args:
        logits: (rows, vocabulary) float32.
        count: how many are wanted of each row.
    """
    import numpy as np

    rows, words = logits.shape
    count, blocks = min(count, words), words // _BLOCK
    tokens, scores = np.empty((rows, count), np.int64), np.empty((rows, count), np.float32)
    totals = np.empty(rows, np.float32)
    for row, given in enumerate(logits):
        highest = given.max()
        totals[row] = highest + np.log(np.exp(given - highest).sum(dtype=np.float64))
        likely = np.arange(words)
        if count < blocks:
            maxima = given[: blocks * _BLOCK].reshape(blocks, _BLOCK).max(axis=1)
            likely = np.flatnonzero(given >= np.partition(maxima, blocks - count)[blocks - count])
        # Stable: of equal scores the first number comes first.
        likely = likely[np.argsort(-given[likely], kind="stable")[:count]]
        tokens[row], scores[row] = likely, given[likely]
    return Likeliest(tokens, scores, totals)
