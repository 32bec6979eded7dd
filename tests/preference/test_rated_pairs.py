"""Pairs of replies that raters told apart."""

from dataclasses import replace

import pytest

from listenwell.errors import InputError
from listenwell.preference import ratings
from listenwell.preference.candidate_pairs import PLAN_DRIFT, RATED, plan_drift_pairs, rated_pairs
from listenwell.preference.ratings import RatedContext, RatedReply
from listenwell.training.preference_pairs import read_pairs
from tests.preference.helpers import PLAN, TALK, Corpus, call, rated_folder

OTHER = replace(PLAN, act="agreeing")


@pytest.fixture(autouse=True)
def corpus(monkeypatch):
    monkeypatch.setattr(ratings, "Source", lambda name: Corpus())


def rated(about):
    replies = [
        RatedReply(f"reply {letter}", (letter,), plan, {"first": (score,) * 4})
        for letter, (score, plan) in about.items()
    ]
    return RatedContext("empathetic_dialogues", "train", "a#1", tuple(replies))


def test_what_raters_like_stands_against_what_they_do_not(tmp_path):
    out = tmp_path / "pairs.jsonl"
    assert "1 rated pairs of 1 contexts" in call("rated-pairs", rated_folder(tmp_path / "same"), "--out", out)
    call("rated-pairs", rated_folder(tmp_path / "other", plans=(PLAN, OTHER)), "--out", out)
    same, other = read_pairs(out)
    assert (same.chosen, same.rejected, same.source) == ("Oh no!", "I love dogs.", RATED)
    assert same.context == TALK and same.plans == (PLAN, PLAN) and same.rejected_plan is None
    assert other.plans == (PLAN, OTHER)


@pytest.mark.parametrize("about", [{"last": "4"}, {"plans": (PLAN, None)}])
def test_near_ones_and_those_without_a_plan_teach_nothing(tmp_path, about):
    out = tmp_path / "pairs.jsonl"
    call("rated-pairs", rated_folder(tmp_path / "rated", **about), "--out", out)
    assert read_pairs(out) == []


def test_a_context_has_few_pairs_the_plainest_ones():
    scores = {"A": 5.0, "B": 3.0, "C": 1.0, "D": 4.5}
    context = rated({letter: (score, PLAN) for letter, score in scores.items()})
    found = [(pair.chosen[-1], pair.rejected[-1]) for pair in rated_pairs(TALK, context, gap=2.0, each=3)]
    assert found == [("A", "C"), ("D", "C"), ("A", "B")]


def test_those_liked_alike_keep_to_their_plans():
    far = replace(OTHER, mechanisms=("emotional_reaction",))
    assert far.mechanisms != PLAN.mechanisms
    about = {"A": (5.0, PLAN), "B": (4.5, far), "C": (4.5, OTHER), "D": (1.0, far)}
    context = rated(about)
    pairs = list(plan_drift_pairs(TALK, context, each=5))
    # D is liked less, and C's mechanisms are A's: words for the one may do for the other.
    assert [(pair.chosen[-1], pair.rejected[-1]) for pair in pairs] == [("A", "B"), ("B", "A")]
    assert [pair.plans for pair in pairs] == [(PLAN, PLAN), (far, far)]
    assert {pair.source for pair in pairs} == {PLAN_DRIFT}
    assert len(list(plan_drift_pairs(TALK, context, each=1))) == 1


def test_pairs_that_keep_to_plans_are_made_where_they_are_asked_for(tmp_path):
    out, far = tmp_path / "pairs.jsonl", replace(OTHER, mechanisms=("emotional_reaction",))
    folder = rated_folder(tmp_path / "rated", last="4", plans=(PLAN, far))
    assert "2 plan_drift pairs of 1 contexts" in call("rated-pairs", folder, "--out", out, "--plan-drift", 2)
    assert [pair.plan for pair in read_pairs(out)] == [PLAN, far]


def test_ratings_of_another_split_are_an_error_and_write_nothing(tmp_path):
    out = tmp_path / "pairs.jsonl"
    with pytest.raises(InputError, match="of the split test"):
        call("rated-pairs", rated_folder(tmp_path / "rated", "test"), "--out", out)
    assert not out.exists()
