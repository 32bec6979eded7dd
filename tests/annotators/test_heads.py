import subprocess
import sys

import pytest

from listenwell.annotators.heads import CONTEXT, HEADS, RECENT, REPLY, UTTERANCE, VIEWS
from listenwell.labels import LEVELS, MECHANISMS


def test_every_head_its_view_and_how_many_labels_it_gives():
    assert {name: (head.view, len(head.labels)) for name, head in HEADS.items()} == {
        "emotion": (CONTEXT, 32),
        "response": (CONTEXT, 41),
        "intent": (UTTERANCE, 41),
        "act": (UTTERANCE, 9),
        "expressed_emotion": (UTTERANCE, 10),
        "goemotions": (UTTERANCE, 28),
        "emotional_reaction": (REPLY, 3),
        "interpretation": (REPLY, 3),
        "exploration": (REPLY, 3),
        "risk_level": (RECENT, 3),
        "risk_kind": (RECENT, 7),
    }
    assert {head.view for head in HEADS.values()} == set(VIEWS)


def test_names_titles_and_which_take_several_labels():
    assert all(name == head.name and head.title for name, head in HEADS.items())
    assert [name for name, head in HEADS.items() if head.several] == ["goemotions"]
    assert [name for name, head in HEADS.items() if head.labels is LEVELS] == list(MECHANISMS)
    assert LEVELS.labels == ("no", "weak", "strong")  # a level's number is its place


def test_nobody_can_change_the_heads():
    with pytest.raises(TypeError):
        HEADS["mood"] = HEADS["emotion"]  # type: ignore[index]


def test_the_names_are_known_without_torch_or_numpy():
    program = "import sys, listenwell.annotators.heads; print({'torch', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
