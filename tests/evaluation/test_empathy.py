import pytest

from listenwell.dialogue import Dialogue, Factors, Persona, Turn
from listenwell.evaluation.score import load_annotator, measure_empathy
from tests.evaluation.fake_generator import FakeAnnotator

CONTEXT = Dialogue((Turn("speaker", "I didn't get the job."),))
LEVELS = {
    "how sad !": Factors(levels=(2, 0, 0)),
    "what happened ?": Factors(levels=(0, 0, 1)),
    "my wife lost hers too .": Factors(levels=(1, 2, 0)),
}
REPLIES = ["How sad!", "What happened?", "My wife lost hers too."]


def test_mean_levels_and_unsupported_disclosure():
    measured = measure_empathy([CONTEXT] * 3, REPLIES, FakeAnnotator(LEVELS))
    assert measured == {
        "er_level": 1.0,
        "ip_level": pytest.approx(2 / 3),
        "ex_level": pytest.approx(1 / 3),
        "invented_life": pytest.approx(100 / 3),
    }


def test_what_the_persona_tells_is_supported():
    married = Dialogue(CONTEXT.turns, personas=(Persona("listener", ("my wife works in a bakery.",)),))
    assert measure_empathy([CONTEXT, CONTEXT, married], REPLIES, FakeAnnotator(LEVELS))["invented_life"] == 0
    other = Dialogue(CONTEXT.turns, personas=(Persona("speaker", ("my wife works in a bakery.",)),))
    assert measure_empathy([CONTEXT, CONTEXT, other], REPLIES, FakeAnnotator(LEVELS))["invented_life"] > 0


def test_files_that_are_taken_apart_are_read_as_ordinary_text_is():
    annotator = FakeAnnotator(LEVELS)
    taken_apart = Dialogue((Turn("speaker", "i did n't get the job ."),))
    measure_empathy([CONTEXT, taken_apart], ["How sad!", "how sad !"], annotator)
    assert annotator.seen == [("i didn't get the job .", "how sad !")] * 2


def test_the_shipped_annotators_recognize_warmth_and_questions():
    measured = [
        measure_empathy([CONTEXT], [reply], load_annotator())
        for reply in ("I am so sorry, that must hurt so much.", "What kind of job was it?")
    ]
    assert measured[0]["er_level"] > measured[1]["er_level"]
    assert measured[1]["ex_level"] > measured[0]["ex_level"]
