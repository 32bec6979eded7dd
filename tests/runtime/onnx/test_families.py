"""Graphs of every family against transformers, from folders and GGUF files."""

import json

import numpy as np
import pytest
import torch

from listenwell.errors import WeightsError
from listenwell.runtime.engines import load_runtime
from listenwell.runtime.gguf import unpack_gguf
from listenwell.runtime.onnx.engine import OnnxRuntime
from listenwell.runtime.onnx.shape import MOST_POSITIONS, DecoderShape
from listenwell.runtime.onnx.smooth import _read
from listenwell.runtime.onnx.tensors import ShiftedGains, Tensors
from listenwell.runtime.torch_engine import TorchRuntime
from tests.bases import FAMILIES, SIZES, WINDOW, random_model, save_base, write_gguf

TOKENS = np.random.default_rng(0).integers(3, 300, 5 * WINDOW).tolist()
HALF = len(TOKENS) // 2


def logits_of(model, tokens=TOKENS):
    """Of all tokens, by one plain pass of transformers."""
    with torch.no_grad():
        return model(torch.tensor([tokens])).logits[0].numpy()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("bases")


@pytest.fixture(scope="module", params=FAMILIES)
def base(request, home):
    """A folder and its family."""
    folder = home / request.param
    if not folder.exists():
        folder.mkdir()
        save_base(folder, request.param)
    return folder, request.param


@pytest.fixture
def model(base):
    folder, family = base
    return random_model(family, json.loads((folder / "config.json").read_text())["vocab_size"])


def test_logits_are_those_of_transformers_at_once_and_with_a_cache(base, model):
    runtime, wanted = OnnxRuntime.load(base[0], precision="fp32", threads=1), logits_of(model)
    assert np.abs(wanted).max() > 1
    at_once = runtime.prefill(TOKENS)
    in_parts = runtime.step(runtime.prefill(TOKENS[:HALF]), [TOKENS[HALF:]])
    one_by_one = runtime.prefill(TOKENS[:HALF])
    for token in TOKENS[HALF:]:
        one_by_one = runtime.step(one_by_one, [[token]])
    for state in (at_once, in_parts, one_by_one):
        np.testing.assert_allclose(runtime.logits(state)[0], wanted[-1], atol=1e-4)
    # In a batch, each row has its own length and window.
    pair = runtime.step(runtime.prefill_many([TOKENS[:-1], TOKENS[:3]]), [[TOKENS[-1]], [TOKENS[3]]])
    np.testing.assert_allclose(runtime.logits(pair), wanted[[-1, 3]], atol=1e-4)


def test_a_rounded_graph_is_close(base, model):
    runtime = OnnxRuntime.load(base[0], threads=1)
    wanted = logits_of(model)[-1]
    assert np.abs(runtime.logits(runtime.prefill(TOKENS))[0] - wanted).max() < 0.15 * np.abs(wanted).max()


def test_what_is_balanced_by_is_what_the_model_computes(base, model):
    """The pass in numpy that shows how large channels are ends with the model's logits."""
    folder, family = base
    shape, weights = DecoderShape.of(model.config.to_dict()), Tensors(folder / "model.safetensors")
    seen = {}
    _read(
        shape,
        ShiftedGains(weights) if family.startswith("gemma") else weights,
        TOKENS,
        lambda values, writer, readers: seen.update({writer: values}),
        lambda count: None,
    )
    table = weights["lm_head.weight" if "lm_head.weight" in weights else "model.embed_tokens.weight"]
    found = seen["model.norm.weight"] @ table.T
    if shape.logit_cap:
        found = shape.logit_cap * np.tanh(found / shape.logit_cap)
    np.testing.assert_allclose(found, logits_of(model), atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_gguf_file_gives_the_same_logits_directly_and_unpacked(family, tmp_path):
    wanted = logits_of(write_gguf(tmp_path / "tiny.gguf", family))[-1]
    runtime = OnnxRuntime.load(tmp_path / "tiny.gguf", precision="fp32", threads=1)
    np.testing.assert_allclose(runtime.logits(runtime.prefill(TOKENS))[0], wanted, atol=1e-4)
    (tmp_path / "unpacked").mkdir()
    unpack_gguf(tmp_path / "tiny.gguf", tmp_path / "unpacked")
    reference = TorchRuntime.from_folder(tmp_path / "unpacked")
    np.testing.assert_allclose(reference.logits(reference.prefill(TOKENS))[0], wanted, atol=1e-4)
    assert reference.encode("I am sad <|im_end|>") == runtime.encode("I am sad <|im_end|>")


def test_torch_gives_the_same_likelihoods_and_states(base):
    """With windows, bounds and scaled embeddings, also where several replies share a row."""
    exact, reference = (
        OnnxRuntime.load(base[0], precision="fp32", threads=1),
        TorchRuntime.from_folder(base[0]),
    )
    replies = [TOKENS[HALF:], TOKENS[3 : 3 + WINDOW + 2], TOKENS[:2]]
    found, wanted = (engine.log_likelihoods(TOKENS[:HALF], replies) for engine in (exact, reference))
    np.testing.assert_allclose(found, wanted, atol=1e-3)
    means = [engine.mean_hidden_states(TOKENS[:HALF], replies) for engine in (exact, reference)]
    np.testing.assert_allclose(*means, atol=1e-3)
    left, right = (
        engine.step(engine.prefill_many([TOKENS, TOKENS[:4]]), [[5], [6]]) for engine in (exact, reference)
    )
    np.testing.assert_allclose(exact.logits(left), reference.logits(right), atol=1e-4)
    left, right = (
        exact.step(exact.pick(left, [1, 1]), [[7], [8]]),
        reference.step(reference.pick(right, [1, 1]), [[7], [8]]),
    )
    np.testing.assert_allclose(exact.logits(left), reference.logits(right), atol=1e-4)


def test_shards_and_unused_rows_are_read(tmp_path):
    save_base(tmp_path, "qwen2", unused=7, shards="100KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    runtime = load_runtime(tmp_path)
    assert isinstance(runtime, OnnxRuntime)
    exact = OnnxRuntime.load(tmp_path, precision="fp32", threads=1)
    found = exact.logits(exact.prefill(TOKENS))[0]
    assert len(found) == len(exact.vocabulary)  # nothing that no token stands for can be said
    model = random_model("qwen2", len(exact.vocabulary) + 7)
    np.testing.assert_allclose(found, logits_of(model)[-1, :-7], atol=1e-4)
    (next(iter(tmp_path.glob("*-00001-of-*.safetensors")))).unlink()
    with pytest.raises(WeightsError, match=r"There is no .*00001-of"):
        OnnxRuntime.load(tmp_path, precision="fp32")


def test_a_gemma_that_also_reads_images_is_run_by_its_text_part(tmp_path):
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration, Gemma3TextConfig

    save_base(tmp_path, "gemma3_text")
    vocabulary = json.loads((tmp_path / "config.json").read_text())["vocab_size"]
    text = Gemma3TextConfig(vocab_size=vocabulary, **SIZES | FAMILIES["gemma3_text"])
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    vision = sizes | {"image_size": 28, "patch_size": 14}
    config = Gemma3Config(text_config=text.to_dict(), vision_config=vision, mm_tokens_per_image=4)
    model = Gemma3ForConditionalGeneration(config).eval()
    model.save_pretrained(tmp_path)
    runtime = load_runtime(tmp_path)
    assert isinstance(runtime, OnnxRuntime)
    exact = OnnxRuntime.load(tmp_path, precision="fp32", threads=1)
    np.testing.assert_allclose(exact.logits(exact.prefill(TOKENS))[0], logits_of(model)[-1], atol=1e-4)
    with pytest.raises(WeightsError, match=r"reads images too.*GGUF file of its text part"):
        TorchRuntime.from_folder(tmp_path)


def test_published_configs_of_gemma_3_leave_out_most_settings():
    text = {
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "model_type": "gemma3_text",
        "num_hidden_layers": 34,
    }
    text |= {"rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024}
    shape = DecoderShape.of({"model_type": "gemma3", "text_config": text})
    assert (shape.heads, shape.key_heads, shape.head_width, shape.tied) == (8, 4, 256, True)
    assert shape.windows[:7] == (1024, 1024, 1024, 1024, 1024, 0, 1024) and len(shape.windows) == 34
    assert (shape.rope.theta, shape.rope.factor, shape.local_rope.theta) == (1e6, 8.0, 1e4)
    assert shape.positions == MOST_POSITIONS


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"attention_bias": True}, "no plain Qwen 3; what differs: attention_bias"),
        ({"use_sliding_window": True}, "what differs: use_sliding_window"),
        ({"head_dim": 24}, "what differs: head_dim"),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}}, "of the kind 'yarn', which is not known here"),
        ({"rms_norm_eps": None}, "config.json lacks"),
    ],
)
def test_settings_that_the_graph_has_not_are_named(change, words):
    sizes = {"max_position_embeddings": 64, "rms_norm_eps": 1e-6, **SIZES}
    with pytest.raises(WeightsError, match=words):
        DecoderShape.of({"model_type": "qwen3"} | sizes | change)


def test_a_gguf_file_of_another_family_is_refused_with_the_families_that_are_known(tmp_path):
    import gguf

    writer = gguf.GGUFWriter(tmp_path / "other.gguf", "mamba")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(
        WeightsError, match=r"holds a 'mamba' model\. Use a model of one of the families: Llama, "
    ):
        load_runtime(tmp_path / "other.gguf")
