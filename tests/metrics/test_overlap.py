import math
import re

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from listenwell.errors import InputError
from listenwell.metrics import bleu, meteor, rouge_l, sacre_bleu

sentences = st.lists(st.sampled_from(["i", "am", "so", "sorry", "hear", "not", ".", "!"]), max_size=9)
pairs = st.lists(st.tuples(sentences.map(" ".join), sentences.map(" ".join)), min_size=1, max_size=6)


def test_bleu_worked_by_hand():
    # Of the n-grams of a b c d e 4 of 5, 3 of 4, 2 of 3, 1 of 2 are scores; 5 tokens for 6: e ** (1 − 6/5).
    scores = bleu(["A b c d e"], ["a b c d f g"])
    brevity = math.exp(-0.2)
    products = [4 / 5, 4 / 5 * 3 / 4, 4 / 5 * 3 / 4 * 2 / 3, 4 / 5 * 3 / 4 * 2 / 3 * 1 / 2]
    expected = [100 * brevity * product ** (1 / n) for n, product in enumerate(products, start=1)]
    assert [scores[f"BLEU-{n}"] for n in range(1, 5)] == pytest.approx(expected)
    assert scores["average"] == pytest.approx(sum(expected) / 4)


def test_bleu_clips_and_counts_over_the_corpus():
    # "the" counts twice at most, and the second pair adds 0 of 1: 2 of 5; 5 tokens for 3, no penalty.
    assert bleu(["the the the the", "x"], ["the the", "y"])["BLEU-1"] == pytest.approx(40)


def test_bleu_without_smoothing_is_zero_from_the_first_missing_length():
    scores = bleu(["a b x c d"], ["c d y a b"])
    assert scores["BLEU-2"] == pytest.approx(100 * math.sqrt(4 / 5 * 2 / 4))
    assert scores["BLEU-3"] == scores["BLEU-4"] == 0
    assert bleu(["hi"], ["hi"]) == {"BLEU-1": 100, "BLEU-2": 0, "BLEU-3": 0, "BLEU-4": 0, "average": 25}
    assert bleu([""], ["hi"])["average"] == 0


@given(pairs)
@settings(deadline=None)  # the first example loads libraries
def test_bleu_4_is_sacrebleu_on_our_tokens(rows):
    replies, references = map(list, zip(*rows, strict=True))
    metric = sacrebleu.BLEU(tokenize="none", smooth_method="none", force=True)
    assert bleu(replies, references)["BLEU-4"] == pytest.approx(
        metric.corpus_score(replies, [references]).score, abs=1e-9
    )


@given(pairs)
@settings(deadline=None)  # the first example loads libraries
def test_every_figure_is_a_share_and_order_does_not_matter(rows):
    replies, references = map(list, zip(*rows, strict=True))
    for metric in (rouge_l, meteor, lambda h, r: bleu(h, r)["average"]):
        score = metric(replies, references)
        assert 0 <= score <= 100 + 1e-9
        assert score == pytest.approx(metric(replies[::-1], references[::-1]))


def test_sacrebleu_names_its_settings():
    score, signature = sacre_bleu(["I am so sorry to hear that."], ["I am so sorry to hear that."])
    assert score == pytest.approx(100)
    assert re.fullmatch(r"nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:[\d.]+", signature), (
        signature
    )


def test_sacrebleu_worked_by_hand():
    # The full stop is a token: 4 of 5, 2 of 4, 0 of 3, 0 of 2. The zeros are smoothed to 1/2 and then 1/4.
    score, _ = sacre_bleu(["we met the cat."], ["we met a cat."])
    assert score == pytest.approx(100 * (4 / 5 * 2 / 4 * (1 / 2) / 3 * (1 / 4) / 2) ** 0.25)


def test_rouge_l_worked_by_hand():
    # The longest common subsequence is "i am sorry .": 4 of 5, 4 of 6, F1 8/11. The second pair shares none.
    assert rouge_l(["I am so sorry.", "yes"], ["i am very , sorry .", "no"]) == pytest.approx(
        100 * 8 / 11 / 2
    )


def test_rouge_l_reads_every_script_and_contractions_of_both_kinds():
    assert rouge_l(["Привет, नमस्ते"], ["привет , नमस्ते"]) == pytest.approx(100)
    assert rouge_l(["I didn't"], ["i did n't"]) == pytest.approx(100)


def test_meteor_worked_by_hand():
    # "cats" and "sleep" match by their stems: 3 matches in 2 chunks, "the" and "cats sleep".
    # Precision 3/3, recall 3/4; mean P R / (0.9 P + 0.1 R); penalty 0.5 (2/3)³.
    mean = 0.75 / (0.9 + 0.1 * 0.75)
    assert meteor(["the cats sleep"], ["the black cat sleeps"]) == pytest.approx(
        100 * mean * (1 - 0.5 * (2 / 3) ** 3)
    )


def test_meteor_knows_no_synonyms_and_needs_no_data(monkeypatch):
    monkeypatch.setattr("nltk.data.path", [])
    assert meteor(["big"], ["large"]) == 0
    assert meteor(["same", ""], ["same", "x"]) == pytest.approx(25)  # one match, one chunk: half; and nothing


@pytest.mark.parametrize("metric", [bleu, sacre_bleu, rouge_l, meteor])
def test_lists_that_do_not_pair_up(metric):
    with pytest.raises(InputError, match="do not pair up"):
        metric(["a", "b"], ["a"])
    with pytest.raises(InputError, match="no replies"):
        metric([], [])
