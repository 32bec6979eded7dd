import json
import logging

import pytest

from listenwell.corpora.risk import KIND, LEVEL, EverydayMessages, RiskMessages


def write(folder, name, rows):
    folder.mkdir(exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_a_message_and_a_conversation(samples):
    first, *_, last = RiskMessages(samples / "risk_messages").read("train")
    assert (first.turns[-1].note(LEVEL), first.turns[-1].note(KIND)) == ("crisis", "suicide")
    assert first.note("writer") == "1" and last.turns[0].note(LEVEL) == "concern"
    talk = next(iter(RiskMessages(samples / "risk_messages").read("conversations")))
    assert [turn.speaker for turn in talk.turns] == ["speaker", "listener", "speaker"]
    assert [turn.note(LEVEL) for turn in talk.turns] == ["none", None, "crisis"]


@pytest.mark.parametrize(
    "row",
    [
        "{",
        "[]",
        "7",
        {"text": "Hi.", "level": "grave", "kind": "none"},
        {"text": "Hi.", "level": "none", "kind": "sorrow"},
        {"text": "", "level": "none", "kind": "none"},
        {"level": "none", "kind": "none"},
        {"turns": [], "level": "none", "kind": "none"},
        {"turns": ["Hi.", "Hello.", "Bye."], "levels": ["none"], "kinds": []},
        {"turns": ["Hi.", "Hello."], "levels": ["none", "none"], "kinds": ["none", "none"]},
    ],
)
def test_a_broken_line_is_skipped_and_counted(tmp_path, row):
    good = {"text": "Hi.", "level": "none", "kind": "none"}
    reader = RiskMessages(write(tmp_path / "risk", "train.jsonl", [row, good]))
    assert [dialogue.turns[0].text for dialogue in reader.read("train")] == ["Hi."]
    assert sum(reader.report.skipped.values()) == 1


def test_everyday_messages_are_joined_with_their_corpora(samples, tmp_path):
    rows = [
        {"corpus": "goemotions", "split": "train", "id": "ga2", "turn": 0, "level": "none", "kind": "none"},
        {"corpus": "goemotions", "split": "train", "id": "gone", "turn": 0, "level": "none", "kind": "none"},
        {
            "corpus": "empathetic_dialogues",
            "split": "train",
            "id": "hit:1_conv:2",
            "turn": 2,
            "level": "concern",
            "kind": "none",
        },
    ]
    reader = EverydayMessages(write(tmp_path / "risk", "everyday_train.jsonl", rows))
    comment, dialogue = reader.read("train")
    assert comment.turns[0].text == "Thanks, you scared me half to death!"
    assert len(dialogue.turns) == 3 and dialogue.turns[-1].note(LEVEL) == "concern"
    assert reader.report.counts == {"messages that goemotions train lacks": 1}


def test_nothing_of_a_message_is_logged(samples, caplog):
    with caplog.at_level(logging.DEBUG):
        list(RiskMessages(samples / "risk_messages").read("train"))
    assert not caplog.records
