import csv
import re

import pytest
from hypothesis import given

from listenwell.dialogue import Dialogue, Persona, Turn
from listenwell.errors import CorpusError

from .helpers import lines_of_text, quick, read, reader, replies, report, through_jsonl

NAME = "synthetic_persona_chat"
ONE, TWO = "User 1", "User 2"


def chat(identity, first, second, *turns):
    return Dialogue(
        tuple(Turn(*turn) for turn in turns), identity, (Persona(ONE, first), Persona(TWO, second)), TWO
    )


BEES = chat(
    "valid-1",
    ("I keep bees.", "I am left-handed."),
    ("I repair clocks.", 'I say "well" a lot.'),
    (TWO, "Hello! What do you do?"),
    (ONE, "I keep bees."),
    (TWO, 'Well, "buzz", as they say.'),
    (TWO, "Goodbye!"),
)
LAKE = chat(
    "valid-2",
    ("I row.",),
    ("I swim.",),
    (ONE, "Morning!"),
    (TWO, "Morning. Is the lake warm?"),
    (TWO, "Good."),
)


def test_valid_comes_out_without_holes_and_stage_directions():
    assert read(NAME, "valid") == [BEES, LAKE]


def test_every_line_left_out_is_counted():
    assert report(NAME, "valid") == (
        {
            "template hole": 2,
            "line that nobody says": 3,
            "empty utterance": 1,
            "conversation without a usable line": 1,
            "wrong number of columns": 1,
        },
        {"lines": 15, "blank lines": 2},
    )


def test_the_publishers_file_name_and_carriage_returns_are_read_too():
    assert read(NAME, "test") == [
        chat(
            "test-1",
            ("I sail.", "I sing."),
            (),
            (ONE, "Ahoy!"),
            (TWO, "Ahoy, sailor."),
            (ONE, "Sing along!"),
        )
    ]
    assert report(NAME, "test") == ({}, {"lines": 3})


def test_both_people_reply():
    assert replies(NAME, "valid") == [
        (1, ONE, "I keep bees."),
        (2, TWO, 'Well, "buzz", as they say.'),
        (3, TWO, "Goodbye!"),
        (1, TWO, "Morning. Is the lake warm?"),
        (2, TWO, "Good."),
    ]


def test_an_example_knows_the_persona_of_who_replies():
    first = next(iter(reader(NAME).examples("valid")))
    assert first.context.persona_of(first.context.listener) == Persona(
        ONE, ("I keep bees.", "I am left-handed.")
    )


sayable = lines_of_text().filter(lambda text: text[0] != "*" and not re.search(r"\[[^\[\]]+\]", text))


@quick
@given(text=sayable, line=lines_of_text())
def test_any_line_of_text_comes_back_unchanged(scratch, text, line):
    with (scratch / "valid.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("user 1 personas", "user 2 personas", "Best Generated Conversation"))
        writer.writerow((line, "I nap.\nI knit.", f"User 1: {text}\nUser 2: Yes."))
    expected = chat("valid-1", (line,), ("I nap.", "I knit."), (ONE, text), (TWO, "Yes."))
    assert read(NAME, "valid", scratch) == [expected]


def test_only_the_splits_at_hand_are_available(tmp_path):
    assert reader(NAME).available() == ("valid", "test")
    with pytest.raises(CorpusError, match=rf"no .*valid\.csv.*`listenwell corpus download {NAME}`"):
        read(NAME, "valid", tmp_path)


def test_a_file_with_other_columns_is_not_the_corpus(tmp_path):
    (tmp_path / "valid.csv").write_text("user 1 personas,user 2 personas,Conversation\na,b,c\n")
    with pytest.raises(CorpusError, match="no column 'Best Generated Conversation'"):
        read(NAME, "valid", tmp_path)


def test_dialogues_go_through_our_jsonl(tmp_path):
    items = read(NAME, "valid") + read(NAME, "test")
    assert through_jsonl(items, tmp_path) == items
