import pytest

from listenwell.annotators.annotator import Annotator
from listenwell.annotators.heads import HEADS
from listenwell.annotators.replies import REPLY_HEADS, read_replies
from listenwell.dialogue import Candidate, Dialogue, Factors, Reading, Scored, Turn
from listenwell.reranking.plan_adherence import agreement, plan_adherence, read_candidates, shown, weakest
from listenwell.runtime.text import Vocabulary
from tests.tiny import tiny_bert_tokenizer, tiny_ear

pytestmark = pytest.mark.usefixtures("installed_encoder")
TALK = Dialogue((Turn("speaker", "My dog died."), Turn("listener", "Oh no."), Turn("speaker", "I am sad")))


@pytest.fixture(scope="module")
def annotator(tiny_encoder):
    classifier = tiny_ear(tiny_encoder, HEADS, marks_words=True)
    return Annotator([(classifier, Vocabulary(tiny_bert_tokenizer()))], REPLY_HEADS, "weights")


def levels(head, no):
    return Reading(head, (Scored("no", no), Scored("weak", 1 - no)))


READ = Turn(
    "listener",
    "How sad!",
    readings=(
        Reading("act", (Scored("questioning", 0.7), Scored("agreeing", 0.3))),
        Reading("tone", (Scored("caring", 0.6),)),
        levels("emotional_reaction", 0.1),
        levels("interpretation", 0.8),
        levels("exploration", 0.5),
    ),
)


def test_agreement_is_the_mean_over_what_was_planned():
    assert agreement(Factors(act="questioning"), READ) == pytest.approx(0.7)
    assert agreement(Factors(act="questioning", tone="caring"), READ) == pytest.approx(0.65)
    assert agreement(Factors(act="encouraging"), READ) == 0  # not among what was read
    reacts = Factors(mechanisms=("emotional_reaction",))
    assert agreement(reacts, READ) == pytest.approx((0.9 + 0.8 + 0.5) / 3)
    assert agreement(Factors(mechanisms=()), READ) == pytest.approx((0.1 + 0.8 + 0.5) / 3)
    assert agreement(Factors(mechanisms=(), tone="caring"), READ) == pytest.approx((1.4 / 3 + 0.6) / 2)


def test_what_was_asked_for_is_as_likely_as_its_weakest_part():
    reacts = Factors(mechanisms=("emotional_reaction",), tone="caring")
    assert weakest(reacts, READ) == pytest.approx(0.5)  # exploration, which was not asked for
    assert weakest(Factors(mechanisms=()), READ) == pytest.approx(0.1)
    assert weakest(Factors(act="questioning"), READ) == pytest.approx(0.7)
    assert weakest(Factors(act="questioning", tone="caring"), READ) == pytest.approx(0.6)
    assert weakest(Factors(act="encouraging", tone="caring"), READ) == 0


def test_what_was_not_planned_or_not_read_does_not_count():
    assert agreement(Factors(emotion="sad"), READ) is None
    assert agreement(Factors(act="questioning"), Turn("listener", "Hi")) is None
    assert weakest(Factors(emotion="sad"), READ) is None
    assert weakest(Factors(tone="caring"), Turn("listener", "Hi")) is None


def test_replies_are_read_as_in_the_dialogue(annotator):
    replies = ["I am so sorry.", "What happened?"]
    found = read_replies(annotator, TALK, replies)
    for reply, turn in zip(replies, found, strict=True):
        whole = Dialogue((*TALK.turns, Turn("listener", reply)))
        wanted = annotator.annotate(whole, top=10).turns[-1]
        assert [reading.head for reading in turn.readings] == list(REPLY_HEADS)
        for mine, theirs in zip(turn.readings, wanted.readings, strict=True):
            probabilities = {score.label: score.probability for score in theirs.scores}
            for score in mine.scores:
                assert score.probability == pytest.approx(probabilities[score.label], abs=2e-4)
    assert [len(turn.reading("tone").scores) for turn in found] == [10, 10]


def test_only_planned_candidates_are_judged(annotator):
    plan = Factors(act="questioning", mechanisms=("exploration",))
    candidates = [
        Candidate("What happened?", plan),
        Candidate("Oh."),
        Candidate("Oh!", Factors(emotion="sad")),
    ]
    found = plan_adherence(read_candidates(annotator, TALK, candidates), candidates)
    assert found[1:] == [None, None]
    assert found[0] == agreement(plan, read_replies(annotator, TALK, ["What happened?"])[0])
    assert plan_adherence(read_candidates(annotator, TALK, []), []) == []


def test_what_has_no_words_is_not_read(annotator):
    candidates = [Candidate(" ", Factors(act="questioning")), Candidate("Oh.", Factors(act="questioning"))]
    readings = read_candidates(annotator, TALK, candidates)
    assert readings[0] is None and readings[1] is not None
    assert plan_adherence(readings, candidates)[0] is None and shown(readings, "exploration")[0] is None


def test_a_mechanism_is_shown_by_its_likeliest_level():
    def turn(*probabilities):
        scores = sorted(
            map(Scored, ("no", "weak", "strong"), probabilities), key=lambda one: -one.probability
        )
        return Turn("listener", "Oh.", readings=(Reading("exploration", tuple(scores)),))

    readings = [turn(0.6, 0.3, 0.1), turn(0.3, 0.4, 0.3), turn(0.1, 0.2, 0.7), None]
    assert shown(readings, "exploration") == [0, 1, 2, None]
    assert shown(readings, "interpretation") == [None] * 4


def test_who_asks_is_answered_whatever_the_plan_was(annotator):
    candidates = [Candidate("What happened?", Factors(act="encouraging")), Candidate("Oh.")]
    want = Factors(act="questioning")
    readings = read_candidates(annotator, TALK, candidates)
    found = plan_adherence(readings, candidates, want)
    assert found == [weakest(want, read_replies(annotator, TALK, ["What happened?"])[0]), None]
    assert found != plan_adherence(readings, candidates)
