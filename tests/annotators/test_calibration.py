import numpy as np
import pytest

from listenwell.annotators.calibration import fit_temperature, negative_log_likelihood
from listenwell.annotators.config import probabilities
from listenwell.annotators.heads import HEADS


def scattered(head, rows=200):
    return np.random.default_rng(5).normal(0, 4, (rows, len(HEADS[head].labels))).astype(np.float32)


@pytest.mark.parametrize("head", ["act", "goemotions", "exploration"])
@pytest.mark.parametrize("temperature", [0.4, 1.0, 2.5])
def test_a_known_temperature_is_found(head, temperature):
    # Where the wanted probabilities are those of a temperature, no other has a smaller cross-entropy.
    logits = scattered(head)
    wanted = probabilities(logits, head, temperature)
    assert fit_temperature(logits, wanted, head) == pytest.approx(temperature, rel=1e-3)


def test_labels_drawn_at_a_temperature_give_it_back_nearly():
    logits, random = scattered("act", 4000), np.random.default_rng(6)
    calibrated = probabilities(logits, "act", 3.0)
    drawn = (random.random((4000, 1)) > calibrated.cumsum(axis=1)).sum(axis=1)
    assert fit_temperature(logits, np.eye(9)[drawn], "act") == pytest.approx(3.0, rel=0.05)


def test_the_smallest_and_the_largest_temperature():
    logits = np.array([[2.0, 0.0, -2.0]])
    assert fit_temperature(logits, np.array([[1, 0, 0]]), "exploration") == pytest.approx(0.05, rel=0.5)
    assert fit_temperature(logits, np.array([[0, 0, 1]]), "exploration") == pytest.approx(20.0, rel=1e-3)


def test_the_likelihood_worked_by_hand():
    # Softmax of 0, ln 2, ln 5 is 1/8, 2/8, 5/8; the truths have 2/8 and 1/8.
    logits = np.log(np.array([[1.0, 2.0, 5.0], [1.0, 2.0, 5.0]]))
    truth = np.array([[0, 1, 0], [1, 0, 0]])
    assert negative_log_likelihood(logits, truth, "exploration", 1.0) == pytest.approx(np.log(32) / 2)
    # At temperature 2: roots of 1, 4 and 9, so 1/6, 2/6 and 3/6.
    squares = np.log(np.array([[1.0, 4.0, 9.0]]))
    assert negative_log_likelihood(squares, truth[:1], "exploration", 2.0) == pytest.approx(np.log(3))


def test_the_likelihood_of_several_labels_is_a_sum_over_them():
    # 27 labels at one half each, and one at 3/4 that holds: each item has ln 2 times 27 and ln 4/3.
    logits = np.zeros((2, 28))
    logits[:, 3] = np.log(3)
    truth = np.zeros((2, 28))
    truth[:, 3] = 1
    wanted = 27 * np.log(2) + np.log(4 / 3)
    assert negative_log_likelihood(logits, truth, "goemotions", 1.0) == pytest.approx(wanted)
    assert negative_log_likelihood(logits, np.zeros((2, 28)), "goemotions", 1.0) == pytest.approx(
        27 * np.log(2) + np.log(4)
    )


@pytest.mark.parametrize("head", ["act", "goemotions"])
def test_strong_opinions_overflow_nothing(head):
    logits = scattered(head) * 20
    truth = (logits == logits.max(axis=1, keepdims=True)).astype(np.float32)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        fitted = fit_temperature(logits, truth, head)
        assert np.isfinite(negative_log_likelihood(logits, truth, head, fitted))
