import pytest

from listenwell.dialogue import Candidate, Dialogue, Factors, Turn
from listenwell.safety.answers import FALLBACKS
from listenwell.safety.guard import AFTERCARE, NOTES, Guard

GUARD = Guard.load("NL")
GOOD = Candidate("That sounds hard. What happened?", Factors(act="questioning"))
BAD = Candidate("You should sue them.")
WORSE = Candidate("Let's meet for coffee, I'll call you.")


def talk(*texts):
    """Turns of the other person and the listener, in turn."""
    return Dialogue(
        tuple(Turn(("speaker", "listener")[number % 2], text) for number, text in enumerate(texts))
    )


def check(dialogue):
    return GUARD.assess(dialogue).verdict


def guard(dialogue, candidates):
    return GUARD.select(dialogue, candidates, GUARD.assess(dialogue))


def test_in_a_crisis_nothing_generated_is_said():
    for verdict in (
        check(talk("I want to kill myself.")),
        guard(talk("I want to kill myself."), [GOOD]),
    ):
        notes = dict(verdict.safety)
        assert verdict.candidate is None and GOOD.text not in verdict.text
        assert "113" in verdict.text and "112" in verdict.text and "I am a program" in verdict.text
        assert notes == {
            "answer": "fixed",
            "directory": "findahelpline.com",
            "emergency": "112",
            "help": "113 Zelfmoordpreventie: 113",
            "kind": "suicide",
            "level": "crisis",
        }


def test_a_crisis_is_detected_once_a_reply(monkeypatch):
    texts = []
    assess = GUARD.detector.assess
    monkeypatch.setattr(
        GUARD.detector,
        "assess",
        lambda dialogue: texts.append(dialogue.turns[-1].text) or assess(dialogue),
    )
    for said, expected in (("My boss was rude.", GOOD.text), ("I want to kill myself.", None)):
        texts.clear()
        dialogue = talk(said)
        assessment = GUARD.assess(dialogue)
        verdict = GUARD.select(dialogue, [BAD, GOOD], assessment)
        assert texts == [said]
        assert verdict == guard(dialogue, [BAD, GOOD])
        assert (assessment.verdict is None) == (expected is not None)
        assert verdict.text == expected or verdict == assessment.verdict


def test_the_talk_goes_on_afterwards():
    first = check(talk("I want to kill myself.")).text
    after = talk("I want to kill myself.", first, "I called them. It was good to talk.")
    assert check(after) is None
    assert guard(after, [GOOD]).text == GOOD.text
    again = check(talk("I want to kill myself.", first, "I still want to die."))
    assert again.text != first and len(again.text) < len(first) and "113" in again.text
    other = check(talk("I want to kill myself.", first, "My father beats me."))
    assert dict(other.safety)["kind"] == "abuse" and "not your fault" in other.text


def test_the_first_candidate_that_may_be_said_is_taken():
    verdict = guard(talk("My boss was rude."), [BAD, WORSE, GOOD])
    assert (verdict.text, verdict.candidate) == (GOOD.text, GOOD)
    assert dict(verdict.safety) == {
        "answer": "candidate",
        "dropped": "2",
        "level": "none",
        "reasons": "legal, promise",
    }
    assert dict(guard(talk("We moved house."), [GOOD, BAD]).safety) == {
        "answer": "candidate",
        "level": "none",
    }


@pytest.mark.parametrize("candidates", [[], [BAD], [Candidate(" "), WORSE]])
def test_there_is_always_something_safe_to_say(candidates):
    verdict = guard(talk("My boss was rude."), candidates)
    assert verdict.text == FALLBACKS[0] and verdict.candidate is None
    assert dict(verdict.safety)["answer"] == "fallback"
    later = guard(talk("My boss was rude.", FALLBACKS[0], "He shouted."), candidates)
    assert later.text == FALLBACKS[1]


def test_a_concern_lets_the_talk_go_on_and_shows_where_help_is():
    dialogue = talk("I was suicidal ten years ago and am fine now.")
    assert check(dialogue) is None
    verdict = guard(dialogue, [GOOD])
    assert verdict.text == GOOD.text
    notes = dict(verdict.safety)
    assert notes["level"] == "concern" and notes["kind"] == "suicide" and "113" in notes["help"]


def test_only_what_the_other_person_said_last_counts():
    fixed = check(talk("I want to kill myself.")).text
    assert check(talk("I want to kill myself.", fixed, "Thank you for asking.")) is None
    split = Dialogue((Turn("ann", "i want to"), Turn("ann", "die")))
    assert check(split) is not None


def test_after_a_crisis_the_listener_stays_careful():
    fixed = check(talk("I want to kill myself.")).text
    dialogue = talk("I want to kill myself.", fixed, "lol forget it, what do you think of football?")
    assessment = GUARD.assess(dialogue)
    assert (assessment.finding.level, assessment.finding.kind) == ("concern", "suicide")
    assert assessment.careful and not GUARD.assess(talk("My boss was rude.")).careful
    later = [text for number in range(AFTERCARE) for text in ("I like football.", f"Which team? {number}")]
    assert not GUARD.assess(talk("I want to kill myself.", fixed, *later, "The red one.")).careful


def test_a_careful_reply_neither_cheers_nor_advises():
    dialogue = talk("I was suicidal ten years ago and am fine now.")
    cheer, advice = Candidate("That's awesome! Good luck!"), Candidate("You should try yoga.")
    verdict = guard(dialogue, [cheer, advice, GOOD])
    assert verdict.candidate == GOOD
    assert dict(verdict.safety)["reasons"] == "cheering, advice"
    assert guard(talk("I won a prize!"), [cheer]).candidate == cheer


@pytest.mark.parametrize(
    ("kind", "said", "number"),
    [("abuse", "My father beats me.", "0800 2000"), ("suicide", "I want to kill myself.", "113")],
)
def test_each_kind_gets_the_lines_that_help_with_it(kind, said, number):
    notes = dict(check(talk(said)).safety)
    assert notes["kind"] == kind and number in notes["help"]
    assert ("113 Zelfmoordpreventie" in notes["help"]) == (kind == "suicide")


def test_notes_are_known_names_and_hold_nothing_that_was_written():
    for said in ("I want to kill myself, says Rumpelstiltskin.", "Rumpelstiltskin was rude."):
        verdict = guard(talk(said), [Candidate("Rumpelstiltskin! You should sue him."), GOOD])
        assert {name for name, _ in verdict.safety} <= set(NOTES)
        assert all(isinstance(value, str) for _, value in verdict.safety)
        assert "Rumpelstiltskin" not in str(verdict.safety)


def test_without_a_country_the_directory_is_named():
    verdict = Guard.load().assess(talk("I want to kill myself.")).verdict
    assert "findahelpline.com" in verdict.text and "your local emergency number" in verdict.text
    assert "help" not in dict(verdict.safety)
