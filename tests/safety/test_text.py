import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.errors import InputError
from listenwell.safety.text import MAX_MESSAGE, REPLACEMENT, cleaned, decoded, message

ANYTHING = st.text(st.characters(exclude_categories=()))  # lone surrogates and NUL included


@given(ANYTHING)
def test_what_is_cleaned_can_be_stored_and_shown(text):
    clean = cleaned(text)
    assert clean.encode("utf-8").decode("utf-8") == clean
    assert not any(ord(letter) < 32 and letter not in "\n\t" for letter in clean)
    assert not {"\x7f", "\x85", "\u202e", "\u2066", "\u200b", "\ufeff", "\u2028"} & set(clean)
    assert cleaned(clean) == clean


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_ordinary_letters_stay_as_they_are(text):
    assert cleaned(text) == text


def test_what_is_removed_and_what_becomes_of_the_rest():
    assert cleaned("a\x00b\x1b[31mc") == "ab[31mc"
    assert cleaned("one\r\ntwo\rthree\u2028four\tfive") == "one\ntwo\nthree\nfour\tfive"
    assert cleaned("\ud83d half a sign") == f"{REPLACEMENT} half a sign"
    assert cleaned("safe\u202egnp.exe") == "safegnp.exe"
    assert cleaned("hid\U000e0041den") == "hidden"
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"  # one sign, held together by joiners
    assert cleaned(family) == family


@given(st.binary())
def test_bytes_are_text_or_an_error_that_says_so(data):
    try:
        assert decoded(data).encode("utf-8") == data
    except InputError as error:
        assert "UTF-8" in error.problem and error.advice


@given(ANYTHING)
def test_a_message_is_clean_and_not_blank_or_refused(text):
    try:
        read = message(text)
    except InputError as error:
        assert not cleaned(text).strip()
        assert error.problem == "The message is empty."  # nothing of what was written
    else:
        assert read and read == read.strip() and cleaned(read) == read


def test_the_length_is_limited_before_anything_is_read():
    assert len(message("a" * MAX_MESSAGE)) == MAX_MESSAGE
    with pytest.raises(InputError, match="20,001 characters"):
        message("a" * (MAX_MESSAGE + 1))
    assert message("abc", limit=3) == "abc"
