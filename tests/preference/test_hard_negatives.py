from dataclasses import replace

import pytest

from listenwell.dialogue import Dialogue, Example, Factors, Turn
from listenwell.errors import InputError
from listenwell.files import ResumableJsonl
from listenwell.generators.generation import generate_rows
from listenwell.generators.plans import plan_of
from listenwell.labels import EMOTIONS, MIXED, PLEASANT, contradicts
from listenwell.preference import pairs as making
from listenwell.preference.hard_negatives import hard_negative_pairs, opposites
from listenwell.preference.pairs import Batch, MismatchedReplies, make_pairs, read_planned
from listenwell.training.preference_pairs import conversation_hash, read_pairs
from tests.preference.test_pairs import SETTINGS
from tests.training.test_planned import annotated

FACTORS = Factors(mechanisms=(), act="wishing", expressed_emotion="joy")


class Says:
    """A generator whose reply names what it was given."""

    def __init__(self):
        self.places = []

    def replies(self, asked, places):
        self.places += places
        return [f"{len(one.context.turns)} turns of {one.context.id}, {plan.emotion}" for one, plan in asked]


def planned(talk, emotion, *turns):
    said = tuple(
        Turn("listener" if number % 2 else "speaker", text) for number, text in enumerate(turns[:-1])
    )
    example = Example(Dialogue(said, talk, emotion=emotion), Turn("listener", turns[-1], FACTORS))
    return example, plan_of(example)


KNOWN = [
    planned("a", "sad", "My dog died.", "Oh no.", "It was old.", "It had a good life."),
    planned("b", "sad", "I lost my keys.", "Where?"),
    planned("c", "joyful", "I won!", "Well done!"),
]


def test_each_kind_of_pair_sets_a_fitting_reply_against_one_that_is_wrong_in_its_own_way():
    own = Says()
    found = list(hard_negative_pairs(Batch(KNOWN, [0, 1, 2], own, MismatchedReplies(KNOWN), 1)))
    of_a = {pair.source: (pair.chosen, pair.rejected) for pair in found if pair.context.id == "a"}
    assert of_a == {
        "again": ("It had a good life.", "Oh no."),
        "other": ("It had a good life.", "Where?"),
        "mistaken": ("3 turns of a, sad", "3 turns of a, joyful"),
        "forgot": ("3 turns of a, sad", "1 turns of a, sad"),
        "elsewhere": ("3 turns of a, sad", "1 turns of b, sad"),
    }
    # Nothing was said before, and nobody else was joyful.
    assert {pair.source for pair in found if pair.context.id == "c"} == {"other", "mistaken"}
    assert all(pair.plan.emotion == pair.context.emotion for pair in found)
    assert len(set(own.places)) == len(own.places)  # no two replies are drawn by the same numbers
    assert found == list(hard_negative_pairs(Batch(KNOWN, [0, 1, 2], Says(), MismatchedReplies(KNOWN), 1)))


def test_opposites_are_of_the_other_side():
    assert "joyful" in opposites("sad") and "sad" not in opposites("sad") and "angry" not in opposites("sad")
    assert "sad" in opposites("proud") and "joyful" not in opposites("proud")
    assert opposites("nostalgic") == set(EMOTIONS) - {"nostalgic"}
    assert all(not opposites(emotion) & MIXED for emotion in set(EMOTIONS) - MIXED)
    assert set(EMOTIONS) > PLEASANT and not PLEASANT & MIXED


@pytest.mark.parametrize(
    ("expressed_emotion", "emotion", "wrong"),
    [
        ("joy", "devastated", True),
        ("admiration", "disappointed", True),
        ("sadness", "devastated", False),
        ("caring", "sad", False),
        ("anger", "proud", True),
        ("joy", "proud", False),
        ("surprise", "joyful", False),
        ("joy", "nostalgic", False),
        ("sadness", "nostalgic", False),
    ],
)
def test_a_expressed_emotion_can_be_on_the_wrong_side_of_a_feeling(expressed_emotion, emotion, wrong):
    assert contradicts(expressed_emotion, emotion) is wrong


def test_the_pairs_of_a_real_speaker_and_no_batch_of_another_kind_among_them(
    tiny_generator, tmp_path, monkeypatch
):
    def whole(*given):  # the tiny generator never learned to end a reply
        return [replace(reply, tokens=1) for reply in generate_rows(*given)]

    monkeypatch.setattr(making, "generate_rows", whole)
    talks = tmp_path / "train.jsonl"
    talks.write_text("\n".join(talk.to_json() for talk in annotated(12)) + "\n")
    counts = make_pairs(tiny_generator, talks, tmp_path / "pairs.jsonl", SETTINGS, hard_negative_pairs)
    pairs = read_pairs(tmp_path / "pairs.jsonl")
    assert sum(counts.values()) == len(pairs) and set(counts) >= {"mistaken", "elsewhere"}
    assert {pair.context.id for pair in pairs} <= {one.context.id for one, _ in read_planned(talks)}
    assert {conversation_hash(pair) for pair in pairs if pair.context.id == pairs[0].context.id} == {
        conversation_hash(pairs[0])
    }
    ResumableJsonl(tmp_path / "more.jsonl", {"negatives": "own_pairs"}).add("0", [])
    with pytest.raises(InputError, match="begun with other inputs or settings"):
        make_pairs(tiny_generator, talks, tmp_path / "more.jsonl", SETTINGS, hard_negative_pairs)
