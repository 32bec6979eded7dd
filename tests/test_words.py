import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.metrics import normalized, words

texts = st.one_of(
    st.text(max_size=40),
    st.lists(
        st.sampled_from(
            ["did", "can", "not", "n't", "i", "'m", "'", "s", "’", " ", "gon", "na", "é", ".", "s_"]
        )
    ).map(" ".join),
)


@pytest.mark.parametrize(
    ("parted", "ordinary", "expected"),
    [
        ("i did n't know , sorry !", "I didn't know, sorry!", ["i", "didn't", "know", ",", "sorry", "!"]),
        ("i 'm glad you 're ok", "I'm glad you’re ok", ["i'm", "glad", "you're", "ok"]),
        ("don ' t worry , it ' s fine", "Don't worry, it's fine", ["don't", "worry", ",", "it's", "fine"]),
        ("i ca n't , i wo n't", "I can't, I won't", ["i", "can't", ",", "i", "won't"]),
        ("you can not gon na", "You cannot gonna", ["you", "cannot", "gonna"]),
        ("they would n't 've", "They wouldn't've", ["they", "wouldn't've"]),
    ],
)
def test_taken_apart_or_not_the_words_are_the_same(parted, ordinary, expected):
    assert words(parted) == words(ordinary) == expected


def test_punctuation_stands_alone_and_quotes_are_no_part_of_a_word():
    assert words("Wow... 'well-known' a_b 100%") == [
        *("wow", ".", ".", ".", "'", "well", "-", "known", "'", "a", "_", "b", "100", "%"),
    ]


def test_any_script_keeps_its_words():
    assert words("Ça va, नमस्ते ПРИВЕТ ❤️") == ["ça", "va", ",", "नमस्ते", "привет", "❤️"]
    assert words("cafe\u0301") == words("CAFÉ") == ["café"]


def test_what_only_looks_like_a_contraction_stays():
    assert words("plan not , got tame , began narrowly") == [
        *("plan", "not", ",", "got", "tame", ",", "began", "narrowly"),
    ]


@given(texts)
def test_normalizing_twice_changes_nothing(text):
    assert normalized(normalized(text)) == normalized(text)


@given(st.text(st.characters(codec="ascii", exclude_characters="`")))
def test_nothing_but_white_space_is_lost(text):
    assert "".join(words(text)) == "".join(text.lower().split())


@given(st.text())
def test_no_token_is_empty_or_holds_white_space(text):
    assert all(token.split() == [token] for token in words(text))
    assert bool(words(text)) == bool(text.strip())
