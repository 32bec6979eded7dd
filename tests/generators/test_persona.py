import numpy as np
import pytest

from listenwell.dialogue import Dialogue, Persona, Turn
from listenwell.generators.persona import MOST_LINES, Relevance
from listenwell.runtime.sentence_encoder import SentenceEncoder

TOPICS = ("dog", "work", "food")


class Topics:
    """A vector of which topics a text names; it remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, texts):
        self.asked.append(list(texts))
        return np.array([[float(topic in text) for topic in TOPICS] for text in texts])


def talk(*said, lines, others=()):
    turns = tuple(Turn("listener" if number % 2 else "speaker", text) for number, text in enumerate(said))
    personas = [Persona("listener", lines)]
    if others:
        personas.insert(0, Persona("speaker", others))
    return Dialogue(turns, personas=tuple(personas))


def count(line):
    return len(line.split())


LINES = ("i like food.", "i have a dog.", "i work a lot.", "my dog is old.")


def test_the_nearest_lines_stay_in_their_order():
    relevance = Relevance(most=3, turns=1, encode=Topics())
    kept, notices = relevance.keep(talk("my dog likes food", lines=LINES), count)
    assert kept.persona_of("listener").lines == ("i like food.", "i have a dog.", "my dog is old.")
    assert notices == ()


def test_a_line_too_long_makes_room_for_the_next():
    lines = ("my dog is very very old.", "i have a dog.", "i work.")
    relevance = Relevance(tokens=6, encode=Topics())
    kept, _ = relevance.keep(talk("the dog", lines=lines), count)
    assert kept.persona_of("listener").lines == ("my dog is very very old.",)
    relevance = Relevance(tokens=5, encode=Topics())
    kept, _ = relevance.keep(talk("the dog", lines=lines), count)
    assert kept.persona_of("listener").lines == ("i have a dog.",)
    relevance = Relevance(tokens=1, encode=Topics())
    kept, notices = relevance.keep(talk("the dog", lines=lines), count)
    assert kept.persona_of("listener").lines == ()
    assert notices == ("No sentence of the persona is short enough to be kept.",)


def test_the_last_turn_counts_most_and_old_ones_not_at_all():
    said = ("i work", "food?", "my dog")

    def first(**settings):
        relevance = Relevance(most=1, **settings, encode=Topics())
        return relevance.keep(talk(*said, lines=LINES), count)[0].persona_of("listener").lines

    assert first(turns=3) == ("i have a dog.",)
    assert first(turns=3, fading=1.0) == ("i like food.",)  # all alike: the first line
    assert first(turns=1, fading=1.0) == ("i have a dog.",)


def test_nothing_is_computed_where_all_fit():
    encode = Topics()
    given = talk("hello", lines=LINES)
    assert Relevance(tokens=15, encode=encode).keep(given, count) == (given, ())
    assert encode.asked == []
    generic_question = Dialogue((Turn("speaker", "hello"),))
    assert Relevance(most=1, encode=encode).keep(generic_question, count) == (generic_question, ())


def test_lines_are_encoded_once():
    encode = Topics()
    relevance = Relevance(most=1, encode=encode)
    relevance.keep(talk("my dog", lines=LINES), count)
    relevance.keep(talk("some food", lines=(*LINES, "new food")), count)
    assert encode.asked == [["my dog", *LINES], ["some food", "new food"]]


def test_the_others_persona_is_never_the_listeners():
    encode = Topics()
    given = talk("my dog", lines=LINES, others=("the dog is mine.",) * 30)
    kept, _ = Relevance(most=1, encode=encode).keep(given, count)
    assert kept.persona_of("speaker") == given.persona_of("speaker")
    assert kept.persona_of("listener").lines == ("i have a dog.",)
    assert "the dog is mine." not in encode.asked[0]


def test_of_more_than_a_hundred_lines_the_first_are_considered():
    lines = (*(f"i work {number}." for number in range(MOST_LINES)), "my dog.")
    kept, notices = Relevance(most=2, encode=Topics()).keep(talk("a dog", lines=lines), count)
    assert kept.persona_of("listener").lines == ("i work 0.", "i work 1.")
    assert notices == ("The persona has 101 sentences: only the first 100 were considered.",)


@pytest.mark.usefixtures("installed_encoder")
def test_the_encoder_gives_each_text_its_own_vector():
    encode = SentenceEncoder.load().encode
    texts = ["My dog died.", "I got promoted", "word " * 300]
    batch_size = encode(texts)
    assert np.linalg.norm(batch_size, axis=1) == pytest.approx(1.0)
    for text, vector in zip(texts, batch_size, strict=True):
        assert encode([text])[0] == pytest.approx(vector, abs=1e-5)  # padding moves nothing
    assert not np.allclose(batch_size[0], batch_size[1])
    kept, _ = Relevance(most=1).keep(talk("My dog died.", lines=("I got promoted", "My dog died.")), count)
    assert kept.persona_of("listener").lines == ("My dog died.",)
