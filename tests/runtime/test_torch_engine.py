import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from listenwell.errors import WeightsError
from listenwell.runtime.base import top_tokens_of
from listenwell.runtime.torch_engine import TorchRuntime


@pytest.fixture(scope="module")
def runtime(tiny_llama):
    return TorchRuntime.from_folder(tiny_llama)


def test_steps_give_what_one_reading_of_all_tokens_gives(runtime):
    tokens = runtime.encode("I am so happy for you!")
    state = runtime.prefill(tokens[:3])
    for token in tokens[3:]:
        state = runtime.step(state, [[token]])
    np.testing.assert_allclose(runtime.logits(state), runtime.logits(runtime.prefill(tokens)), atol=1e-5)


def test_rows_go_their_own_ways_from_one_prompt(runtime):
    prompt = runtime.encode("What happened")
    state = runtime.step(runtime.pick(runtime.prefill(prompt), [0, 0]), [[5, 6], [9, 3]])
    logits = runtime.logits(state)
    assert logits.shape == (2, len(runtime.vocabulary))
    for row, tokens in enumerate(([5, 6], [9, 3])):
        alone = runtime.logits(runtime.prefill([*prompt, *tokens]))
        np.testing.assert_allclose(logits[row], alone[0], atol=1e-5)


def test_picked_rows_are_those_that_were_asked_for_and_the_others_stay(runtime):
    prompts = [runtime.encode(text) for text in ("I am", "What happened to you?", "Oh no")]
    state = runtime.prefill_many(prompts)
    before = runtime.logits(state).copy()
    picked = runtime.step(runtime.pick(state, [2, 0, 2]), [[7], [7], [8]])
    for row, (place, token) in enumerate(((2, 7), (0, 7), (2, 8))):
        alone = runtime.logits(runtime.prefill([*prompts[place], token]))
        np.testing.assert_allclose(runtime.logits(picked)[row], alone[0], atol=1e-5)
    np.testing.assert_array_equal(runtime.logits(state), before)
    again = runtime.logits(runtime.step(runtime.pick(state, [1]), [[4]]))
    np.testing.assert_allclose(again, runtime.logits(runtime.prefill([*prompts[1], 4])), atol=1e-5)


def test_states_of_different_lengths_join(runtime):
    prompts = [runtime.encode(text) for text in ("I am so happy for you!", "What", "I am")]
    joined = runtime.join([runtime.prefill(prompts[0]), runtime.prefill_many(prompts[1:])])
    state = runtime.step(joined, [[5], [6], [7]])
    for row, token in enumerate((5, 6, 7)):
        alone = runtime.logits(runtime.prefill([*prompts[row], token]))
        np.testing.assert_allclose(runtime.logits(state)[row], alone[0], atol=1e-5)


@given(arrays(np.float32, (2, 9), elements=st.sampled_from([0, 1, 1.5, -2, 7])), st.integers(1, 12))
def test_the_likeliest_are_in_order_and_know_the_sum_over_all(logits, count):
    found = top_tokens_of(logits, count)
    for row in range(2):
        order = np.argsort(-logits[row], kind="stable")[:count]
        np.testing.assert_array_equal(found.scores[row], logits[row][order])
        assert list(logits[row][found.tokens[row]]) == list(found.scores[row])
        assert len(set(found.tokens[row].tolist())) == min(count, 9)
        assert found.totals[row] == pytest.approx(
            float(np.log(np.exp(logits[row].astype(float)).sum())), abs=1e-5
        )


def test_pickled_weights_are_refused(tiny_llama, tmp_path):
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((tiny_llama / name).read_bytes())
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(WeightsError, match="safetensors"):
        TorchRuntime.from_folder(tmp_path)


def test_a_damaged_model_file_is_a_clear_error(tiny_llama, tmp_path):
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((tiny_llama / name).read_bytes())
    (tmp_path / "model.safetensors").write_bytes((tiny_llama / "model.safetensors").read_bytes()[:1000])
    with pytest.raises(WeightsError, match="can be read"):
        TorchRuntime.from_folder(tmp_path)
