"""Reranking features beside raters."""

import json

import pytest

from listenwell.dialogue import Candidate, Dialogue, Example, Factors, Turn
from listenwell.errors import InputError
from listenwell.preference import agreement, ratings
from listenwell.preference.agreement import feature_scores, feature_table
from listenwell.preference.rating_sheets import PERSON, Entry, Shown
from listenwell.preference.ratings import HEADER, RatedContext, RatedReply
from listenwell.reranking.config import FEATURES, TOTAL, RerankerConfig
from listenwell.reranking.reranker import Reranker
from tests.preference.helpers import call

PLAN = Factors("sad", ("exploration",), "questioning", "caring")
TALK = Dialogue((Turn("speaker", "My dog ran away."),), id="hit:0")
TEXTS = ("Oh no!", "Where did he go?", "I love dogs.")


def only(*names, **weights):
    return RerankerConfig(**weights, without=tuple(feature for feature in FEATURES if feature not in names))


def candidate(text, reward, likelihood):
    return Candidate(text, PLAN, (("reward", reward), ("likelihood", likelihood)))


CANDIDATES = [
    candidate("Oh no!", 2.0, -1.0),
    candidate("Where did he go?", 1.0, -3.0),
    candidate("I love dogs.", 0.0, -2.0),
]


def entry():
    replies = [
        Shown(letter, text, (f"candidate {n}",), PLAN)
        for n, (letter, text) in enumerate(zip("ABC", TEXTS, strict=True))
    ]
    return Entry(1, 1, "hit:0#1", (*replies, Shown("D", "how sad", (PERSON,))))


def rated(*overall):
    replies = [
        RatedReply(text, (f"candidate {n}",), PLAN, {"first": (1.0, 1.0, 1.0, score)})
        for n, (text, score) in enumerate(zip(TEXTS, overall, strict=True))
    ]
    return RatedContext("empathetic_dialogues", "valid", "hit:0#1", tuple(replies))


def test_every_feature_is_set_beside_the_raters():
    reranker = Reranker(only("reward", "likelihood", reward=0.01, likelihood=1.0))
    table = feature_table([(TALK, rated(4.0, 3.0, 2.0))], {"hit:0#1": CANDIDATES}, reranker)
    assert set(table) == {"reward", "likelihood", TOTAL}
    reward, likelihood = feature_scores(table["reward"]), feature_scores(table["likelihood"])
    assert reward == {"rater_agreement": pytest.approx(1.0), "chosen_overall": 4.0}
    assert likelihood["rater_agreement"] == pytest.approx(0.5)
    # The sum is by the reranker's weights: nearly the likelihood alone.
    assert feature_scores(table[TOTAL])["rater_agreement"] == pytest.approx(0.5, abs=0.02)


def test_a_context_counts_for_itself():
    rows = [(0, 1.0, 1.0), (0, 2.0, 2.0), (1, 9.0, 5.0), (1, 8.0, 4.0)]
    assert feature_scores(rows) == {"rater_agreement": pytest.approx(1.0), "chosen_overall": 3.5}
    assert feature_scores([(0, -score, rating) for _, score, rating in rows[:2]])["chosen_overall"] == 1.0


def test_the_command_writes_a_result_of_every_feature(tmp_path, monkeypatch):
    class Silent:
        def with_rewards(self, dialogue, candidates):
            return list(candidates)

        def files(self):
            return iter(())

    class Here:
        def __init__(self, name):
            pass

        def examples(self, split):
            return iter([Example(TALK, Turn("listener", "how sad"))])

    monkeypatch.setattr(agreement.PlannedGenerator, "load", lambda config: Silent())
    monkeypatch.setattr(ratings, "Source", Here)
    monkeypatch.setattr(agreement.Reranker, "load", lambda config: Reranker(only("reward")))
    folder, replies, kept = tmp_path / "rated", tmp_path / "replies.jsonl", tmp_path / "results"
    folder.mkdir()
    key = {"corpus": "empathetic_dialogues", "split": "valid", "sample": "1", "files": []}
    (folder / "key.json").write_text(json.dumps({**key, "entries": [entry().to_dict()]}))
    lines = [",".join(HEADER), "1,A,1,1,1,4", "1,B,1,1,1,3", "1,C,1,1,1,2", "1,D,1,1,1,3.5"]
    (folder / "sheet-01.csv").write_text("\n".join(lines))
    replies.write_text(json.dumps({"id": "hit:0#1", "candidates": [one.to_dict() for one in CANDIDATES]}))
    command = ["agreement", folder, replies, "--raters", "us", "--keep", kept]
    printed = call(*command)
    assert "judge: reward_model: {'chosen_overall': 4.0" in printed
    assert "any reply of ours: {'chosen_overall': 3.0}" in printed
    assert "human: {'chosen_overall': 3.5}" in printed
    assert "the reply that raters like best: {'chosen_overall': 4.0}" in printed
    assert len(list(kept.rglob("*.json"))) == 6
    replies.write_text(json.dumps({"id": "other", "candidates": []}))
    with pytest.raises(InputError, match="no candidates for hit:0#1"):
        call(*command)
