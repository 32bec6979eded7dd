"""Judges of replies beside raters."""

import json

import numpy as np
import pytest

from listenwell.dialogue import Candidate, Dialogue, Example, Factors, Turn
from listenwell.preference import agreement as features
from listenwell.preference.agreement import figures_of, main, table_of
from listenwell.preference.rating_sheets import PERSON, Entry, Shown
from listenwell.preference.ratings import HEADER, Rated
from listenwell.reranking.config import CHOICE, FEATURES, RerankerConfig
from listenwell.reranking.reranker import Reranker

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


def rated(*overall):
    replies = [
        Shown(letter, text, (f"candidate {n}",), PLAN)
        for n, (letter, text) in enumerate(zip("ABC", TEXTS, strict=True))
    ]
    entry = Entry(1, 1, "hit:0#1", (*replies, Shown("D", "how sad", (PERSON,))))
    scores = {
        letter: np.array([[1.0, 1.0, 1.0, one]]) for letter, one in zip("ABCD", (*overall, 3.5), strict=True)
    }
    return Rated(entry, scores)


def test_every_judge_is_set_beside_the_raters():
    everybody = Reranker(only("reward", "likelihood", reward=1.0, likelihood=1.0))
    table = table_of(
        [rated(4.0, 3.0, 2.0)], {"hit:0#1": TALK}, {"hit:0#1": CANDIDATES}, everybody, only("likelihood")
    )
    assert set(table) == {"reward", "likelihood", CHOICE}
    reward, likelihood = figures_of(table["reward"]), figures_of(table["likelihood"])
    assert reward == {"rater_agreement": pytest.approx(1.0), "chosen_overall": 4.0}
    assert likelihood["rater_agreement"] == pytest.approx(0.5)
    assert figures_of(table[CHOICE])["rater_agreement"] == pytest.approx(0.5)  # our weights, not everybody's


def test_a_context_counts_for_itself():
    rows = [(0, 1.0, 1.0), (0, 2.0, 2.0), (1, 9.0, 5.0), (1, 8.0, 4.0)]
    assert figures_of(rows) == {"rater_agreement": pytest.approx(1.0), "chosen_overall": 3.5}
    assert figures_of([(0, -score, rating) for _, score, rating in rows[:2]])["chosen_overall"] == 1.0


def test_the_command_makes_a_row_of_everybody(tmp_path, monkeypatch, capsys):
    class Silent:
        def with_rewards(self, dialogue, candidates):
            return list(candidates)

        priors = None

        def files(self):
            return iter(())

    class Here:
        def __init__(self, name):
            pass

        def examples(self, split):
            return iter([Example(TALK, Turn("listener", "how sad"))])

    monkeypatch.setattr(features.Speaker, "load", lambda config: Silent())
    monkeypatch.setattr(features, "Source", Here)
    monkeypatch.setattr(features.Reranker, "load", lambda config, priors: Reranker(only("reward")))
    folder, replies, kept = tmp_path / "rated", tmp_path / "replies.jsonl", tmp_path / "results"
    folder.mkdir()
    key = {"corpus": "empathetic_dialogues", "split": "valid", "sample": "1", "files": []}
    (folder / "key.json").write_text(json.dumps({**key, "entries": [rated(4, 3, 2).entry.to_dict()]}))
    lines = [",".join(HEADER), "1,A,1,1,1,4", "1,B,1,1,1,3", "1,C,1,1,1,2", "1,D,1,1,1,3.5"]
    (folder / "sheet-01.csv").write_text("\n".join(lines))
    replies.write_text(json.dumps({"id": "hit:0#1", "candidates": [one.to_dict() for one in CANDIDATES]}))
    command = [str(folder), str(replies), "--raters", "us", "--keep", str(kept)]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "judge: liking: {'chosen_overall': 4.0" in said
    assert "any reply of ours: {'chosen_overall': 3.0}" in said and "human: {'chosen_overall': 3.5}" in said
    assert "the reply that raters like best: {'chosen_overall': 4.0}" in said
    assert len(list(kept.glob("judges-*.json"))) == 6
    replies.write_text(json.dumps({"id": "other", "candidates": []}))
    assert main(command) == 1 and "no candidates for hit:0#1" in capsys.readouterr().err
