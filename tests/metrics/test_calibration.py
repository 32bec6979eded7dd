import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.errors import InputError
from listenwell.metrics import expected_calibration_error, label_set_metrics

SURE = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
TRUTH = np.array([0, 0, 0])  # right, wrong, right


def test_worked_by_hand_in_one_bin_and_in_three():
    # Half of the bins are empty; 0.9, 0.8 and 0.6 are right two times of three: |2/3 − 2.3/3| = 0.1.
    assert expected_calibration_error(SURE, TRUTH, bins=2) == pytest.approx(10)
    # Alone in their bins the gaps are 0.1, 0.8 and 0.4.
    assert expected_calibration_error(SURE, TRUTH, bins=20) == pytest.approx(130 / 3)


def test_gaps_of_one_bin_cancel_and_those_of_two_do_not():
    # Two of 0.9 and 0.95, one right: |0.5 − 0.925|; ten of 0.55, five right: |0.5 − 0.55|.
    sure = np.array([[0.9, 0.1], [0.95, 0.05]] + [[0.55, 0.45]] * 10)
    truth = np.array([0, 1] + [0, 1] * 5)
    assert expected_calibration_error(sure, truth, bins=5) == pytest.approx(
        100 * (2 * 0.425 + 10 * 0.05) / 12
    )


def test_each_of_several_labels_counts_by_itself():
    # In bins of a tenth: 0.25 twice and it never holds, 0.75 that holds, 0.95 that does not.
    sure = np.array([[0.25, 0.75], [0.25, 0.95]])
    truth = np.array([[0, 1], [0, 0]])
    assert expected_calibration_error(sure, truth, bins=10, several=True) == pytest.approx(
        100 * (2 * 0.25 + 0.25 + 0.95) / 4
    )


def test_who_is_always_right_and_sure_has_no_error():
    assert expected_calibration_error(np.eye(3), np.arange(3)) == 0
    assert expected_calibration_error(np.eye(3), np.eye(3), several=True) == 0
    assert expected_calibration_error(np.eye(3), np.array([1, 2, 0])) == 100


@given(st.lists(st.floats(0, 1), min_size=1), st.integers(1, 20))
def test_it_is_a_share_whatever_the_bins(shares, bins):
    sure = np.array([[probability, 1 - probability] for probability in shares])
    error = expected_calibration_error(sure, np.zeros(len(shares), int), bins)
    assert 0 <= error <= 100
    gap = abs(np.mean(sure.argmax(axis=1) == 0) - sure.max(axis=1).mean())
    assert error >= 100 * gap - 1e-6  # bins can only part what cancelled


def test_what_does_not_pair_up_is_an_error():
    with pytest.raises(InputError, match="do not pair up: 3 and 2"):
        expected_calibration_error(SURE, TRUTH[:2])
    with pytest.raises(InputError, match="There are no"):
        expected_calibration_error(SURE[:0], TRUTH[:0])


def test_label_sets_worked_by_hand():
    # The first label is error once of two times (F1 2/3), the second once of one (F1 1); 2 of 3 in all.
    truth = np.array([[1, 0], [1, 1], [0, 0]]) > 0
    answers = np.array([[1, 0], [0, 1], [0, 0]]) > 0
    assert label_set_metrics(truth, answers) == pytest.approx(
        {"macro_f1": 100 * (2 / 3 + 1) / 2, "micro_f1": 80}
    )
    assert label_set_metrics(truth, truth) == {"macro_f1": 100, "micro_f1": 100}
    # A label that nobody has and nobody gives counts as zero.
    wide = np.concatenate([truth, np.zeros((3, 1), bool)], axis=1)
    assert label_set_metrics(wide, wide)["macro_f1"] == pytest.approx(200 / 3)
