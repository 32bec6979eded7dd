import numpy as np
import pytest

from listenwell.annotators.calibration import choose, fit_share, log_frequencies
from listenwell.labels import LabelSet

LABELS = LabelSet.of("mood", "common rare odd")


def test_frequencies_by_hand():
    # One is added to each count: (3+1, 1+1, 0+1) of 7.
    found = np.exp(log_frequencies(LABELS, ["common", "rare", "common", "common"]))
    assert found == pytest.approx([4 / 7, 2 / 7, 1 / 7])


def test_the_likeliest_is_chosen_without_a_share_and_a_rare_one_with_it():
    frequencies = np.log([0.8, 0.1, 0.1])
    probabilities = np.array([[0.6, 0.3, 0.1], [0.9, 0.05, 0.05]])
    assert choose(probabilities, frequencies, 0.0).tolist() == [0, 0]
    # 0.6 / 0.8**0.5 = 0.671 stays below 0.3 / 0.1**0.5 = 0.949; 0.9 / 0.894 = 1.006 above 0.05 / 0.316.
    assert choose(probabilities, frequencies, 0.5).tolist() == [1, 0]


def test_the_share_is_the_smallest_with_the_best_weighted_f1():
    frequencies = np.log([0.8, 0.1, 0.1])
    probabilities = np.array([[0.6, 0.3, 0.1], [0.9, 0.05, 0.05]])
    # The first turns to "rare" where 2 < 8**τ, so from τ = 1/3 on.
    assert fit_share(probabilities, np.array([1, 0]), frequencies, LABELS) == 0.35
    assert fit_share(probabilities, np.array([0, 0]), frequencies, LABELS) == 0.0
