from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from listenwell.errors import InputError
from listenwell.generators.base import Prefix, Prompt
from listenwell.generators.decoding import Decoding, Row, decode, probabilities, sample
from listenwell.runtime.torch_engine import TorchRuntime

logits = arrays(np.float32, 12, elements=st.floats(-20, 20, width=32))


def test_a_nucleus_worked_by_hand():
    scores = np.log(np.array([0.5, 0.3, 0.15, 0.05]))
    # 0.5 and 0.3 hold 0.8, so the third is needed to reach 0.9 and the fourth is not.
    expected = np.array([0.5, 0.3, 0.15, 0.0]) / 0.95
    np.testing.assert_allclose(probabilities(scores, Decoding(temperature=1, top_p=0.9)), expected)


def test_temperature_worked_by_hand():
    scores = np.log(np.array([0.8, 0.2]))
    # At temperature 0.5 probabilities are squared: 0.64 to 0.04.
    np.testing.assert_allclose(
        probabilities(scores, Decoding(temperature=0.5, top_p=1)), [0.64 / 0.68, 0.04 / 0.68]
    )


@given(logits, st.floats(0.05, 3), st.floats(0.01, 1))
def test_a_distribution_that_keeps_the_likeliest_and_the_share(scores, temperature, top_p):
    weights = probabilities(scores, Decoding(temperature=temperature, top_p=top_p))
    full = probabilities(scores, Decoding(temperature=temperature, top_p=1))
    assert weights.sum() == pytest.approx(1)
    assert weights[scores.argmax()] > 0
    assert full[weights > 0].sum() >= top_p - 1e-9
    assert full[weights > 0].min() >= full[weights == 0].max(initial=0)


def test_the_likeliest_stays_when_weights_round_to_the_same():
    scores = np.full(12, -1e-38, np.float32)
    scores[7] = 0.0
    weights = probabilities(scores, Decoding(temperature=1, top_p=0.5))
    assert weights[7] > 0


@given(logits)
def test_zero_temperature_is_greedy(scores):
    assert probabilities(scores, Decoding(temperature=0)).argmax() == scores.argmax()


@given(logits, st.floats(0, 1, exclude_max=True))
def test_a_draw_never_takes_what_has_no_weight(scores, draw):
    weights = probabilities(scores, Decoding(top_p=0.5))
    assert weights[sample(weights, draw)] > 0


def test_draws_fall_where_the_distribution_says():
    weights = np.array([0.25, 0.0, 0.75])
    assert [sample(weights, draw) for draw in (0.0, 0.2499, 0.25, 0.9999999)] == [0, 0, 2, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1.0},
        {"temperature": float("nan")},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"max_tokens": 0},
        {"repetition_penalty": 0.0},
    ],
)
def test_settings_outside_their_limits_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        Decoding(**wrong)


@pytest.fixture(scope="module")
def runtime(tiny_llama):
    return TorchRuntime.from_folder(tiny_llama)


def prompt_of(runtime, text, stop=frozenset({2})):
    return Prompt(tuple(runtime.encode(text)), stop)


def generate(runtime, prompt, decoding, *seeds):
    """The tokens of one reply for each seed, made in one batch; of one seed, the tokens alone."""
    rows = [Row(seed) for seed in seeds]
    state = runtime.pick(runtime.prefill(prompt.tokens), [0] * len(rows))
    prefix = Prefix(state, prompt.stop, runtime.context_length - len(prompt.tokens))
    for row in decode(runtime, prefix, rows, decoding):
        assert row.tokens
    return [row.tokens for row in rows] if len(rows) > 1 else rows[0].tokens


def test_the_same_seed_gives_the_same_tokens_and_another_seed_others(runtime):
    prompt, decoding = prompt_of(runtime, "I am"), Decoding(temperature=1.5, top_p=1, max_tokens=20)
    first = generate(runtime, prompt, decoding, 1)
    assert first == generate(runtime, prompt, decoding, 1)
    assert first != generate(runtime, prompt, decoding, 2)


def test_the_limit_and_the_window_are_kept(runtime):
    decoding = Decoding(temperature=1.5, top_p=1, max_tokens=7)
    assert len(generate(runtime, prompt_of(runtime, "I am", frozenset()), decoding, 1)) == 7
    nearly_full = Prompt((5,) * (runtime.context_length - 3), frozenset())
    assert len(generate(runtime, nearly_full, decoding, 1)) == 3


def test_special_tokens_never_come_out_and_no_reply_begins_with_its_end(runtime):
    everything = frozenset(range(3, len(runtime.vocabulary))) - {40}
    decoding = Decoding(temperature=2, top_p=1, max_tokens=5)
    tokens = generate(runtime, prompt_of(runtime, "I", everything), decoding, 0)
    assert tokens[0] == 40
    assert not runtime.vocabulary.special_ids.intersection(tokens)


def test_repetition_is_pulled_down(runtime):
    prompt = prompt_of(runtime, "I am so happy", frozenset())
    plain = generate(runtime, prompt, Decoding(0, 1, 30, repetition_penalty=1), 0)
    varied = generate(runtime, prompt, Decoding(0, 1, 30, repetition_penalty=5), 0)
    assert len(set(varied)) > len(set(plain))


def test_replies_made_together_are_those_made_alone(runtime):
    """Rows end at different lengths and are dropped; nobody's tokens or likelihood change."""
    prompt = prompt_of(runtime, "I am so", frozenset(range(2, len(runtime.vocabulary), 9)))
    decoding = Decoding(temperature=1.5, top_p=0.95, max_tokens=25)
    batch_size = generate(runtime, prompt, decoding, 1, 2, 3, 4, 5)
    assert len({len(tokens) for tokens in batch_size}) > 1
    assert batch_size == [generate(runtime, prompt, decoding, seed) for seed in (1, 2, 3, 4, 5)]


def test_no_run_of_tokens_stands_twice(runtime):
    prompt = prompt_of(runtime, "I am so happy", frozenset())
    greedy = Decoding(0, 1, 60, repetition_penalty=1)
    looping = generate(runtime, prompt, greedy, 0)
    free = generate(runtime, prompt, Decoding(0, 1, 60, repetition_penalty=1, no_repeat=2), 0)

    def doubled(tokens):
        pairs = list(pairwise(tokens))
        return len(pairs) - len(set(pairs))

    assert doubled(looping) > 0
    assert doubled(free) == 0


def test_the_likelihood_of_a_reply_is_the_models_own(runtime):
    """What sampling adds up is what scoring the same tokens gives, whatever the temperature."""
    prompt = prompt_of(runtime, "I am", frozenset({2}))
    row = Row(3)
    decoding = Decoding(temperature=1.4, top_p=0.9, max_tokens=6, repetition_penalty=1.3)
    for _ in decode(runtime, Prefix(runtime.prefill(prompt.tokens), prompt.stop, 100), [row], decoding):
        pass
    said = [*row.tokens, *([2] if row.finished else [])]
    assert row.log_likelihood == pytest.approx(
        float(runtime.log_likelihoods(prompt.tokens, [said])[0]), abs=1e-3
    )


def test_only_the_likeliest_are_drawn_from(runtime):
    prompt = prompt_of(runtime, "I am so happy", frozenset())
    one = Decoding(temperature=3, top_p=1, top_k=1, max_tokens=12, repetition_penalty=1)
    greedy = Decoding(temperature=0, max_tokens=12, repetition_penalty=1)
    assert generate(runtime, prompt, one, 7) == generate(runtime, prompt, greedy, 1)
