"""Crisis detection on our own list, whose held-out third nobody tuned on, and case by case."""

import logging
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.corpora.risk import RiskMessages
from listenwell.dialogue import Dialogue, Turn
from listenwell.errors import InputError
from listenwell.safety.answers import answer
from listenwell.safety.classifier import CrisisClassifier, Risk
from listenwell.safety.context_modifiers import LEVELS
from listenwell.safety.crisis import Detector, last_message
from listenwell.safety.help import help_for
from listenwell.safety.measure import alarms, measured, read_list
from listenwell.safety.patterns.base import KINDS, patterns, read

LIST = read_list(Path(__file__).with_name("sentences.jsonl"))
DETECTOR = Detector.load()


def level(text):
    return DETECTOR.find(text).level


def test_the_list_is_large_and_of_every_sort():
    assert len(LIST) >= 300 and len({one.text for one in LIST}) == len(LIST)
    held = [one for one in LIST if one.held_out]
    assert len(held) >= len(LIST) / 4
    wanted = {
        "direct",
        "veiled",
        "misspelled",
        "third person",
        "past",
        "figurative",
        "grief",
        "news",
        "songs",
    }
    wanted |= {"anger", "abuse", "emergency", "everyday"}
    assert set(Counter(one.category for one in LIST)) == wanted == {one.category for one in held}
    assert all((one.kind in KINDS) == one.crisis for one in LIST)


def test_no_sentence_of_the_list_was_taught():
    def bare(text):
        return "".join(filter(str.isalnum, text.casefold()))

    dialogues = RiskMessages(Path(__file__).parents[2] / "data" / "risk").read("train")
    learned = {bare(turn.text) for dialogue in dialogues for turn in dialogue.turns}
    assert len(learned) > 5_000
    assert not [one.text for one in LIST if bare(one.text) in learned]


@pytest.mark.parametrize("part", ["all", "held out"])
def test_recall_and_false_alarms(part):
    figures = measured(DETECTOR, [one for one in LIST if part == "all" or one.held_out])
    assert figures["recall"] >= 95
    assert figures["false alarms"] <= 5
    assert figures["concerns among the others"] <= 25  # a wide net: many tell of what is past or denied
    assert figures["right kind"] >= 90


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I am going to kill myself.", "suicide"),
        ("i wanna kms", "suicide"),
        ("there is no reason for me to live", "suicide"),
        ("I cut myself again yesterday.", "self_harm"),
        ("I have a knife and I'm going to stab him tonight.", "harm_to_others"),
        ("My husband beats me.", "abuse"),
        ("My mother has collapsed and she's not breathing!", "emergency"),
        ("My sister says she wants to die.", "someone_else"),
        ('He texted me "I want to kill myself" an hour ago.', "someone_else"),
    ],
)
def test_kinds(text, kind):
    found = DETECTOR.find(text)
    assert (found.level, found.kind) == ("crisis", kind)


@pytest.mark.parametrize(
    "text",
    [
        "This exam is killing me.",
        "I'd die for that cake",
        "my phone died",
        "I was so embarrassed I wanted to die.",
        "My mum will kill me if I'm late.",
        "My kids beat me at cards",
        "In the film the hero kills himself.",
        'They sang "I want to die young" all night, a great song.',
        "I laughed so hard I couldn't breathe",
        "We lost our dog last week and I miss her.",
        "ok",
        "...",
        "",
    ],
)
def test_what_is_no_crisis(text):
    assert level(text) == "none"


@pytest.mark.parametrize(
    "text",
    [
        "I was suicidal ten years ago and am fine now.",
        "I would never kill myself.",
        "I'm not suicidal, only sad.",
        "My father used to beat me when I was a child.",
        "ugh another meeting, gonna kill myself lol",
    ],
)
def test_what_is_past_denied_or_not_meant_is_a_concern(text):
    assert level(text) == "concern"


@pytest.mark.parametrize(
    "text",
    [
        "I don't know why I should not kill myself.",
        "I can't stop thinking about suicide.",
        "I have no reason not to kill myself",
        "im gonna kms, not joking",
        "I have wanted to die since high school and I still want to die",
        "I made it through another day without killing myself. I don't know how long I can.",
    ],
)
def test_not_every_no_denies(text):
    assert level(text) == "crisis"


def test_signs_show_where():
    text = "Work was fine. But honestly, I wanna  k!ll my self."
    found = DETECTOR.find(text)
    strong = [text[sign.start : sign.end] for sign in found.signs if sign.by == "strong"]
    assert "k!ll my self" in strong
    assert all(0 <= sign.start < sign.end <= len(text) for sign in found.signs)
    assert 0 <= found.score <= 1


def test_one_grave_sentence_among_many_is_heard():
    calm = "We went to the market and bought apples. " * 40
    assert level(calm) == "none"
    assert level(f"{calm}I want to kill myself. {calm}") == "crisis"
    assert level("a" * 30_000 + " I want to kill myself.") == "crisis"  # the end of a long text is read
    found = DETECTOR.find("a " * 20_000 + "I want to kill myself.")
    assert found.signs[-1].end <= 40_022 and found.signs[-1].start >= 40_000


@given(st.text(st.characters(exclude_categories=()), max_size=80))
def test_any_text_is_read_the_same_way_twice(text):
    found = DETECTOR.find(text)
    assert found == DETECTOR.find(text)
    assert 0 <= found.score <= 1
    assert (found.kind is None) == (found.level == "none") == (not found.signs)


@pytest.mark.parametrize(
    "piece", ["i really just so ", "not ", "my dad hit me up ", "kill ", ". ", "i want to "]
)
def test_no_expression_explodes_on_a_long_message(piece):
    """It takes a tenth of a second; one that backtracks exponentially would run into the test's timeout."""
    assert DETECTOR.find(piece * (20_000 // len(piece))).level in LEVELS


def test_nothing_of_a_message_is_logged(caplog, capfd):
    with caplog.at_level(logging.DEBUG):
        DETECTOR.find("I want to kill myself, says Rumpelstiltskin.")
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


def test_messages_in_a_row_are_read_as_one():
    turns = (Turn("a", "I am"), Turn("listener", "Yes?"), Turn("a", "I want to"), Turn("a", "die."))
    assert last_message(Dialogue(turns)) == "I want to die."  # one sentence in two messages
    turns = (Turn("a", "I lost my job."), Turn("a", "so tired of it all now and then"), Turn("a", "ok"))
    assert last_message(Dialogue(turns)) == "I lost my job.\nso tired of it all now and then\nok"
    turns = (Turn("a", "I am"), Turn("listener", "Yes?"))
    assert last_message(Dialogue(turns)) == ""


def test_every_pattern_can_be_read_and_broken_ones_are_named():
    assert len([pattern.regex for pattern in patterns()]) > 200
    assert {pattern.kind for pattern in patterns()} == set(KINDS)
    ((strength, regex),) = read("# words\n[strong]\ni (?:am|\n  was) here\n", ("strong",), "suicide")
    assert strength == "strong"
    assert regex.search(" so i was here . ") and not regex.search(" i was hereby ")
    for broken in ("[strong]\n(?:a", "[strong]\n<nothing> a", "no section"):
        with pytest.raises(InputError, match="suicide cannot be read"):
            list(read(broken, ("strong",), "suicide"))


def test_patterns_are_a_floor_that_only_raises(monkeypatch):
    calm = Risk("none", "suicide", 0.01, 0.01)
    monkeypatch.setattr(CrisisClassifier, "predict", lambda self, view: calm)
    assert level("I am going to kill myself.") == "crisis"  # strong, whatever the classifier says
    assert level("I was suicidal ten years ago and am fine now.") == "concern"
    assert level("I bought apples at the market.") == "none"
    assert level("suicide") == "none"  # weak, and the classifier does not agree
    grave = Risk("crisis", "abuse", 0.99, 0.01)
    monkeypatch.setattr(CrisisClassifier, "predict", lambda self, view: grave)
    finding = DETECTOR.find("I would never kill myself.")  # a pattern's concern lowers nothing
    assert (finding.level, finding.kind) == ("crisis", "abuse")
    assert [sign.by for sign in finding.signs if sign.level == "crisis"] == ["classifier"]


def test_what_was_answered_is_not_detected_again():
    fixed = answer("suicide", help_for("NL"))
    turns = (Turn("a", "I want to die."), Turn("listener", fixed), Turn("a", "ok"), Turn("a", "thanks"))
    assert DETECTOR.view(Dialogue(turns)) == (("ok", False), ("thanks", False))
    turns = (Turn("a", "My dog died."), Turn("listener", "Oh no!"), Turn("a", "Milo."))
    assert DETECTOR.view(Dialogue(turns)) == (("My dog died.", False), ("Oh no!", True), ("Milo.", False))


def test_alarms_are_shares_of_the_texts():
    texts = ["I want to die.", "Nice weather.", "I would never kill myself.", "Hello"]
    assert alarms(DETECTOR, texts) == {"texts": 4.0, "crisis": 25.0, "concern": 25.0}
