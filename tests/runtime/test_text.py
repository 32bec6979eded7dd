import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.errors import WeightsError
from listenwell.runtime.text import TextStream, Vocabulary
from tests.tiny import MARKS, tiny_tokenizer

VOCABULARY = Vocabulary(tiny_tokenizer())
pieces = st.text() | st.sampled_from([*MARKS, "\0", "\u200f", "\u202e", "😀", "<|im_", "start|>"])


@given(st.lists(pieces).map("".join))
def test_no_text_makes_a_special_token_and_all_of_it_comes_back(text):
    tokens = VOCABULARY.encode(text)
    assert not VOCABULARY.special_ids.intersection(tokens)
    assert VOCABULARY.decode(tokens) == text


def test_lone_surrogates_are_replaced_and_nothing_breaks():
    assert "\ufffd" in VOCABULARY.decode(VOCABULARY.encode("a\ud800b"))


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
