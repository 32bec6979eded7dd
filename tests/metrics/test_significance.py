import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from listenwell.errors import InputError
from listenwell.metrics import paired_bootstrap, sign_test, wilson_interval

values = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12)


def test_sign_test_worked_by_hand():
    # 5 of 5: 2 / 2⁵. 9 of 10: 2 (1 + 10) / 2¹⁰. As many wins as losses: 1.
    assert sign_test(5, 0) == pytest.approx(1 / 16)
    assert sign_test(9, 1) == pytest.approx(22 / 1024)
    assert sign_test(4, 4) == sign_test(0, 0) == 1


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_sign_test_is_two_sided(wins, losses):
    assert sign_test(wins, losses) == pytest.approx(sign_test(losses, wins))
    assert sign_test(wins + 1, losses) <= sign_test(wins, losses) or wins < losses


def test_bootstrap_worked_by_hand():
    # Two items, gains 1 and 0: a draw of two has mean 0 (1/4), ½ (1/2) or 1 (1/4). The rarer side of zero is
    # a mean of at most 0, a quarter of the draws: p near 1/2; the interval goes from 0 to 1.
    difference = paired_bootstrap([2, 3], [1, 3], seed=0, samples=20_000)
    assert (difference.difference, difference.low, difference.high) == (0.5, 0, 1)
    assert difference.p == pytest.approx(0.5, abs=0.02)


def test_bootstrap_finds_a_constant_gain_and_no_gain():
    assert paired_bootstrap([2.0] * 50, [1.0] * 50, seed=1, samples=999) == (1, 1, 1, pytest.approx(2 / 1000))
    assert paired_bootstrap([1.0] * 50, [1.0] * 50, seed=1, samples=999) == (0, 0, 0, 1)


def test_the_interval_is_that_of_the_normal_approximation():
    gains = np.random.default_rng(0).normal(0.3, 1, 4000)
    difference = paired_bootstrap(gains, np.zeros(4000), seed=2, samples=2000)
    half = 1.96 * gains.std() / np.sqrt(4000)
    assert (difference.low, difference.high) == pytest.approx(
        (gains.mean() - half, gains.mean() + half), abs=0.003
    )


@given(values, st.integers(0, 9))
@settings(max_examples=30)
def test_the_other_way_round_is_the_mirror_image(rows, seed):
    ours, theirs = zip(*rows, strict=True)
    there = paired_bootstrap(ours, theirs, seed, samples=200)
    back = paired_bootstrap(theirs, ours, seed, samples=200)
    assert there == paired_bootstrap(ours, theirs, seed, samples=200)
    assert back == pytest.approx((-there.difference, -there.high, -there.low, there.p))
    assert there.low <= there.high and 0 < there.p <= 1


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(InputError, match="do not pair up"):
        paired_bootstrap([1.0], [1.0, 2.0], seed=0)
    with pytest.raises(InputError, match="finite"):
        paired_bootstrap([float("nan")], [1.0], seed=0)
    with pytest.raises(InputError, match="samples"):
        paired_bootstrap([1.0], [1.0], seed=0, samples=0)
    with pytest.raises(InputError, match="cannot be"):
        sign_test(-1, 2)


def test_wilson_interval_by_hand():
    # 2 of 4: (0.5 + 0.4802) / 1.9604 ± 1.96 · √(0.0625 + 0.060025) / 1.9604
    assert wilson_interval(2, 4) == pytest.approx((0.1500, 0.8500), abs=1e-3)
    low, high = wilson_interval(0, 50)
    assert low == 0 and high == pytest.approx(0.0714, abs=1e-3)  # z² / (n + z²)
    assert wilson_interval(50, 50)[1] == 1
    for hits, count in ((1, 0), (-1, 5), (6, 5)):
        with pytest.raises(InputError):
            wilson_interval(hits, count)
