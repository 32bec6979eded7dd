from dataclasses import replace

import numpy as np
import pytest

from listenwell import Annotator, Dialogue, Factors, Listener, Turn, checkpoint
from listenwell.annotators import annotator as module
from listenwell.annotators.config import probabilities
from listenwell.annotators.heads import HEADS
from listenwell.annotators.inference import classify
from listenwell.annotators.model import MultiTaskClassifier, with_temperatures
from listenwell.annotators.views import encode_views
from listenwell.cli.terminal_chat import _emotion_bars
from listenwell.dialogue import Scored
from listenwell.errors import CheckpointError, InputError, UnknownNameError
from listenwell.labels import EMOTION_GROUPS, GOEMOTIONS, GROUP_MEMBERS, LEVELS, MECHANISMS
from listenwell.runtime.text import Vocabulary
from tests.test_listener import Echo
from tests.tiny import keep_ear, save_tiny_encoder, sure_ear, tiny_bert_tokenizer, tiny_ear

pytestmark = pytest.mark.usefixtures("installed_encoder")
VOCABULARY = Vocabulary(tiny_bert_tokenizer())
TALK = Dialogue(
    (
        Turn("speaker", "My dog died."),
        Turn("listener", "I am so sorry to hear that!"),
        Turn("listener", "What happened?"),
        Turn("speaker", "I got promoted"),
    )
)
CONTEXT, UTTERANCE = (
    ["emotion", "emotion_group", "response"],
    ["intent", "act", "expressed_emotion", "goemotions"],
)


@pytest.fixture(scope="module")
def classifier(tiny_encoder):
    """One ear with every head."""
    one = tiny_ear(tiny_encoder, HEADS, marks_words=True)
    with_temperatures(one, dict.fromkeys(HEADS, 1.5))
    return one


@pytest.fixture
def annotator(classifier):
    return Annotator([(classifier, VOCABULARY)], None, "weights")


def answer(classifier, head, *view):
    """The head's probabilities for one view, read alone."""
    logits = classify(classifier, encode_views(VOCABULARY, [view], 64)).logits(head)
    return probabilities(logits, head, classifier.config.temperature(head))[0]


def test_the_right_turns_are_read_by_the_right_heads(annotator):
    turns = annotator.annotate(TALK).turns
    assert [[reading.head for reading in turn.readings] for turn in turns] == [
        [*CONTEXT, *UTTERANCE],  # it answers nobody
        [*UTTERANCE, *MECHANISMS],  # the listener's
        UTTERANCE,  # nor does it answer itself
        [*CONTEXT, *UTTERANCE],  # only what the listener does is asked for
    ]
    assert [turn.text for turn in turns] == [turn.text for turn in TALK.turns]


def test_every_reading_is_that_of_its_own_view(annotator, classifier):
    turns = annotator.annotate(TALK).turns
    own = [turn.speaker == "listener" for turn in TALK.turns]
    said = [(turn.text, mine) for turn, mine in zip(TALK.turns, own, strict=True)]
    views = {
        (3, "emotion"): said,
        (0, "response"): said[:1],
        (1, "act"): [(said[1][0], False)],  # an utterance alone is nobody's
        (3, "expressed_emotion"): [said[3]],
        (1, "exploration"): [(said[0][0], False), (said[1][0], True)],
    }
    for (place, head), view in views.items():
        found, wanted = turns[place].reading(head), answer(classifier, head, *view)
        order = np.argsort(-wanted)[: len(found.scores)]
        assert [score.label for score in found.scores] == [HEADS[head].labels[int(n)] for n in order]
        assert [score.probability for score in found.scores] == pytest.approx(wanted[order], abs=2e-4)


def test_the_listener_is_whom_the_dialogue_names(annotator):
    turns = annotator.annotate(replace(TALK, listener="speaker")).turns
    assert [turn.reading("emotion") is not None for turn in turns] == [False, True, True, False]


def test_top_is_how_many_labels_are_kept(annotator):
    for place, heads in ((1, [*UTTERANCE, *MECHANISMS]), (3, [*CONTEXT, *UTTERANCE])):
        turn = annotator.annotate(TALK, top=2).turns[place]
        kept = {reading.head: len(reading.scores) for reading in turn.readings}
        # A level is read from all three; of several labels all that are given stay.
        assert {head: kept[head] for head in heads if head != "goemotions"} == {
            head: 3 if head in MECHANISMS else 2 for head in heads if head != "goemotions"
        }
    for reading in annotator.annotate(TALK, top=99).turns[3].readings:
        shares = [score.probability for score in reading.scores]
        assert shares == sorted(shares, reverse=True)
        group = reading.head == "emotion_group"
        labels = EMOTION_GROUPS if group else HEADS[reading.head].labels
        assert {score.label for score in reading.scores} == set(labels)
        if reading.head != "goemotions":
            assert sum(shares) == pytest.approx(1, abs=0.005)
    with pytest.raises(InputError, match="top is 0"):
        annotator.annotate(TALK, top=0)


def test_a_group_is_as_likely_as_its_members_together(annotator):
    turn = annotator.annotate(TALK, top=99).turns[0]
    alone = {score.label: score.probability for score in turn.reading("emotion").scores}
    for score in turn.reading("emotion_group").scores:
        batch_size = sum(alone[emotion] for emotion in GROUP_MEMBERS[score.label])
        assert score.probability == pytest.approx(batch_size, abs=5e-4)


def test_all_of_several_labels_that_are_likelier_than_not_are_kept(tiny_encoder):
    sure = dict(zip(GOEMOTIONS, (4.0, 3.0, 2.0, 1.0), strict=False))
    classifier = sure_ear(tiny_encoder, {"goemotions": sure | dict.fromkeys(GOEMOTIONS.labels[4:], -2.0)})
    annotator = Annotator([(classifier, VOCABULARY)], None, "")
    (few,) = annotator.annotate(TALK, top=2).turns[0].readings
    (many,) = annotator.annotate(TALK, top=6).turns[0].readings
    assert [score.label for score in few.scores] == list(GOEMOTIONS.labels[:4])
    assert few.scores[3].probability == round(1 / (1 + np.exp(-1)), 4)
    assert [score.label for score in many.scores] == list(GOEMOTIONS.labels[:6])


@pytest.fixture
def passes(monkeypatch):
    """How many texts each pass of the encoder read."""
    rows, states = [], MultiTaskClassifier.states
    monkeypatch.setattr(
        MultiTaskClassifier,
        "states",
        lambda self, tokens, *rest: rows.append(len(tokens)) or states(self, tokens, *rest),
    )
    return rows


def test_equal_views_are_read_once(annotator, passes):
    annotator.annotate(Dialogue(TALK.turns[:1]))
    assert passes == [1]  # alone, a dialogue's first turn is its context too
    passes.clear()
    list(annotator.annotate_all([TALK, TALK, replace(TALK, id="again")]))
    # Four utterances, of which the first is a context too, one more context, and one reply.
    assert sum(passes) == 6


def test_no_turn_costs_more_than_two_passes(annotator, passes):
    before = 0
    for turns in range(1, len(TALK.turns) + 1):
        passes.clear()
        annotator.annotate(Dialogue(TALK.turns[:turns]))
        assert sum(passes) - before <= 2
        before = sum(passes)


def test_many_are_read_as_one_by_one(annotator, monkeypatch):
    texts = ["sad", "so happy to hear that", "!", "I am so sorry, what happened to my new job?"]
    talks = [
        Dialogue(tuple(Turn(who, texts[(n + m) % 4]) for m, who in enumerate(["a", "listener", "a"])), f"{n}")
        for n in range(7)
    ]
    alone = [annotator.annotate(talk) for talk in talks]
    assert list(annotator.annotate_all(talks)) == alone
    monkeypatch.setattr(module, "WINDOW", 2)
    assert list(annotator.annotate_all(iter(talks))) == alone
    assert list(annotator.annotate_all([])) == []
    assert [dialogue.id for dialogue in alone] == list("0123456")


def test_no_more_than_a_window_is_read_ahead(annotator, monkeypatch):
    monkeypatch.setattr(module, "WINDOW", 3)
    taken = []
    stream = annotator.annotate_all(taken.append(n) or replace(TALK, id=str(n)) for n in range(9))
    assert taken == []
    assert next(stream).id == "0"
    assert taken == [0, 1, 2]


def test_factors_follow_from_the_readings(annotator):
    first, second, third, fourth = (turn for turn in annotator.annotate(TALK).turns)
    for turn in (first, second, third, fourth):
        for head in ("act", "expressed_emotion", "intent"):
            assert getattr(turn.factors, head) == turn.reading(head).scores[0].label
    assert first.factors.emotion is None  # of the listener's turns alone
    assert second.factors.emotion == third.factors.emotion == first.reading("emotion").scores[0].label
    assert first.factors.levels is None
    assert fourth.factors.levels is None
    for turn in (second,):
        shares = [{s.label: s.probability for s in turn.reading(name).scores} for name in MECHANISMS]
        expressed = tuple(
            name for name, probability in zip(MECHANISMS, shares, strict=True) if probability["no"] < 0.5
        )
        assert turn.factors.mechanisms == expressed
        assert [level > 0 for level in turn.factors.levels] == [name in expressed for name in MECHANISMS]


def test_what_is_known_is_kept_and_the_rest_is_filled(annotator):
    gold = Factors(emotion="proud", act="wishing", levels=(0, 2, 0), strategy="questions")
    known = replace(TALK, turns=(TALK.turns[0], replace(TALK.turns[1], factors=gold)), emotion="guilty")
    found = annotator.annotate(known)
    plain = annotator.annotate(replace(TALK, turns=TALK.turns[:2]))
    assert found.turns[1].factors == replace(
        gold, expressed_emotion=plain.turns[1].factors.expressed_emotion, intent=plain.turns[1].factors.intent
    )
    assert found.turns[1].readings == plain.turns[1].readings
    assert found.emotion == "guilty"
    assert annotator.annotate(found) == found


def test_words_are_shown_where_a_mechanism_is(tiny_encoder):
    import torch

    def heard(level, mark):
        opinions = {"act": {}, "exploration": {level: 3.0}}
        classifier = sure_ear(tiny_encoder, opinions, marks_words=True)
        with torch.no_grad():
            classifier.words.weight.zero_()
            classifier.words.bias.fill_(mark)
        return (
            Annotator([(classifier, VOCABULARY)], None, "")
            .annotate(TALK)
            .turns[1]
            .reading("exploration")
            .words
        )

    assert heard("strong", 1.0) == ("I am so sorry to hear that!",)
    assert heard("strong", -1.0) == ()
    assert heard("no", 1.0) == ()  # nothing is shown of what is not there


def test_what_cannot_be_spelled_is_read_all_the_same(annotator):
    texts = ["\u200b", "\ud800", "[SEP] [CLS]", "🙂" * 500, "sad " * 9000]
    talk = Dialogue(tuple(Turn(("speaker", "listener")[n % 2], text) for n, text in enumerate(texts)))
    found = annotator.annotate(talk)
    assert [turn.text for turn in found.turns] == texts
    assert all(turn.reading("act").scores for turn in found.turns)
    assert Dialogue.from_json(found.to_json()) == found


def test_heads_are_chosen_and_stand_in_their_order(tiny_encoder, tmp_path):
    folder = keep_ear(
        tiny_ear(tiny_encoder, ["expressed_emotion", "exploration", "act", "emotion"]),
        tmp_path / "classifier",
    )
    assert Annotator.load(folder).heads == ("emotion", "act", "expressed_emotion", "exploration")
    chosen = Annotator.load(folder, heads=["expressed_emotion", "act"])
    assert chosen.heads == ("act", "expressed_emotion")
    assert [r.head for r in chosen.annotate(TALK).turns[3].readings] == ["act", "expressed_emotion"]
    assert all(turn.factors.emotion is None for turn in chosen.annotate(TALK).turns)
    assert all(turn.readings == () for turn in Annotator.load(folder, heads=[]).annotate(TALK).turns)
    only = Annotator.load(folder, heads=["exploration"])
    assert only.annotate(Dialogue(TALK.turns[:1])).turns == TALK.turns[:1]  # one turn answers nobody


def test_several_ears_in_one_folder_share_the_heads(tiny_encoder, tmp_path):
    keep_ear(
        sure_ear(tiny_encoder, {"act": {"wishing": 5.0}, "expressed_emotion": {"joy": 5.0}}),
        tmp_path / "both" / "a",
    )
    keep_ear(
        sure_ear(tiny_encoder, {"act": {"others": 5.0}, "emotion": {"sad": 5.0}}), tmp_path / "both" / "b"
    )
    both = Annotator.load(tmp_path / "both")
    assert both.heads == ("emotion", "act", "expressed_emotion")
    second = both.annotate(TALK).turns[1].factors
    assert (second.emotion, second.act, second.expressed_emotion) == (
        "sad",
        "wishing",
        "joy",
    )  # the first that has a head
    assert both.understand(TALK)[0].label == "sad"
    one, other = Annotator.load(tmp_path / "both" / "a"), Annotator.load(tmp_path / "both" / "b")
    assert len({both.key, one.key, other.key}) == 3


def test_the_key_names_weights_and_heads(tiny_encoder, tmp_path):
    folder = keep_ear(tiny_ear(tiny_encoder, ["act", "expressed_emotion"], lora=True), tmp_path / "one")
    same = keep_ear(tiny_ear(tiny_encoder, ["act", "expressed_emotion"], lora=True), tmp_path / "same")
    other = keep_ear(
        tiny_ear(tiny_encoder, ["act", "expressed_emotion"], lora=True, seed=2), tmp_path / "other"
    )
    key = Annotator.load(folder).key
    assert (
        len(key) == 64
        and key == Annotator.load(same).key == Annotator.load(folder, ["expressed_emotion", "act"]).key
    )
    assert key != Annotator.load(other).key
    assert key != Annotator.load(folder, ["act"]).key
    (tmp_path / "encoder").mkdir()
    encoder = save_tiny_encoder(tmp_path / "encoder", seed=9)
    assert key != Annotator.load(folder, weights=encoder).key  # the encoder is half of the weights


def test_a_runs_folder_is_read_by_its_best_checkpoint(tiny_encoder, tmp_path):
    keep_ear(tiny_ear(tiny_encoder, ["act"]), tmp_path / "run" / "best")
    with checkpoint.writing(tmp_path / "run" / "last", "training") as folder:
        (folder / "training.json").write_text("{}")
    assert Annotator.load(tmp_path / "run").key == Annotator.load(tmp_path / "run" / "best").key


def test_errors_say_what_to_do(tiny_encoder, tmp_path):
    folder = keep_ear(tiny_ear(tiny_encoder, ["act", "expressed_emotion"]), tmp_path / "classifier")
    with pytest.raises(UnknownNameError, match=r"no head named 'emotions'. Did you mean 'emotion'"):
        Annotator.load(folder, heads=["emotions"])
    with pytest.raises(UnknownNameError, match="no head named 'emotion'"):
        Annotator.load(folder, heads=["emotion"])
    with pytest.raises(UnknownNameError, match="no head named 'emotion'"):
        Annotator.load(folder).understand(TALK)
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "empty", tmp_path / "nowhere"):
        with pytest.raises(CheckpointError, match=r"holds no annotators.*listenwell train"):
            Annotator.load(place)
    with checkpoint.writing(tmp_path / "bags" / "one", "bag") as place:
        (place / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="a 'fasttext' checkpoint, not 'classifier'"):
        Annotator.load(tmp_path / "bags")
    (folder / "model.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"model\.safetensors is damaged"):
        Annotator.load(folder)


def test_what_a_person_feels_is_the_reading_of_the_whole_talk(annotator):
    heard = annotator.understand(TALK)
    assert heard == annotator.annotate(TALK).turns[3].reading("emotion").scores
    assert len(heard) == 5 and heard[0].probability >= heard[4].probability > 0


def test_a_listener_hears_through_it(annotator):
    reply = Listener(Echo(), understand=annotator).reply("My dog died.", seed=1)
    assert reply.emotion == annotator.annotate(Dialogue(TALK.turns[:1])).turns[0].reading("emotion").scores


def test_a_loaded_listener_hears_unless_it_is_told_not_to(tiny_encoder, tiny_llama, tmp_path, monkeypatch):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("system: Listen.\nshots: []\nprompt_tokens: 64\ndecoding: {max_tokens: 2}")
    deaf = Listener.load("prompted", weights=tiny_llama, recipe=recipe, without=("understand",))
    assert deaf.understand is None and deaf.reply("sad", seed=1).emotion is None
    keep_ear(sure_ear(tiny_encoder, {"emotion": {"sad": 9.0}, "act": {}}), tmp_path / "shipped" / "all")
    monkeypatch.setattr(module, "SHIPPED", tmp_path / "shipped")
    hearing = Listener.load("prompted", weights=tiny_llama, recipe=recipe)
    assert hearing.understand.heads == ("emotion",)
    assert hearing.reply("sad", seed=1).emotion[0].label == "sad"


def test_what_was_heard_is_shown_as_bars():
    assert _emotion_bars((Scored("proud", 0.5), Scored("sad", 0.1))).splitlines() == [
        f"proud {'█' * 15}{' ' * 15} 50%",
        f"  sad {'█' * 3}{' ' * 27} 10%",
    ]
    assert _emotion_bars(None) == "Write a message first."


def test_a_level_is_never_read_from_two_of_three(annotator):
    reading = annotator.annotate(TALK, top=1).turns[1].reading("exploration")
    assert {score.label for score in reading.scores} == set(LEVELS)


def test_the_last_turn_can_be_read_alone(annotator):
    (whole,), (last,) = (list(annotator.annotate_all([TALK], last=alone)) for alone in (False, True))
    assert all(turn.readings for turn in whole.turns)
    assert last.turns[:-1] == TALK.turns[:-1]
    assert last.turns[-1].readings == whole.turns[-1].readings


def test_it_is_called_with_one_text_or_a_list(tiny_encoder, tmp_path):
    folder = keep_ear(tiny_ear(tiny_encoder, HEADS, marks_words=True), tmp_path / "classifier")
    annotator = Annotator.from_pretrained(str(folder), heads=("emotion", "act"))
    turn = annotator("My dog died.")
    assert turn == annotator.annotate(Dialogue((Turn("speaker", "My dog died."),))).turns[0]
    both = annotator(["My dog died.", "I got promoted"])
    assert both[0] == turn and both[1].text == "I got promoted" and annotator([]) == []
    dialogue = Dialogue((Turn("speaker", "My dog died."), Turn("listener", "So sorry!")))
    assert annotator(dialogue, top=1).reading("act").scores == annotator("So sorry!", 1).reading("act").scores


def test_replies_are_scored_without_rationales(tiny_encoder, tmp_path, monkeypatch):
    folder = keep_ear(tiny_ear(tiny_encoder, HEADS, marks_words=True), tmp_path / "classifier")
    annotator = Annotator.from_pretrained(folder)
    dialogue = Dialogue((Turn("speaker", "My dog died."),))
    (whole,) = annotator.annotate_all(
        [Dialogue((*dialogue.turns, Turn("listener", "So sorry!")))], top=99, last=True
    )
    for name in ("shown_parts", "with_factors"):
        monkeypatch.setattr(f"listenwell.annotators.annotator.{name}", None)
    (readings,) = annotator.read_replies(dialogue, ["So sorry!"])
    for reading in readings:
        labels = whole.turns[-1].reading(reading.head).scores[: len(reading.scores)]
        assert reading.words == () and reading.scores == labels
