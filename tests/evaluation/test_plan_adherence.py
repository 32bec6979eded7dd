import pytest

from listenwell.dialogue import Dialogue, Factors, Turn
from listenwell.errors import InputError
from listenwell.evaluation.score import agreement, annotate_replies
from tests.evaluation.fake_generator import FakeAnnotator

ER, EX = "emotional_reaction", "exploration"


def factors(mechanisms, act, expressed_emotion):
    return Factors(mechanisms=mechanisms, act=act, expressed_emotion=expressed_emotion)


PLANS = [
    factors((ER,), "consoling", "caring"),
    factors((ER, EX), "questioning", "caring"),
    factors((), "questioning", "joy"),
    factors((EX,), "agreeing", "neutral"),
]
LABELLED = [
    factors((ER,), "consoling", "caring"),
    factors((ER,), "questioning", "sadness"),
    factors((), "questioning", "joy"),
    factors((EX,), "others", "joy"),
]


def test_a_factor_is_realized_where_the_annotator_predicts_it():
    # CM: one of two mechanisms is a miss; DA and EM miss once and twice; the first and third are whole.
    assert agreement(PLANS, LABELLED) == {
        "cm_realized": 75,
        "da_realized": 75,
        "em_realized": 50,
        "all_realized": 50,
    }


def test_factors_that_no_plan_decides_are_left_out():
    partly = [Factors(act="consoling"), Factors(act="questioning"), Factors(), Factors(act="agreeing")]
    assert agreement(partly, LABELLED) == {"da_realized": pytest.approx(200 / 3)}
    with pytest.raises(InputError, match="No reply has a plan"):
        agreement([Factors()] * 4, LABELLED)


def test_a_missing_head_is_an_error():
    with pytest.raises(InputError, match="was not predicted"):
        agreement(PLANS[:1], [Factors(act="consoling")])


def test_replies_are_labelled_with_the_turn_they_answer_and_nothing_known():
    annotator = FakeAnnotator({"a": LABELLED[0], "b": LABELLED[1]})
    known = Turn("speaker", "post", Factors(act="wishing"))
    contexts = [Dialogue((Turn("listener", "before"), known)), Dialogue((Turn("speaker", "other"),))]
    measured = agreement(PLANS[:2], annotate_replies(contexts, ["a", "b"], annotator))
    assert measured == {"cm_realized": 50, "da_realized": 100, "em_realized": 50, "all_realized": 50}
    assert annotator.seen == [("post", "a"), ("other", "b")]
    with pytest.raises(InputError, match="do not pair up"):
        annotate_replies(contexts, ["a"], annotator)
