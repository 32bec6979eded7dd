"""Numbers on their way into a graph: read, adapted, rounded, balanced."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from listenwell.errors import CheckpointError, WeightsError
from listenwell.runtime.onnx.decoder import EMBEDDING, OUTPUT
from listenwell.runtime.onnx.graph import BLOCK, quantized
from listenwell.runtime.onnx.shape import DecoderShape
from listenwell.runtime.onnx.smooth import Smoothed, sample_tokens
from listenwell.runtime.onnx.tensors import Adapted, Extended, Tensors
from listenwell.runtime.text import Vocabulary


def test_tensors_of_every_precision_are_read(tmp_path):
    import torch
    from safetensors.torch import save_file as save_torch

    values = torch.tensor([[1.5, -2.0], [0.25, 3.0]])
    kinds = {"half": torch.float16, "brain": torch.bfloat16, "full": torch.float32, "double": torch.float64}
    save_torch(
        {name: values.to(kind) for name, kind in kinds.items()} | {"whole": torch.arange(3)}, tmp_path / "f"
    )
    tensors = Tensors(tmp_path / "f")
    for name in kinds:
        assert tensors[name].dtype == np.float32
        assert tensors[name].tolist() == values.tolist()
    assert "whole" in tensors and "none" not in tensors and len(tensors) == 5
    with pytest.raises(WeightsError, match=r"whole in .* is of the kind I64"):
        tensors["whole"]


def test_a_file_that_is_not_whole_is_named(tmp_path):
    save_file({"x": np.ones(100, np.float32)}, tmp_path / "f")
    content = (tmp_path / "f").read_bytes()
    for damaged, words in (
        (content[:-1], "end is missing"),
        (content[:20], "longer"),
        (b"", "cannot be read"),
    ):
        (tmp_path / "f").write_bytes(damaged)
        with pytest.raises(WeightsError, match=words):
            Tensors(tmp_path / "f")


def adapter(folder, name="block", **settings):
    """Rank 1 and alpha 3."""
    tensors = {
        f"base_model.model.{name}.lora_A.weight": np.array([[1, 10]], np.float16),
        f"base_model.model.{name}.lora_B.weight": np.array([[2], [5]], np.float16),
    }
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"r": 1, "lora_alpha": 3} | settings))
    return folder


def test_an_adapter_is_added_worked_by_hand(tmp_path):
    weights = {"block.weight": np.array([[1, 2], [3, 4]], np.float32), "other.weight": np.ones((2, 2))}
    adapted = Adapted(weights, adapter(tmp_path))
    # 3 B A = 3 [[2, 20], [5, 50]]
    assert adapted["block.weight"].tolist() == [[1 + 6, 2 + 60], [3 + 15, 4 + 150]]
    assert adapted["other.weight"] is weights["other.weight"]
    assert list(adapted) == list(weights) and "none" not in adapted


def test_other_adapters_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="more than plain LoRA"):
        Adapted({"block.weight": np.ones((2, 2))}, adapter(tmp_path, use_dora=True))
    with pytest.raises(CheckpointError, match=r"lacks: block\.7\.weight and 0 more"):
        Adapted({"block.weight": np.ones((2, 2))}, adapter(tmp_path, "block.7"))
    (tmp_path / "adapter_config.json").write_text("{")
    with pytest.raises(CheckpointError, match="cannot be read"):
        Adapted({"block.weight": np.ones((2, 2))}, tmp_path)


def test_rows_of_new_tokens_stand_at_the_end():
    extended = Extended({"table": np.zeros((2, 3), np.float32)}, {"table": np.ones((1, 3))}, 2)
    assert extended["table"].tolist() == [[0, 0, 0], [0, 0, 0], [1, 1, 1]]
    with pytest.raises(CheckpointError, match="3 wide"):
        Extended({"table": np.zeros((2, 3))}, {"table": np.ones((1, 4))}, 2)["table"]


def test_blocks_are_rounded_worked_by_hand():
    weight = np.zeros((1, BLOCK + 2), np.float32)
    weight[0, :3] = [-1, 1.55, 0.004]  # 2.55 wide: steps of 0.01, zero at 100
    weight[0, BLOCK:] = [0.0, 5.1]  # filled up with zeros: steps of 0.02
    codes, scales, zeros = quantized(weight)
    assert codes.shape == (1, 2, BLOCK) and codes.dtype == zeros.dtype == np.uint8
    np.testing.assert_allclose(scales, [[0.01, 0.02]], rtol=1e-6)
    assert zeros.tolist() == [[100, 0]]
    assert codes[0, 0, :4].tolist() == [0, 255, 100, 100] and codes[0, 1, :3].tolist() == [0, 255, 0]


def test_rounding_is_off_by_half_a_step_at_most(monkeypatch):
    monkeypatch.setattr("listenwell.runtime.onnx.graph._ROWS", 7)
    weight = np.random.default_rng(0).standard_normal((20, 70)).astype(np.float32)
    weight[3] = 0
    codes, scales, zeros = quantized(weight)
    back = (scales[:, :, None] * (codes.astype(np.float32) - zeros[:, :, None])).reshape(20, -1)
    assert (np.abs(back[:, :70] - weight) <= 0.5001 * scales.repeat(BLOCK, 1)[:, :70]).all()
    assert not back[3].any() and not back[:, 70:].any()


@pytest.fixture
def llama(tiny_llama):
    shape = DecoderShape.of(json.loads((tiny_llama / "config.json").read_text()))
    return shape, Tensors(tiny_llama / "model.safetensors"), Vocabulary.from_folder(tiny_llama)


def test_a_balanced_model_computes_the_same(llama, tmp_path):
    from listenwell.runtime.onnx.decoder import build_decoder
    from listenwell.runtime.onnx.graph import Graph
    from listenwell.runtime.onnx.session import open_session

    shape, weights, vocabulary = llama
    weights = dict(weights)
    # Channels of very different size, as a trained model has them.
    weights["model.layers.0.input_layernorm.weight"] = np.exp(
        np.linspace(-4, 4, shape.width, dtype=np.float32)
    )
    balanced = Smoothed(shape, weights, sample_tokens(vocabulary))
    assert not balanced.shape.tied
    found = []
    for name, given, form in (("plain", weights, shape), ("balanced", balanced, balanced.shape)):
        (tmp_path / name).mkdir()
        with Graph(tmp_path / name, "fp32") as graph:
            build_decoder(graph, form, given)
            graph.save(name, form.notes())
        session = open_session(tmp_path / name, threads=1)
        empty = np.zeros((1, shape.key_heads, 0, shape.head_width), np.float32)
        inputs = {item.name: empty for item in session.get_inputs() if item.name.startswith("past")}
        inputs |= {
            "tokens": np.array([[5, 9, 40, 41]]),
            "last": np.array([3], np.int32),
            "total": np.array(4, np.int32),
            "kept": np.array([0, 3]),
        }
        found.append(session.run(["logits"], inputs)[0])
    np.testing.assert_allclose(*found, atol=1e-4)


def test_channels_and_weights_meet_in_the_middle(llama):
    """Where a channel comes in large, it comes in smaller, and its weights are larger by as much."""
    shape, weights, vocabulary = llama
    weights = dict(weights)
    name, readers = (
        "model.layers.0.input_layernorm.weight",
        [f"model.layers.0.self_attn.{part}_proj.weight" for part in "qkv"],
    )
    weights[name] = weights[name].copy()
    weights[name][7] *= 100
    balanced = Smoothed(shape, weights, sample_tokens(vocabulary))
    factors = weights[name] / balanced[name]
    assert factors[7] > 5 * np.delete(factors, 7).max()
    for reader in readers:
        np.testing.assert_allclose(balanced[reader], weights[reader] * factors, rtol=1e-5)
    np.testing.assert_allclose(balanced[EMBEDDING], weights[EMBEDDING])
    output = weights["model.norm.weight"] / balanced["model.norm.weight"]
    np.testing.assert_allclose(balanced[OUTPUT], weights[EMBEDDING] * output, rtol=1e-5)


def test_the_sample_is_a_chat_where_there_are_marks_of_one(llama):
    vocabulary = llama[2]
    tokens = sample_tokens(vocabulary)
    assert tokens[0] == vocabulary.special("<|im_start|>")
    assert tokens.count(vocabulary.special("<|im_end|>")) == 5
