import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from listenwell.errors import InputError
from listenwell.metrics import vader


def test_vader_worked_by_hand():
    # VADER's lexicon has good at 1.9; compound = s / √(s² + 15). "table" has no sentiment.
    good = 1.9 / math.sqrt(1.9**2 + 15)
    assert vader(["good", "table"]) == pytest.approx(good / 2, abs=1e-4)


def test_vader_recognizes_a_no_taken_apart_or_not():
    assert vader(["that is n't good"]) < 0
    assert vader(["that isn't good"]) < 0


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
@settings(deadline=None, max_examples=20)  # VADER reads its lexicon each time
def test_the_mean_lies_within_bounds(texts):
    assert -1 <= vader(texts) <= 1
    assert vader(texts) == pytest.approx(vader(texts * 2))


def test_no_texts_have_no_sentiment():
    with pytest.raises(InputError, match="no texts"):
        vader([])
