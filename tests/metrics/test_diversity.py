import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.errors import InputError
from listenwell.metrics import (
    STOCK_PHRASES,
    distinct,
    distinct_n,
    distinct_reply_rate,
    mean_length,
    phrase_rate,
    stock_phrase_rate,
)

replies = st.lists(st.lists(st.sampled_from("abcd"), max_size=8).map(" ".join), min_size=1, max_size=8)


def test_distinct_worked_by_hand():
    # Tokens i am so sorry / i am: 4 of 6 are distinct. Bigrams i-am, am-so, so-sorry / i-am: 3 of 4.
    texts = ["I am so sorry", "i am"]
    assert distinct(texts) == pytest.approx(
        {
            "distinct-1": 4 / 6,
            "distinct-2": 3 / 4,
            "distinct-1 in percent": 400 / 6,
            "distinct-2 in percent": 75,
        }
    )


def test_the_last_ngram_counts_and_none_crosses_replies():
    # b-c is the last bigram of the first reply; without it 1 of 2 bigrams would be distinct, not 2 of 3.
    assert distinct_n(["a b c", "a b"], 2) == pytest.approx(2 / 3)
    # Were replies joined, b-a would be a third bigram.
    assert distinct_n(["a b", "a b"], 2) == pytest.approx(1 / 2)
    assert distinct_n(["a", "b"], 2) == 0


@given(replies, st.integers(1, 4))
def test_distinct_counts_every_window(texts, n):
    grams = [
        tuple(t.split()[i : i + n]) for t in texts for i in range(len(t.split())) if i + n <= len(t.split())
    ]
    assert distinct_n(texts, n) == pytest.approx(len(set(grams)) / len(grams) if grams else 0)
    assert distinct_n(texts * 2, n) == pytest.approx(distinct_n(texts, n) / 2)


def test_distinct_replies_worked_by_hand():
    # The first three are one reply in other spellings: 2 different of 4.
    assert distinct_reply_rate(["I didn't!", "i did n't !", "i didn’t  !", "no"]) == 50


def test_stock_phrases_worked_by_hand():
    texts = [
        "Oh no, I'm so sorry!",  # i am so sorry
        "thats great news",  # that is great
        "That's sofa talk , i hopefully see you",  # neither "that is so" nor "i hope": whole words only
        "What happened then?",
    ]
    assert stock_phrase_rate(texts) == 50
    assert phrase_rate(texts, "what happened") == phrase_rate(texts, "What happened") == 25
    assert phrase_rate(["i can't", "I cannot", "i can not", "i ca n't"], "i can not") == 100
    assert phrase_rate(["you're fine", "you are fine", "he will", "n't 'm"], "you are") == 50


def test_every_phrase_of_the_list_finds_itself():
    for phrase in STOCK_PHRASES:
        assert phrase_rate([f"Well, {phrase.upper()}..."], phrase) == 100
        assert phrase_rate(["Where was it?"], phrase) == 0
    assert "sorry to hear" in STOCK_PHRASES
    assert len(set(STOCK_PHRASES)) == len(STOCK_PHRASES)


@given(st.lists(st.sampled_from(["i am sorry", "i hope so", "good luck", "why ?", "no"]), min_size=1))
def test_the_rate_of_a_list_lies_between_that_of_its_likeliest_phrase_and_their_sum(texts):
    rates = [phrase_rate(texts, phrase) for phrase in STOCK_PHRASES]
    assert max(rates) - 1e-9 <= stock_phrase_rate(texts) <= min(100, sum(rates)) + 1e-9


def test_length_worked_by_hand():
    # i / didn't / know / ! and one more token: 5 over 2.
    assert mean_length(["I did n't know!", "ok"]) == 2.5


@pytest.mark.parametrize(
    "metric",
    [distinct, distinct_reply_rate, stock_phrase_rate, mean_length, lambda texts: distinct_n(texts, 1)],
)
def test_no_replies_have_no_figure(metric):
    with pytest.raises(InputError, match="no replies"):
        metric([])


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(InputError, match="n is 0"):
        distinct_n(["a"], 0)
    with pytest.raises(InputError, match="empty"):
        phrase_rate(["a"], " ")
