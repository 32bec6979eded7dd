import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.errors import WeightsError
from listenwell.runtime.text import TextStream, Vocabulary
from tests.tiny import BERT_MARKS, MARKS, encoder_pieces, tiny_bert_tokenizer, tiny_tokenizer

VOCABULARY, BERT = Vocabulary(tiny_tokenizer()), Vocabulary(tiny_bert_tokenizer())
pieces = st.text() | st.sampled_from([*MARKS, "\0", "\u200f", "\u202e", "😀", "<|im_", "start|>"])
odd = st.lists(pieces | st.sampled_from([*BERT_MARKS, "\ud800", "\u200b"])).map("".join)


@given(st.lists(pieces).map("".join))
def test_no_text_makes_a_special_token_and_all_of_it_comes_back(text):
    tokens = VOCABULARY.encode(text)
    assert not VOCABULARY.special_ids.intersection(tokens)
    assert VOCABULARY.decode(tokens) == text


def test_lone_surrogates_are_replaced_and_nothing_breaks():
    assert "\ufffd" in VOCABULARY.decode(VOCABULARY.encode("a\ud800b"))


@given(st.lists(odd))
def test_many_texts_are_encoded_as_each_alone(texts):
    for vocabulary in (VOCABULARY, BERT):
        assert vocabulary.encode_many(texts) == [vocabulary.encode(text) for text in texts]


@given(odd)
def test_no_text_makes_a_mark_of_an_encoder(text):
    # Letters that its vocabulary lacks are [UNK]: the one special token that stands for text.
    assert BERT.special_ids.intersection(BERT.encode(text)) <= {BERT.special("[UNK]")}


@given(odd)
def test_places_are_those_of_the_tokens(text):
    for vocabulary in (VOCABULARY, BERT):
        spans = vocabulary.spans(text)
        assert len(spans) == len(vocabulary.encode(text))
        assert all(0 <= first <= end <= len(text) for first, end in spans)
        assert spans == sorted(spans)


def test_places_worked_by_hand():
    text = "Hearing\ud800 É!"  # an encoder passes over the replacement character, but its place counts
    names = {number: piece for piece, number in encoder_pieces().items()}
    found = [(names[n], text[a:b]) for n, (a, b) in zip(BERT.encode(text), BERT.spans(text), strict=True)]
    assert found == [("hear", "Hear"), ("##ing", "ing"), ("e", "É"), ("!", "!")]
    assert BERT.spans("") == BERT.encode_many([]) == []
    assert BERT.spans("[SEP]") == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]


def test_a_fixed_length_in_the_file_is_undone():
    assert tiny_bert_tokenizer().padding["length"] == 40
    assert BERT.encode("sad") == BERT.encode_many(["sad", "so sad"])[0] == [encoder_pieces()["sad"]]


def test_special_tokens_come_by_name_only():
    assert VOCABULARY.special("<|im_end|>") == 2
    with pytest.raises(WeightsError, match="no special token 'happy'"):
        VOCABULARY.special("happy")


@given(st.text(min_size=1))
def test_streamed_pieces_add_up_and_never_show_half_a_character(text):
    stream, shown = TextStream(VOCABULARY), ""
    for token in VOCABULARY.encode(text):
        piece = stream.push(token)
        shown += piece
        assert text.startswith(shown)
    assert shown + stream.finish() == text


def test_blank_tokens_spell_nothing_visible():
    assert VOCABULARY.encode(" ")[0] in VOCABULARY.blank_ids
    assert VOCABULARY.special("<|im_end|>") in VOCABULARY.blank_ids
    assert not VOCABULARY.blank_ids.intersection(VOCABULARY.encode("hello"))


def test_a_broken_tokenizer_file_is_named(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(WeightsError, match=r"tokenizer\.json cannot be read"):
        Vocabulary.from_folder(tmp_path)
