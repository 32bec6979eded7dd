"""Replies that are too short."""

import pytest

from listenwell.reranking.brevity import ENOUGH, brevity


@pytest.mark.parametrize(
    ("reply", "missing"),
    [("Good luck.", 1 - 2 / ENOUGH), ("", 1.0), ("one two three four five six seven eight nine", 0.0)],
)
def test_words_that_are_missing(reply, missing):
    assert brevity(reply) == pytest.approx(missing)
    assert brevity(f"{reply} and so on and on and on and on it goes") == 0.0
