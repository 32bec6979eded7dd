import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from listenwell.errors import InputError
from listenwell.metrics import greedy_matching, sentence_similarity

EAST, NORTH, NORTH_EAST, NOWHERE = [2.0, 0.0], [0.0, 3.0], [1.0, 1.0], [0.0, 0.0]
vectors = arrays(np.float64, st.tuples(st.integers(1, 5), st.just(3)), elements=st.floats(-9, 9))


def test_greedy_matching_worked_by_hand():
    # East finds east (1), north finds at best north-east (cos 45°); back: east 1, north-east cos 45°.
    diagonal = math.cos(math.pi / 4)
    pair = np.array([EAST, NORTH]), np.array([EAST, NORTH_EAST])
    assert greedy_matching([pair[0]], [pair[1]]) == pytest.approx((1 + diagonal) / 2)
    # Two tokens against one: forth (1 + 0) / 2, back 1; with the pair above, the mean of both.
    assert greedy_matching([np.array([EAST, NORTH])], [np.array([EAST])]) == pytest.approx(0.75)
    assert greedy_matching([pair[0], np.array([EAST, NORTH])], [pair[1], np.array([EAST])]) == pytest.approx(
        ((1 + diagonal) / 2 + 0.75) / 2
    )


def test_sentence_similarity_worked_by_hand():
    replies, references = np.array([EAST, EAST, EAST]), np.array([EAST, NORTH, NORTH_EAST])
    assert sentence_similarity(replies, references) == pytest.approx((1 + 0 + math.cos(math.pi / 4)) / 3)


def test_zero_vectors_and_empty_replies_score_nothing():
    assert sentence_similarity(np.array([NOWHERE]), np.array([EAST])) == 0
    assert greedy_matching([np.array([NOWHERE])], [np.array([EAST])]) == 0
    assert greedy_matching([np.zeros((0, 2))], [np.array([EAST])]) == 0
    assert sentence_similarity(np.array([[1e-200, 0]]), np.array([EAST])) == pytest.approx(1)


@given(vectors, vectors)
def test_greedy_matching_is_symmetric_and_blind_to_length(first, second):
    score = greedy_matching([first], [second])
    assert -1 - 1e-9 <= score <= 1 + 1e-9
    assert score == pytest.approx(greedy_matching([second], [first]))
    assert score == pytest.approx(greedy_matching([4 * first], [second]))


@given(vectors)
def test_a_reply_is_like_itself(own):
    assert sentence_similarity(own, own) == pytest.approx(np.mean(np.any(own != 0, axis=1)))


def test_vectors_of_two_models_are_refused():
    with pytest.raises(InputError, match="cannot be compared"):
        sentence_similarity(np.zeros((1, 2)), np.zeros((1, 3)))
    with pytest.raises(InputError, match="cannot be compared"):
        greedy_matching([np.zeros((1, 2))], [np.zeros((1, 3))])
    with pytest.raises(InputError, match="do not pair up"):
        greedy_matching([np.zeros((1, 2))], [])
