"""Pairs of replies that raters told apart."""

from dataclasses import replace

import numpy as np
import pytest

from listenwell.preference import ratings
from listenwell.preference.pairs import read_pairs
from listenwell.preference.rated_pairs import PLAN_DRIFT, RATED, main, plan_drift_pairs, rated_pairs
from listenwell.preference.rating_sheets import Entry, Shown
from listenwell.preference.ratings import Rated
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


def test_those_liked_alike_keep_to_their_plans():
    far = replace(OTHER, mechanisms=("emotional_reaction",))
    assert far.mechanisms != PLAN.mechanisms
    about = {"A": (5.0, PLAN), "B": (4.5, far), "C": (4.5, OTHER), "D": (1.0, far)}
    shown = tuple(Shown(letter, f"reply {letter}", (letter,), plan) for letter, (_, plan) in about.items())
    rated = Rated(
        Entry(1, 1, "a#1", shown),
        {letter: np.full((1, 4), score) for letter, (score, _) in about.items()},
    )
    pairs = list(plan_drift_pairs(TALK, rated, each=5))
    # D is liked less, and C's mechanisms are A's: words for the one may do for the other.
    assert [(pair.chosen[-1], pair.rejected[-1]) for pair in pairs] == [("A", "B"), ("B", "A")]
    assert [pair.plans for pair in pairs] == [(PLAN, PLAN), (far, far)]
    assert {pair.source for pair in pairs} == {PLAN_DRIFT}
    assert len(list(plan_drift_pairs(TALK, rated, each=1))) == 1


def test_pairs_that_keep_to_plans_are_made_where_they_are_asked_for(tmp_path, capsys):
    out, far = tmp_path / "pairs.jsonl", replace(OTHER, mechanisms=("emotional_reaction",))
    folder = rated_folder(tmp_path / "rated", last="4", plans=(PLAN, far))
    assert made(folder, out, "--plan-drift", "2") == 0
    assert "2 plan_drift pairs of 1 contexts" in capsys.readouterr().out
    assert [pair.plan for pair in read_pairs(out)] == [PLAN, far]


def test_ratings_of_another_split_are_an_error_and_write_nothing(tmp_path, capsys):
    out = tmp_path / "pairs.jsonl"
    assert made(rated_folder(tmp_path / "rated", "test"), out) == 1
    assert "of the split test" in capsys.readouterr().err and not out.exists()
