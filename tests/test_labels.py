import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell import labels
from listenwell.errors import InputError, UnknownNameError

SETS = [value for value in vars(labels).values() if isinstance(value, labels.LabelSet)]


def test_sizes_are_the_published_ones():
    sizes = {
        "EMOTIONS": 32,
        "EMOTION_GROUPS": 16,
        "INTENTS": 8,
        "EMOTIONS_AND_INTENTS": 41,
        "MANUAL_INTENTS": 15,
        "ACTS": 9,
        "MECHANISMS": 3,
        "EXPRESSED_EMOTIONS": 10,
        "GOEMOTIONS": 28,
        "NEWSGROUPS": 20,
        "STRATEGIES": 8,
    }
    assert {name: len(getattr(labels, name)) for name in sizes} == sizes


def test_numbers_are_the_publishers():
    assert labels.EMOTIONS_AND_INTENTS.index("agreeing") == 32
    assert labels.EMOTIONS_AND_INTENTS.index("questioning") == 38
    assert labels.EMOTIONS_AND_INTENTS.index("neutral") == 40
    assert labels.GOEMOTIONS.index("neutral") == 27
    assert labels.GOEMOTIONS[15] == "gratitude"


@pytest.mark.parametrize("label_set", SETS, ids=lambda s: s.kind)
def test_no_label_stands_twice_and_index_inverts(label_set):
    assert len(set(label_set)) == len(label_set)
    assert [label_set[label_set.index(label)] for label in label_set] == list(label_set)


def test_every_emotion_has_exactly_one_group_that_is_named_after_a_member():
    assert set(labels.GROUP_OF_EMOTION) == set(labels.EMOTIONS)
    assert sum(map(len, labels.GROUP_MEMBERS.values())) == 32
    assert all(group == members[0] for group, members in labels.GROUP_MEMBERS.items())
    assert labels.GROUP_OF_EMOTION["terrified"] == "afraid"
    assert labels.GROUP_OF_EMOTION["nostalgic"] == "sentimental"


def test_every_goemotion_has_exactly_one_expressed_emotion():
    assert set(labels.EXPRESSED_BY_GOEMOTION) == set(labels.GOEMOTIONS)
    assert sum(map(len, labels.EXPRESSED_EMOTION_MEMBERS.values())) == 28
    assert labels.expressed_emotion_of("remorse") == "sadness"
    assert labels.expressed_emotion_of("curiosity") == "surprise"
    assert labels.expressed_emotion_of("neutral") == "neutral"


def test_levels_become_yes_and_no():
    assert [labels.expresses(level) for level in (0, 1, 2)] == [False, True, True]
    for wrong in (-1, 3):
        with pytest.raises(InputError, match="0, 1 or 2"):
            labels.expresses(wrong)


def test_acts_are_the_intents_and_others():
    assert set(labels.ACTS) == {*labels.INTENTS, "others"}
    assert labels.act_of("wishing") == "wishing"
    assert labels.act_of("neutral") == labels.act_of("joyful") == labels.act_of("advising") == "others"


def test_a_mistyped_label_gets_the_nearest():
    with pytest.raises(UnknownNameError, match=r"no emotion named 'greatful'.*Did you mean 'grateful'"):
        labels.EMOTIONS.check("greatful")
    with pytest.raises(UnknownNameError, match="Known: emotional_reaction, interpretation, exploration"):
        labels.MECHANISMS.check("xyz")


def test_people_may_write_labels_their_own_way():
    assert labels.STRATEGIES.match("Reflection of feelings") == "reflection_of_feelings"
    assert labels.strategy("Self-disclosure") == "self_disclosure"
    assert labels.strategy("Question") == "questions"
    assert labels.strategy("Approval and Reassurance") == "affirmation_and_reassurance"
    assert labels.mechanism("ex") == labels.mechanism("Exploration") == "exploration"
    assert labels.mechanism("emotional reaction") == "emotional_reaction"


@given(st.text())
def test_any_text_is_a_label_or_a_clear_error(text):
    if text in labels.EMOTIONS:
        assert labels.EMOTIONS.check(text) == text
    else:
        with pytest.raises(UnknownNameError):
            labels.EMOTIONS.check(text)
