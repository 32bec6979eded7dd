"""Learning from what raters said of candidates."""

import json

import numpy as np
import pytest

from listenwell.dialogue import Dialogue, Factors, Turn
from listenwell.errors import InputError
from listenwell.evaluation.ratings import HEADER
from listenwell.generators.liking import Liking
from listenwell.generators.planned import PlannedConfig, Speaker
from listenwell.training import liking
from listenwell.training.liking import main, rated_states

PLAN = Factors("sad", ("exploration",), "questioning", "caring")
TALK = Dialogue((Turn("speaker", "My dog died. I am so sad."),))


def sheets(folder, split="train"):
    plan = PLAN.to_dict()
    replies = [
        {"letter": letter, "text": text, "who": [who], "plan": given}
        for letter, text, who, given in (
            ("A", "Oh no!", "candidate 1", plan),
            ("B", "I love dogs.", "candidate 2", plan),
            ("C", "how sad", "human", None),
        )
    ]
    entry = {"number": 1, "sheet": 1, "id": "hit:0_conv:0#1", "replies": replies}
    folder.mkdir()
    key = {"corpus": "empathetic_dialogues", "split": split, "sample": "1", "files": [], "entries": [entry]}
    (folder / "key.json").write_text(json.dumps(key))
    lines = [",".join(HEADER), "1,A,4,4,5,4.5", "1,B,1,2,5,1", "1,C,3,3,3,3"]
    (folder / "sheet-01.csv").write_text("\n".join(lines))
    return folder


def test_it_learns_from_what_raters_said_of_candidates(tiny_speaker, tmp_path, monkeypatch, capsys):
    known = {("empathetic_dialogues", "hit:0_conv:0#1"): TALK}
    monkeypatch.setattr(liking, "_contexts", lambda *given: known)
    folder = sheets(tmp_path / "rated")
    found = rated_states(tiny_speaker, [folder], "train")
    assert found.ratings.tolist() == [4.5, 1.0] and found.contexts.tolist() == [0, 0]
    np.testing.assert_array_equal(
        found.states,
        Speaker.load(PlannedConfig(), tiny_speaker).middles_of(TALK, PLAN, ["Oh no!", "I love dogs."]),
    )
    out = tmp_path / "made"
    assert main([str(folder), "--speaker", str(tiny_speaker), "--ridge", "1", "--out", str(out)]) == 0
    made = Liking.load(out)
    assert made.score(found.states[0]) > made.score(found.states[1])
    assert json.loads(capsys.readouterr().out)["replies"] == 2


def test_ratings_of_another_split_are_refused(tiny_speaker, tmp_path):
    with pytest.raises(InputError, match="of the split test"):
        rated_states(tiny_speaker, [sheets(tmp_path / "rated", "test")], "train")
