import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from listenwell.errors import WeightsError
from listenwell.runtime.gguf import unpack_gguf
from listenwell.runtime.text import Vocabulary
from tests.tiny import tiny_tokenizer


@pytest.fixture(scope="module")
def unpacked(tiny_gguf, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    unpack_gguf(tiny_gguf, folder)
    return folder


def test_the_weights_are_those_that_transformers_reads(tiny_gguf, unpacked):
    from transformers import AutoModelForCausalLM

    reference = AutoModelForCausalLM.from_pretrained(tiny_gguf.parent, gguf_file=tiny_gguf.name).state_dict()
    ours = load_file(unpacked / "model.safetensors")
    assert set(reference) - set(ours) == {"lm_head.weight"}  # tied to the embeddings
    for name, values in ours.items():
        np.testing.assert_array_equal(values, reference[name].numpy(), err_msg=name)


def test_the_configuration_is_a_llama_that_transformers_can_load(unpacked):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(unpacked)
    assert model.config.num_key_value_heads == 2
    assert model.config.tie_word_embeddings
    assert json.loads((unpacked / "config.json").read_text())["max_position_embeddings"] == 512


def test_the_tokenizer_is_the_one_that_was_packed(unpacked):
    ours, original = Vocabulary.from_folder(unpacked), Vocabulary(tiny_tokenizer())
    for text in ("I am so happy!", "In 2026, 12:30 — naïve 😀", "  two  spaces\n\ttab", "<|im_end|>"):
        assert ours.encode(text) == original.encode(text)
    assert ours.special_ids == original.special_ids == {0, 1, 2}


def test_a_file_that_is_no_gguf_is_refused(tmp_path, tiny_gguf):
    (tmp_path / "text.gguf").write_bytes(b"hello" * 100)
    with pytest.raises(WeightsError, match="not a whole GGUF file"):
        unpack_gguf(tmp_path / "text.gguf", tmp_path)
    (tmp_path / "half.gguf").write_bytes(tiny_gguf.read_bytes()[:20_000])
    with pytest.raises(WeightsError, match="not a whole GGUF file"):
        unpack_gguf(tmp_path / "half.gguf", tmp_path)
