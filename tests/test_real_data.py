"""Counts on the full corpora, where they are."""

import pytest

from listenwell.corpora import CORPORA
from listenwell.corpora.stats import measure

pytestmark = pytest.mark.data

COUNTS = {
    ("empathetic_dialogues", "train"): (19_554, 84_261, 40_294),
    ("empathetic_dialogues", "valid"): (2_761, 12_041, 5_722),
    ("empathetic_dialogues", "test"): (2_541, 10_945, 5_247),
}
TEXTS = {
    ("goemotions", "train"): 43_410,
    ("goemotions", "valid"): 5_426,
    ("goemotions", "test"): 5_427,
    ("empathetic_intents", "train"): 25_023,
    ("empathetic_intents", "valid"): 3_544,
    ("empathetic_intents", "test"): 3_225,
}


def loader_of(name, data):
    kind = CORPORA.load(name)
    return kind(data / (kind.folder or name))


@pytest.mark.parametrize(("name", "split"), COUNTS)
def test_conversations_utterances_and_replies(real_data, name, split):
    loader = loader_of(name, real_data)
    figures = measure(loader.read(split))
    assert (figures.conversations, figures.utterances, figures.replies) == COUNTS[name, split]
    assert sum(1 for _ in loader.examples(split)) == figures.replies
    assert not loader.report.skipped


@pytest.mark.parametrize(("name", "split"), TEXTS)
def test_labelled_texts(real_data, name, split):
    assert measure(loader_of(name, real_data).read(split)).texts == TEXTS[name, split]


def test_every_turn_and_situation_has_a_machine_label(real_data):
    loader = loader_of("empathetic_dialogues_labels", real_data)
    for dialogue in loader.read("test"):
        assert dialogue.note("situation_label")
        assert all(turn.factors.intent for turn in dialogue.turns)
    assert not loader.report.counts


def test_epitome_has_every_pair_once_in_one_split(real_data):
    loader = loader_of("epitome", real_data)
    posts = {split: {d.turns[0].text for d in loader.read(split)} for split in loader.splits}
    assert sum(measure(loader.read(split)).conversations for split in loader.splits) == 3_084
    assert not posts["train"] & posts["test"] and not posts["train"] & posts["valid"]


@pytest.mark.parametrize(
    ("split", "conversations", "lines"), [("valid", 1_000, 28_747), ("test", 968, 27_742)]
)
def test_synthetic_persona_chat_accounts_for_every_line(real_data, split, conversations, lines):
    loader = loader_of("synthetic_persona_chat", real_data)
    figures = measure(loader.read(split))
    counts, skipped = loader.report.counts, loader.report.skipped
    lost = skipped.pop("conversation without a usable line", 0)
    assert figures.conversations + lost == conversations
    assert counts["lines"] == lines
    assert figures.utterances + counts["blank lines"] + sum(skipped.values()) == lines


def test_esconv_lines_are_the_supporters_replies(real_data):
    loader = loader_of("esconv", real_data)
    assert sum(1 for _ in loader.examples("test")) == loader.report.counts["lines"] == 2_775
    assert measure(loader.read("failed")).conversations == 196
