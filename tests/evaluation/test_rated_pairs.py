"""Pairs of replies that raters told apart."""

from dataclasses import replace

import numpy as np
import pytest

from listenwell.evaluation import ratings
from listenwell.evaluation.rated_pairs import RATED, main, rated_pairs
from listenwell.evaluation.rating_sheets import Entry, Shown
from listenwell.evaluation.ratings import Rated
from listenwell.generators.rejected import read_pairs
from tests.evaluation.rated_helpers import PLAN, TALK, Corpus, rated_folder

OTHER = replace(PLAN, act="agreeing")


@pytest.fixture(autouse=True)
def corpus(monkeypatch):
    monkeypatch.setattr(ratings, "Source", lambda name: Corpus())


def made(folder, out, *more):
    return main([str(folder), "--out", str(out), *more])


def test_what_raters_like_stands_against_what_they_do_not(tmp_path, capsys):
    out = tmp_path / "pairs.jsonl"
    assert made(rated_folder(tmp_path / "same"), out) == 0
    assert made(rated_folder(tmp_path / "other", plans=(PLAN, OTHER)), out) == 0
    same, other = read_pairs(out)
    assert (same.chosen, same.rejected, same.source) == ("Oh no!", "I love dogs.", RATED)
    assert same.context == TALK and same.plans == (PLAN, PLAN) and same.rejected_plan is None
    assert other.plans == (PLAN, OTHER)
    assert "1 rated pairs of 1 contexts" in capsys.readouterr().out


@pytest.mark.parametrize("about", [{"last": "4"}, {"plans": (PLAN, None)}])
def test_near_ones_and_those_without_a_plan_teach_nothing(tmp_path, about):
    out = tmp_path / "pairs.jsonl"
    assert made(rated_folder(tmp_path / "rated", **about), out) == 0
    assert read_pairs(out) == []


def test_a_context_has_few_pairs_the_plainest_ones():
    scores = {"A": 5.0, "B": 3.0, "C": 1.0, "D": 4.5}
    shown = tuple(Shown(letter, f"reply {letter}", (letter,), PLAN) for letter in scores)
    rated = Rated(
        Entry(1, 1, "a#1", shown),
        {letter: np.full((1, 4), score) for letter, score in scores.items()},
    )
    found = [(pair.chosen[-1], pair.rejected[-1]) for pair in rated_pairs(TALK, rated, gap=2.0, each=3)]
    assert found == [("A", "C"), ("D", "C"), ("A", "B")]


def test_ratings_of_another_split_are_an_error_and_write_nothing(tmp_path, capsys):
    out = tmp_path / "pairs.jsonl"
    assert made(rated_folder(tmp_path / "rated", "test"), out) == 1
    assert "of the split test" in capsys.readouterr().err and not out.exists()
