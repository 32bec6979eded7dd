import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from listenwell.errors import InputError
from listenwell.metrics import (
    mean_reciprocal_rank,
    over_seeds,
    pools,
    rank_of_truth,
    ranking_metrics,
    recall_at,
)


def test_ranks_worked_by_hand():
    scores = np.array([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1], [0.2, 0.3, 0.3]])
    # First of three; third of three; and a tie for the first place, which makes it second.
    assert rank_of_truth(scores, np.array([0, 2, 1])).tolist() == [1, 3, 2]


def test_a_model_that_says_nothing_is_last():
    assert rank_of_truth(np.zeros((2, 100)), np.array([0, 99])).tolist() == [100, 100]
    assert rank_of_truth(np.full((1, 100), np.nan), np.array([0])).tolist() == [100]


def test_nan_counts_against_us_on_either_side():
    scores = np.array([[np.nan, 0.5, 0.1], [0.9, np.nan, 0.1]])
    assert rank_of_truth(scores, np.array([0, 0])).tolist() == [3, 2]


def test_infinite_scores_are_ordinary():
    scores = np.array([[-np.inf, 0.0, np.inf]])
    assert [rank_of_truth(scores, np.array([true])).item() for true in range(3)] == [3, 2, 1]


def test_metrics_worked_by_hand():
    ranks = np.array([1, 2, 20, 100])
    # R@1 1 of 4, R@10 2 of 4, R@50 3 of 4; MRR (1 + 1/2 + 1/20 + 1/100) / 4 = 1.56 / 4.
    assert ranking_metrics(ranks) == pytest.approx({"R@1": 25, "R@10": 50, "R@50": 75, "MRR": 39})
    assert recall_at(ranks, 2) == 50 and recall_at(ranks, 100) == 100
    assert mean_reciprocal_rank(np.array([4])) == 25


@given(arrays(np.float64, (3, 8), elements=st.floats(-5, 5)), st.integers(0, 7))
def test_ranks_are_those_of_a_pessimistic_sort(scores, true):
    ranks = rank_of_truth(scores, np.full(3, true))
    for row, rank in zip(scores, ranks, strict=True):
        order = sorted(range(8), key=lambda column: (-row[column], column == true))
        assert rank == order.index(true) + 1


@given(st.integers(1, 500), st.integers(2, 60), st.booleans(), st.integers(0, 5))
def test_pools_hold_each_reply_once_and_a_short_last_one_is_left_out(count, size, shuffled, seed):
    if count < size:
        with pytest.raises(InputError, match="no pool"):
            pools(count, size, shuffled, seed)
        return
    blocks = pools(count, size, shuffled, seed)
    members = np.concatenate(blocks)
    assert len(set(members.tolist())) == len(members) == count // size * size
    assert members.min() >= 0 and members.max() < count
    assert all(len(block) == size for block in blocks)


def test_pools_by_default_and_by_name():
    assert [len(block) for block in pools(250)] == [100, 100]
    assert [block.tolist() for block in pools(5, 2, shuffled=False)] == [[0, 1], [2, 3]]
    assert not np.array_equal(pools(250, seed=1)[0], pools(250, seed=2)[0])
    np.testing.assert_array_equal(pools(250, seed=1)[0], pools(250, seed=1)[0])
    # Dropped replies are other ones with another seed, so none is always left out.
    assert set(np.concatenate(pools(250, seed=1)).tolist()) != set(
        np.concatenate(pools(250, seed=2)).tolist()
    )


def test_mean_and_spread_worked_by_hand():
    # Deviations −2, 0, 2: variance 8 / (3 − 1) = 4.
    assert over_seeds([50, 52, 54]) == (52, 2)
    assert over_seeds([50, 52, 54]).spread == 2
    assert math.isnan(over_seeds([50]).spread)


@pytest.mark.parametrize(
    ("scores", "truth"),
    [
        (np.zeros((2, 3)), np.array([0])),
        (np.zeros(3), np.array([0])),
        (np.zeros((1, 3)), np.array([3])),
        (np.zeros((1, 3)), np.array([-1])),
        (np.zeros((0, 3)), np.array([], dtype=int)),
    ],
)
def test_scores_and_truths_that_do_not_pair_up(scores, truth):
    with pytest.raises(InputError):
        rank_of_truth(scores, truth)


def test_there_is_no_place_before_the_first():
    with pytest.raises(InputError, match="k is 0"):
        recall_at(np.array([1]), 0)
