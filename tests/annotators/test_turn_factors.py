import pytest

from listenwell.annotators.turn_factors import level_of, with_factors
from listenwell.dialogue import Dialogue, Factors, Reading, Scored, Turn


def read(head, label, probability=0.9):
    return Reading(head, (Scored(label, probability),))


def levels(head, no, weak, strong):
    scores = sorted(zip((no, weak, strong), ("no", "weak", "strong"), strict=True), reverse=True)
    return Reading(head, tuple(Scored(label, probability) for probability, label in scores))


def filled(*turns):
    return [turn.factors for turn in with_factors(Dialogue(turns)).turns]


@pytest.mark.parametrize(
    ("no", "weak", "strong", "level"),
    [
        (0.5, 0.3, 0.2, 0),
        # Weak and strong together are likelier than no, which alone is the likeliest.
        (0.45, 0.3, 0.25, 1),
        (0.45, 0.25, 0.3, 2),
        (0.1, 0.8, 0.1, 1),
        (0.1, 0.1, 0.8, 2),
        (0.4, 0.3, 0.3, 1),
    ],
)
def test_levels_worked_by_hand(no, weak, strong, level):
    assert level_of(levels("exploration", no, weak, strong)) == level


def test_a_turn_gets_what_was_read_from_it():
    readings = (read("intent", "lonely"), read("act", "questioning"), read("expressed_emotion", "fear"))
    assert filled(Turn("speaker", "a", readings=readings)) == [
        Factors(act="questioning", expressed_emotion="fear", intent="lonely")
    ]


def test_nothing_read_is_nothing_known():
    assert filled(Turn("speaker", "a"), Turn("listener", "b")) == [None, None]
    # What comes next is said of the reply, not of this turn.
    assert filled(
        Turn("speaker", "a", readings=(read("response", "wishing"), read("goemotions", "joy")))
    ) == [None]


def test_the_listeners_turn_has_the_emotion_heard_before_it():
    assert filled(
        Turn("listener", "hello"),
        Turn("speaker", "a", readings=(read("emotion", "sad"),)),
        Turn("listener", "b"),
        Turn("listener", "c"),
        Turn("speaker", "d", readings=(read("emotion", "proud"),)),
        Turn("speaker", "e"),
        Turn("listener", "f"),
    ) == [
        None,  # nobody had said anything
        None,
        Factors(emotion="sad"),
        Factors(emotion="sad"),
        None,
        None,
        Factors(emotion="proud"),
    ]


def test_levels_and_mechanisms_agree():
    readings = (
        levels("emotional_reaction", 0.1, 0.2, 0.7),
        levels("interpretation", 0.9, 0.1, 0.0),
        levels("exploration", 0.4, 0.5, 0.1),
    )
    (found,) = filled(Turn("listener", "a", readings=readings))
    assert found == Factors(levels=(2, 0, 1))
    assert found.mechanisms == ("emotional_reaction", "exploration")
    assert filled(Turn("listener", "a", readings=readings[:2])) == [None]  # two of three say nothing


def test_what_is_known_stays():
    readings = (
        read("intent", "lonely"),
        read("act", "questioning"),
        read("expressed_emotion", "fear"),
        *(levels(name, 0.0, 0.0, 1.0) for name in ("emotional_reaction", "interpretation", "exploration")),
    )
    gold = Factors("guilty", (), "wishing", "joy", "wishing", "questions")
    assert filled(
        Turn("speaker", "a", readings=(read("emotion", "sad"),)),
        Turn("listener", "b", gold, readings=readings),
    ) == [None, gold]
    (half,) = filled(Turn("speaker", "a", Factors(act="wishing", strategy="questions"), readings=readings))
    assert half == Factors(
        act="wishing", expressed_emotion="fear", intent="lonely", strategy="questions", levels=(2, 2, 2)
    )
    (known,) = filled(Turn("speaker", "a", Factors(levels=(0, 1, 0)), readings=readings))
    assert (known.levels, known.mechanisms) == ((0, 1, 0), ("interpretation",))
    # Mechanisms without levels: levels that were read could contradict them.
    (some,) = filled(Turn("speaker", "a", Factors(mechanisms=("exploration",)), readings=readings))
    assert (some.levels, some.mechanisms) == (None, ("exploration",))


def test_the_rest_of_the_dialogue_is_untouched():
    dialogue = Dialogue(
        (Turn("ann", "a", None, {"note": "x"}, (read("act", "wishing"),)),), "id", emotion="sad"
    )
    found = with_factors(dialogue)
    assert found.turns[0].readings == dialogue.turns[0].readings
    assert (found.id, found.emotion, found.turns[0].note("note")) == ("id", "sad", "x")
