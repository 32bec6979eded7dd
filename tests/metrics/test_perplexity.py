import math
from functools import reduce
from operator import add

import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.errors import InputError
from listenwell.metrics import Perplexity, perplexity_of

replies = st.lists(
    st.tuples(st.floats(0, 500), st.integers(1, 60), st.text("ab é", min_size=1).map("x".__add__)), min_size=1
)


def measured(rows):
    return perplexity_of(*map(list, zip(*rows, strict=True)), tokenizer="tiny BPE")


def test_all_three_worked_by_hand():
    # 2 words, 8 bytes (é has 2), 4 tokens with the end mark, each of probability 1/8: 4 ln 8 = 12 ln 2.
    sums = perplexity_of([4 * math.log(8)], [4], ["oh café"], "tiny BPE")
    assert (sums.tokens, sums.words, sums.bytes) == (4, 2, 8)
    assert sums.by_token == pytest.approx(8)  # 2 ** (12 / 4)
    assert sums.by_word == pytest.approx(64)  # 2 ** (12 / 2)
    assert sums.bits_per_byte == pytest.approx(1.5)  # 12 / 8
    assert sums.tokenizer == "tiny BPE"


def test_a_short_last_batch_does_not_count_as_a_whole_one():
    # 9 tokens at ln 2 and one at ln 32: (9 * 1 + 5) / 10 = 1.4 bits. A mean of batch means would give 3.
    whole, short = Perplexity(9 * math.log(2), 9, 9, 9, "t"), Perplexity(math.log(32), 1, 1, 1, "t")
    assert (whole + short).by_token == pytest.approx(2**1.4)


@given(replies, st.integers(1, 7))
def test_batches_change_nothing(rows, size):
    batches = [measured(rows[start : start + size]) for start in range(0, len(rows), size)]
    parts, whole = reduce(add, batches), measured(rows)
    assert (parts.tokens, parts.words, parts.bytes) == (whole.tokens, whole.words, whole.bytes)
    assert parts.by_token == pytest.approx(whole.by_token)
    assert parts.bits_per_byte == pytest.approx(whole.bits_per_byte)


def test_one_tokenizer_at_a_time():
    with pytest.raises(InputError, match="cannot be added"):
        Perplexity(1, 1, 1, 1, "a") + Perplexity(1, 1, 1, 1, "b")


def test_a_hopeless_model_has_an_infinite_perplexity():
    assert Perplexity(1e6, 1, 1, 1, "t").by_token == math.inf


@pytest.mark.parametrize(
    ("nlls", "counts", "texts", "tokenizer"),
    [
        ([1.0, 2.0], [1], ["a", "b"], "t"),
        ([1.0], [1, 1], ["a", "b"], "t"),
        ([], [], [], "t"),
        ([math.nan], [1], ["a"], "t"),
        ([-1.0], [1], ["a"], "t"),
        ([1.0], [1], ["a"], " "),
    ],
)
def test_what_does_not_add_up_is_refused(nlls, counts, texts, tokenizer):
    with pytest.raises(InputError):
        perplexity_of(nlls, counts, texts, tokenizer)


def test_nothing_to_divide_by_is_said():
    sums = perplexity_of([1.0], [1], [""], "t")
    assert sums.by_token == pytest.approx(math.e)
    with pytest.raises(InputError, match="no words"):
        _ = sums.by_word
    with pytest.raises(InputError, match="no bytes"):
        _ = sums.bits_per_byte
