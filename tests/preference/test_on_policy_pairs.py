"""Pairs of the listener's best and worst reply."""

import json

import pytest

from listenwell.dialogue import Candidate, Dialogue, Factors, Turn
from listenwell.errors import InputError
from listenwell.preference.candidate_pairs import ON_POLICY, on_policy_pairs

PLAN = Factors("sad", ("exploration",), "questioning", "sadness")
OTHER = Factors("sad", (), "agreeing", "sadness")
TALK = Dialogue((Turn("speaker", "My dog ran away."),), id="a")


def line(*candidates, name="a#1"):
    made = [
        Candidate(text, plan, (("total", score), *((fault, 1.0) for fault in faults))).to_dict()
        for text, plan, score, *faults in candidates
    ]
    return json.dumps({"id": name, "reply": made[0]["text"], "candidates": made}).encode() + b"\n"


def pairs(tmp_path, *lines):
    file = tmp_path / "replies.jsonl"
    file.write_bytes(b"".join(lines))
    return list(on_policy_pairs(file, {"a#1": TALK}, gap=1.0))


def test_the_best_stands_against_the_worst_of_its_plan(tmp_path):
    made = line(("Where?", PLAN, 2.0), ("Oh.", PLAN, 1.9), ("Dogs!", PLAN, 0.5), ("Yes.", OTHER, -3.0))
    (pair,) = pairs(tmp_path, made)
    assert (pair.chosen, pair.rejected, pair.source, pair.plan) == ("Where?", "Dogs!", ON_POLICY, PLAN)
    assert pair.context.turns == TALK.turns


@pytest.mark.parametrize(
    "made",
    [
        line(("Where?", PLAN, 2.0), ("Oh.", PLAN, 1.5)),  # too near
        line(
            ("My dog too.", PLAN, 2.0, "unsupported_disclosure"), ("Oh.", PLAN, 0.0)
        ),  # even the best is at fault
        line(("Where?", PLAN, 2.0), ("Yes.", OTHER, -3.0)),  # another plan
        line(("Where?", None, 2.0), ("Yes.", None, -3.0)),
    ],
)
def test_what_teaches_nothing_is_left_out(tmp_path, made):
    assert pairs(tmp_path, made) == []


@pytest.mark.parametrize("made", [b"{}\n", b"nonsense\n", line(("A", PLAN, 1.0), name="b#7")])
def test_other_replies_are_an_error_that_names_them(tmp_path, made):
    with pytest.raises(InputError, match=r"replies\.jsonl:1 has no id and candidates|replies to b#7"):
        pairs(tmp_path, made)
