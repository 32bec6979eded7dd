"""Small products of matrices between two runs of a model."""

import numpy as np

FEW = 4_000_000
"""Multiplications that take less time on one core than it takes to wake others: a millisecond or so."""


def product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """first @ second, for matrices or stacks of them.

    Small ones on this thread alone. The threads of numpy's own library would help little, and then wait for
    more work for some 20 ms without leaving their cores, which the next run of a model needs.
    """
    found: np.ndarray
    if first.size * second.shape[-1] < FEW:
        found = np.einsum("...ij,...jk->...ik", first, second)
    else:
        found = first @ second
    return found
