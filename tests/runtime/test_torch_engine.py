import numpy as np
import pytest

from listenwell.errors import WeightsError
from listenwell.runtime.torch_engine import TorchRuntime


@pytest.fixture(scope="module")
def runtime(tiny_llama):
    return TorchRuntime.from_folder(tiny_llama)


def test_steps_give_what_one_reading_of_all_tokens_gives(runtime):
    tokens = runtime.encode("I am so happy for you!")
    state = runtime.prefill(tokens[:3])
    for token in tokens[3:]:
        state = runtime.step(state, [token])
    np.testing.assert_allclose(runtime.logits(state), runtime.logits(runtime.prefill(tokens)), atol=1e-5)


def test_rows_go_their_own_ways_from_one_prompt(runtime):
    prompt = runtime.encode("What happened")
    state = runtime.step(runtime.prefill(prompt, rows=2), [5, 9])
    logits = runtime.logits(state)
    assert logits.shape == (2, len(runtime.vocabulary))
    for row, token in enumerate((5, 9)):
        alone = runtime.logits(runtime.prefill([*prompt, token]))
        np.testing.assert_allclose(logits[row], alone[0], atol=1e-5)


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
