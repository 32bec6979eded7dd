import json
import sys
from pathlib import Path

import pytest

from listenwell.corpora.base import hash_bucket
from listenwell.corpora.listening import PlainRewrites, PlainTalks, RichTalks
from listenwell.dialogue import LISTENER, MANNER

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "scripts"))

from check_talks import checked, read  # noqa: E402

SHIPPED = ROOT / "data" / "listening"


def every(loader):
    return [dialogue for split in loader.splits for dialogue in loader.read(split)]


def test_a_conversation_has_its_persona_emotion_and_manner(samples):
    talks = {talk.id: talk for talk in every(PlainTalks(samples / "listening"))}
    assert set(talks) == {"s0001", "s0002", "s0003"}
    assert [turn.speaker for turn in talks["s0001"].turns] == ["speaker", "listener"] * 2
    assert (talks["s0001"].emotion, talks["s0001"].note(MANNER)) == ("sad", "plain")
    assert talks["s0002"].persona_of(LISTENER).lines == ("I work in a library.",)
    assert next(iter(every(RichTalks(samples / "listening")))).note(MANNER) == "rich"


def test_broken_lines_are_counted(samples):
    loader = PlainTalks(samples / "listening")
    every(loader)
    assert loader.report.skipped["no conversation: KeyError"] == 1
    assert loader.report.skipped["no conversation: JSONDecodeError"] == 3  # once for each split
    assert loader.report.skipped["no conversation: UnknownNameError"] == 1


def test_splits_do_not_overlap(samples):
    loader = PlainTalks(SHIPPED)
    ids = {split: {talk.id for talk in loader.read(split)} for split in loader.splits}
    assert not ids["train"] & ids["valid"] and not ids["train"] & ids["test"]
    assert all(hash_bucket(name, 20) == 0 for name in ids["valid"])
    assert len(ids["train"]) > 10 * len(ids["valid"]) > 100


def test_rewrites_replace_the_listeners_turns(samples, monkeypatch):
    monkeypatch.setenv("LISTENWELL_DATA", str(samples))
    loader = PlainRewrites(samples / "listening")
    (dialogue,) = every(loader)
    speaker, listener, *_, last = dialogue.turns
    assert speaker.text.startswith("My neighbour kept my tomatoes alive,")
    assert listener.text == "How kind of her to keep them alive."
    assert (last.speaker, last.text) == (LISTENER, "A jar of soup would be a lovely way to thank her.")
    assert dialogue.note(MANNER) == "plain"
    assert loader.report.counts["conversations that EmpatheticDialogues lacks"] == 1


@pytest.mark.parametrize("listener", [[], None, ["a", "b", "c", "d", "e"], [7]])
def test_rewrites_that_do_not_fit_are_counted(samples, tmp_path, monkeypatch, listener):
    monkeypatch.setenv("LISTENWELL_DATA", str(samples))
    row = {"id": "hit:1_conv:2", "listener": listener}
    (tmp_path / "rewrites_plain.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    loader = PlainRewrites(tmp_path)
    assert every(loader) == []
    assert sum(loader.report.skipped.values()) == 1


def test_shipped_conversations_keep_to_the_form():
    accepted, refused = checked(read([SHIPPED / "talks_plain.jsonl"]))
    assert len(accepted) > 1_000
    assert not refused


def test_the_checker_refuses():
    good = {
        "id": "a",
        "emotion": "sad",
        "persona": [],
        "turns": [
            "My old bike was stolen from the yard.",
            "How unfair. When?",
            "Today.",
            "I see.",
            "Bye.",
            "Bye.",
        ],
    }
    changes = {
        "taken": {},
        "duplicate": {"id": "b"},
        "emotion": {"id": "c", "emotion": "blue"},
        "questions": {"id": "d", "turns": [*good["turns"][:5], "Why? Where?"]},
        "turns": {"id": "e", "turns": good["turns"][:5]},
        "life": {"id": "f", "turns": [*good["turns"][:5], "My dog says bye."]},
        "texts": {"id": "g", "turns": "hello"},
        "words": {"id": "h", "turns": [*good["turns"][:5], "word " * 50]},
    }
    accepted, refused = checked([good, *(good | change for change in changes.values())])
    assert accepted == [good]
    for reason, (_, given) in zip(changes, refused, strict=True):
        assert reason in given
