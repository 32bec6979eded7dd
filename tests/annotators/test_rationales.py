import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from listenwell.annotators.rationales import marked_pieces, shown_parts, shown_spans
from listenwell.runtime.text import Vocabulary
from tests.tiny import tiny_bert_tokenizer

VOCABULARY = Vocabulary(tiny_bert_tokenizer())


def shown(text, *probabilities, least=0.5):
    return shown_parts(text, VOCABULARY, np.array(probabilities), least)


def test_near_words_are_joined_and_others_are_not():
    # i am so sorry !
    assert shown("I am so sorry!", 0.9, 0.8, 0.1, 0.7, 0.2) == ("I am so sorry",)
    assert shown("I am so sorry", 0.9, 0.1, 0.1, 0.9) == ("I am so sorry",)  # two words between them
    assert shown("I am so so sorry", 0.9, 0.1, 0.1, 0.1, 0.9) == ("I", "sorry")  # three
    assert shown("I am so sorry!", 0.9, 0.8, 0.7, 0.7, 0.6) == ("I am so sorry!",)
    assert shown("I am so sorry!", 0.1, 0.2, 0.3, 0.4, 0.5) == ()  # half is not above half


def test_one_piece_shows_the_whole_word():
    # i hear ##ing you: the middle of a word stands for it.
    assert shown("I hearing you", 0.1, 0.1, 0.9, 0.1) == ("hearing",)
    assert shown("I hearing you", 0.1, 0.9, 0.1, 0.1) == ("hearing",)


def test_words_end_at_marks():
    # didn ' t
    assert shown("didn't", 0.9, 0.1, 0.1) == ("didn't",)  # an apostrophe is inside of one
    assert shown("sad!happy", 0.9, 0.1, 0.1) == ("sad",)
    assert shown("sad!happy", 0.1, 0.9, 0.1) == ("!",)


def test_the_texts_own_letters_come_back():
    assert shown("MY  dog\tdied", 0.9, 0.1, 0.9) == ("MY  dog\tdied",)
    assert shown("My dog\ndied", 0.1, 0.9, 0.9) == ("dog\ndied",)
    assert shown("éa 🙂 sad", 0.9, 0.1, 0.1, 0.9) == ("éa 🙂 sad",)  # e ##a [UNK] sad
    assert shown("\ud800 sad", *(0.9,) * len(VOCABULARY.encode("\ud800 sad")))[-1].endswith("sad")


def test_pieces_that_were_cut_off_show_nothing():
    assert shown("I am so sorry", 0.9, 0.9) == ("I am",)
    assert shown("I am") == ()


def test_the_threshold_is_an_argument():
    assert shown("I am", 0.4, 0.2, least=0.3) == ("I",)


def test_pieces_in_parts_of_a_text_worked_by_hand():
    text = "I am hearing you"  # i am hear ##ing you, at 0, 2, 5, 9 and 13
    assert marked_pieces(text, VOCABULARY, [(2, 4)]).tolist() == [False, True, False, False, False]
    assert marked_pieces(text, VOCABULARY, [(0, 1), (10, 11)]).tolist() == [True, False, False, True, False]
    assert marked_pieces(text, VOCABULARY, [(4, 5)]).tolist() == [False] * 5  # the space between
    assert marked_pieces(text, VOCABULARY, []).tolist() == [False] * 5
    assert marked_pieces(text, VOCABULARY, [(0, 16)]).all()
    assert marked_pieces("\u200b", VOCABULARY, [(0, 1)]).shape == (0,)


@settings(deadline=None)
@given(st.text(), st.data())
def test_what_is_shown_is_in_the_text_and_holds_every_marked_piece(text, data):
    spans = VOCABULARY.spans(text)
    probabilities = data.draw(st.lists(st.sampled_from([0.2, 0.8]), min_size=len(spans), max_size=len(spans)))
    places = shown_spans(text, VOCABULARY, np.array(probabilities, np.float32))
    parts = shown(text, *probabilities)
    assert parts == tuple(text[first:end] for first, end in places)
    inside = marked_pieces(text, VOCABULARY, places)
    assert all(
        inside[place]
        for place, probability in enumerate(probabilities)
        if probability > 0.5 and np.ptp(spans[place])
    )
    if not any(probability > 0.5 for probability in probabilities):
        assert parts == ()
