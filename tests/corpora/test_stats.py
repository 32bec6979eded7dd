from listenwell.corpora.stats import Statistics, measure
from listenwell.dialogue import Dialogue, Factors, LabelledText, Persona, Turn

from .helpers import read

DIALOGUES = [
    Dialogue(
        (
            Turn("speaker", "My cat ran off."),
            Turn(
                "listener",
                "Oh no!  When?",
                Factors(levels=(1, 0, 2), act="questioning", expressed_emotion="surprise"),
            ),
            Turn("speaker", "Yesterday."),
            Turn(
                "listener",
                "I hope\nit comes back.",
                Factors(levels=(2, 0, 0), act="wishing", expressed_emotion="caring"),
            ),
        ),
        emotion="sad",
    ),
    Dialogue(
        (
            Turn("jo", "Hello", Factors(intent="neutral")),
            Turn("ida", "Hello there", Factors(strategy="other", intent="neutral")),
            Turn("ida", "you", Factors(intent="wishing")),
        ),
        personas=(Persona("jo", ("I row.", "I nap.")), Persona("ida", ("I swim.",))),
        listener="jo",
        emotion="sad",
    ),
    Dialogue((Turn("listener", "Alone."),), emotion="lonely"),
]


def test_dialogues_measured_by_hand():
    assert measure(DIALOGUES) == Statistics(
        conversations=3,
        texts=0,
        utterances=8,
        replies=2,
        speakers=4,
        persona_sentences=3,
        words_per_utterance=2.25,  # 4 + 3 + 1 + 5 + 1 + 2 + 1 + 1 words in 8 utterances
        utterances_per_conversation=2.67,
        labels=(
            ("emotion", (("sad", 2), ("lonely", 1))),
            ("act", (("questioning", 1), ("wishing", 1))),
            ("expressed_emotion", (("surprise", 1), ("caring", 1))),
            ("mechanism", (("emotional_reaction", 2), ("exploration", 1))),
            ("intent", (("neutral", 2), ("wishing", 1))),
            ("strategy", (("other", 1),)),
        ),
    )


def test_texts_measured_by_hand():
    texts = [
        LabelledText("What a day", ("joy",)),
        LabelledText("Thanks, all of you", ("gratitude", "joy")),
        LabelledText("Hm", ()),
    ]
    assert measure(texts) == Statistics(
        conversations=0,
        texts=3,
        utterances=0,
        replies=0,
        speakers=0,
        persona_sentences=0,
        words_per_utterance=2.67,
        utterances_per_conversation=0.0,
        labels=(("label", (("joy", 2), ("gratitude", 1))),),
    )


def test_nothing_measures_as_nothing():
    assert measure([]) == Statistics(0, 0, 0, 0, 0, 0, 0.0, 0.0, ())


def test_items_are_read_once():
    assert measure(iter(DIALOGUES)) == measure(DIALOGUES)


def test_figures_go_to_json_with_zeros_and_back():
    figures = measure(DIALOGUES)
    written = figures.to_dict()
    assert written["texts"] == 0
    assert written["labels"]["emotion"] == {"sad": 2, "lonely": 1}
    assert Statistics.from_json(figures.to_json()) == figures


def test_a_sample_corpus_measured_by_hand():
    figures = measure(read("empathetic_dialogues", "train"))
    assert (figures.conversations, figures.utterances, figures.replies, figures.speakers) == (3, 9, 4, 2)
    assert figures.utterances_per_conversation == 3.0
    assert figures.labels == (("emotion", (("grateful", 1), ("afraid", 1), ("lonely", 1))),)
