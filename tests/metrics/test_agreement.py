import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from listenwell.errors import InputError, UnknownNameError
from listenwell.metrics import fleiss_kappa, krippendorff_alpha

N = math.nan
# The data of Krippendorff (2011), part C: four observers, twelve units, some not rated.
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, 3],
        [N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, N],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N],
    ]
)
complete = arrays(np.float64, (3, 6), elements=st.integers(1, 3).map(float))


def test_fleiss_worked_by_hand():
    # Agreeing pairs: 1, 1/3, 1, mean 7/9 = 63/81. Shares 5/9 and 4/9: chance 41/81. (63 − 41) / (81 − 41).
    assert fleiss_kappa(np.array([[3, 0], [2, 1], [0, 3]])) == pytest.approx(0.55)


def test_fleiss_of_a_split_jury_is_below_chance():
    # Each item is split 1 to 1: observed 0, chance 1/2, so −1.
    assert fleiss_kappa(np.array([[1, 1], [1, 1]])) == pytest.approx(-1)
    assert math.isnan(fleiss_kappa(np.array([[3, 0], [3, 0]])))


@pytest.mark.parametrize("wrong", [[[3, 0], [2, 0]], [[1, 0], [0, 1]], [[4, -1], [2, 1]], [3, 0], []])
def test_fleiss_needs_the_same_raters_everywhere(wrong):
    with pytest.raises(InputError):
        fleiss_kappa(np.array(wrong))


def test_alpha_worked_by_hand():
    # Two raters, units aa, bb, ab: coincidences aa 2, bb 2, ab and ba 1 each; 3 of a and 3 of b, 6 in all.
    # Observed disagreement 2/6; expected 2 · 3 · 3 / (6 · 5) = 18/30. 1 − (1/3) / (3/5) = 4/9.
    ratings = np.array([[1, 2, 1], [1, 2, 2]])
    for level in ("nominal", "ordinal", "interval"):  # with two values every level is the same
        assert krippendorff_alpha(ratings, level) == pytest.approx(4 / 9)


@pytest.mark.parametrize(("level", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_as_krippendorff_prints_it(level, printed):
    assert krippendorff_alpha(OBSERVERS, level) == pytest.approx(printed, abs=5e-4)


def test_units_of_one_rating_say_nothing():
    paired = ~(np.sum(~np.isnan(OBSERVERS), axis=0) < 2)
    assert paired.sum() == 11
    assert krippendorff_alpha(OBSERVERS[:, paired]) == pytest.approx(krippendorff_alpha(OBSERVERS))


@given(complete)
def test_nominal_alpha_is_kappa_with_a_correction_for_few_ratings(ratings):
    # Both compare with chance; alpha draws the pairs without replacement from all n ratings.
    counts = np.stack([(ratings == value).sum(axis=0) for value in (1, 2, 3)], axis=1)
    kappa, alpha = fleiss_kappa(counts), krippendorff_alpha(ratings)
    if math.isnan(kappa):
        assert math.isnan(alpha)
    else:
        assert alpha == pytest.approx(1 - (1 - kappa) * (ratings.size - 1) / ratings.size)


@given(complete, st.permutations(range(3)), st.permutations(range(6)))
def test_who_rates_first_and_the_scale_do_not_matter(ratings, raters, items):
    for level in ("nominal", "ordinal", "interval"):
        expected = krippendorff_alpha(ratings, level)
        moved = krippendorff_alpha(10 * ratings[raters][:, items] - 3, level)
        assert moved == pytest.approx(expected, nan_ok=True)


def test_alpha_refuses_what_it_cannot_read():
    with pytest.raises(InputError, match="two ratings"):
        krippendorff_alpha(np.array([[1, N], [N, 2]]))
    with pytest.raises(InputError, match="two ratings"):
        krippendorff_alpha(np.full((2, 2), N))
    with pytest.raises(InputError, match="shape"):
        krippendorff_alpha(np.array([1, 2]))
    with pytest.raises(UnknownNameError, match="Did you mean 'nominal'"):
        krippendorff_alpha(np.array([[1, 2], [1, 2]]), "nominl")
