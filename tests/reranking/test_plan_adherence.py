import pytest

from listenwell.annotators.annotator import Annotator
from listenwell.annotators.heads import HEADS, REPLY_HEADS
from listenwell.dialogue import Candidate, Dialogue, Factors, Turn
from listenwell.reranking.features import (
    least_probability,
    mean_probability,
    mechanism_levels,
    plan_adherence,
    predict_candidates,
)
from listenwell.runtime.text import Vocabulary
from tests.tiny import tiny_bert_tokenizer, tiny_ear

pytestmark = pytest.mark.usefixtures("installed_encoder")
TALK = Dialogue((Turn("speaker", "My dog died."), Turn("listener", "Oh no."), Turn("speaker", "I am sad")))


@pytest.fixture(scope="module")
def annotator(tiny_encoder):
    classifier = tiny_ear(tiny_encoder, HEADS, marks_words=True)
    return Annotator([(classifier, Vocabulary(tiny_bert_tokenizer()))], REPLY_HEADS, "weights")


def predicted(annotator, dialogue, replies):
    plan = Factors(act="questioning")
    return predict_candidates(annotator, dialogue, [Candidate(reply, plan) for reply in replies])


def levels(no):
    return {"no": no, "weak": 1 - no}


READ = {
    "act": {"questioning": 0.7, "agreeing": 0.3},
    "expressed_emotion": {"caring": 0.6},
    "emotional_reaction": levels(0.1),
    "interpretation": levels(0.8),
    "exploration": levels(0.5),
}


def test_adherence_is_the_mean_over_what_was_planned():
    assert mean_probability(Factors(act="questioning"), READ) == pytest.approx(0.7)
    assert mean_probability(Factors(act="questioning", expressed_emotion="caring"), READ) == pytest.approx(
        0.65
    )
    assert mean_probability(Factors(act="encouraging"), READ) == 0  # not among what was read
    reacts = Factors(mechanisms=("emotional_reaction",))
    assert mean_probability(reacts, READ) == pytest.approx((0.9 + 0.8 + 0.5) / 3)
    assert mean_probability(Factors(mechanisms=()), READ) == pytest.approx((0.1 + 0.8 + 0.5) / 3)
    assert mean_probability(Factors(mechanisms=(), expressed_emotion="caring"), READ) == pytest.approx(
        (1.4 / 3 + 0.6) / 2
    )


def test_a_target_is_as_likely_as_its_least_likely_part():
    reacts = Factors(mechanisms=("emotional_reaction",), expressed_emotion="caring")
    assert least_probability(reacts, READ) == pytest.approx(0.5)  # exploration, which was not asked for
    assert least_probability(Factors(mechanisms=()), READ) == pytest.approx(0.1)
    assert least_probability(Factors(act="questioning"), READ) == pytest.approx(0.7)
    assert least_probability(Factors(act="questioning", expressed_emotion="caring"), READ) == pytest.approx(
        0.6
    )
    assert least_probability(Factors(act="encouraging", expressed_emotion="caring"), READ) == 0


def test_what_was_not_planned_or_not_read_does_not_count():
    assert mean_probability(Factors(emotion="sad"), READ) is None
    assert mean_probability(Factors(act="questioning"), {}) is None
    assert least_probability(Factors(emotion="sad"), READ) is None
    assert least_probability(Factors(expressed_emotion="caring"), {}) is None


def test_replies_are_predicted_as_in_the_dialogue(annotator):
    replies = ["I am so sorry.", "What happened?"]
    for reply, prediction in zip(replies, predicted(annotator, TALK, replies), strict=True):
        whole = Dialogue((*TALK.turns, Turn("listener", reply)))
        expected = annotator.annotate(whole, top=10).turns[-1]
        assert set(prediction) == set(REPLY_HEADS)
        for reading in expected.readings:
            own = prediction[reading.head]
            # Rounded to four digits, in batches of another shape.
            assert own == pytest.approx({s.label: s.probability for s in reading.scores}, abs=2e-4)
            assert list(own.values()) == sorted(own.values(), reverse=True)
        assert len(prediction["expressed_emotion"]) == 10
    alone = Dialogue((Turn("listener", "Hello."),))
    assert set(predicted(annotator, alone, ["Hi."])[0]) == {"act", "expressed_emotion"}


def test_only_planned_candidates_are_scored(annotator):
    plan = Factors(act="questioning", mechanisms=("exploration",))
    candidates = [
        Candidate("What happened?", plan),
        Candidate("Oh."),
        Candidate("Oh!", Factors(emotion="sad")),
    ]
    found = plan_adherence(predict_candidates(annotator, TALK, candidates), candidates)
    assert found[1:] == [None, None]
    assert found[0] == mean_probability(plan, predicted(annotator, TALK, ["What happened?"])[0])
    assert plan_adherence(predict_candidates(annotator, TALK, []), []) == []


def test_a_reply_without_words_is_not_predicted(annotator):
    candidates = [Candidate(" ", Factors(act="questioning")), Candidate("Oh.", Factors(act="questioning"))]
    readings = predict_candidates(annotator, TALK, candidates)
    assert readings[0] is None and readings[1] is not None
    assert (
        plan_adherence(readings, candidates)[0] is None
        and mechanism_levels(readings, "exploration")[0] is None
    )


def test_the_level_of_a_mechanism_is_its_likeliest_one():
    predictions = [
        {"exploration": {"no": 0.6, "weak": 0.3, "strong": 0.1}},
        {"exploration": {"weak": 0.4, "no": 0.3, "strong": 0.3}},
        {"exploration": {"strong": 0.7, "weak": 0.2, "no": 0.1}},
        None,
    ]
    assert mechanism_levels(predictions, "exploration") == [0, 1, 2, None]
    assert mechanism_levels(predictions, "interpretation") == [None] * 4


def test_a_target_counts_instead_of_the_plan(annotator):
    candidates = [Candidate("What happened?", Factors(act="encouraging")), Candidate("Oh.")]
    target = Factors(act="questioning")
    readings = predict_candidates(annotator, TALK, candidates)
    found = plan_adherence(readings, candidates, target)
    assert found == [least_probability(target, predicted(annotator, TALK, ["What happened?"])[0]), None]
    assert found != plan_adherence(readings, candidates)
