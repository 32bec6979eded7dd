"""A trained generator as a model that other engines run: a Hugging Face folder, or a GGUF file for llama.cpp.

Adapter and new tokens are merged into the base's weights, one tensor at a time.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from listenwell.checkpoint import Checkpoint
from listenwell.errors import WeightsError
from listenwell.files import disk_errors, folder_written_whole
from listenwell.generators.prompt_template import END, START
from listenwell.generators.vanilla import ADAPTER
from listenwell.progress import progress
from listenwell.runtime.gguf import gguf_name
from listenwell.runtime.model_files import ModelFiles
from listenwell.runtime.names import ADDED_TOKENS
from listenwell.runtime.onnx.decoder import EMBEDDING, OUTPUT
from listenwell.runtime.onnx.shape import DecoderShape
from listenwell.runtime.onnx.tensors import Adapted, Extended, Tensors
from listenwell.runtime.text import Vocabulary
from listenwell.runtime.weights import find_weights

_NORMAL, _CONTROL = 1, 3  # llama.cpp's types of tokens
_FLOAT_16 = 1  # its number for files of half floats
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{{ plan or '' }}{% endif %}"
)
"""ChatML. The model generates its plan as special tokens before the text, unless `plan` gives one, such as
`<|emotion:sad|><|mechanisms:ER|><|act:consoling|><|tone:caring|>`."""

TOKENIZER_CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": START,
    "eos_token": END,
    "pad_token": END,
    "clean_up_tokenization_spaces": False,
    "chat_template": TEMPLATE,
}


@dataclass(frozen=True)
class Merged:
    """A whole Llama."""

    weights: Mapping[str, np.ndarray]
    """By Hugging Face's names, float32; each is computed when it is read."""
    config: dict[str, Any]
    """A Hugging Face config."""
    tokenizer: Path
    """tokenizer.json, new tokens among its own."""


def merged(saved: Checkpoint) -> Merged:
    """The merged model of a generator's checkpoint."""
    folder = saved.folder
    if not Vocabulary.from_folder(folder).has_special(START, END):
        raise WeightsError(
            f"{folder} holds a generator on a base with another chat format than ChatML.",
            "Export one that was trained on a Qwen or SmolLM2 model.",
        )
    if not (folder / ADAPTER).is_file():
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return Merged(Tensors(folder / "model.safetensors"), config, folder / "tokenizer.json")
    base = find_weights(json.loads((folder / ADAPTER).read_text(encoding="utf-8"))["base_model_name_or_path"])
    source = ModelFiles.read(base)
    config = dict(source.config)
    weights: Mapping[str, np.ndarray] = Adapted(source.weights, folder)
    if (folder / ADDED_TOKENS).is_file():
        rows = Tensors(folder / ADDED_TOKENS)["rows"]
        known = len(Vocabulary.from_folder(base))
        weights = Extended(weights, dict.fromkeys((EMBEDDING, OUTPUT), rows), known)
        config["vocab_size"] = known + len(rows)
    return Merged(weights, config, folder / "tokenizer.json")


def write_hugging_face(model: Merged, folder: Path) -> None:
    """config.json, model.safetensors in float32, the tokenizer and its chat template; whole or not at all."""
    from safetensors.numpy import save_file

    with folder_written_whole(folder) as aside:
        with progress("merging", len(model.weights), "tensors") as advance:
            tensors = {}
            for name in model.weights:
                tensors[name] = model.weights[name]
                advance(1)
        save_file(tensors, aside / "model.safetensors", metadata={"format": "pt"})
        tokenizer = model.tokenizer.read_text(encoding="utf-8")
        (aside / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
        for name, content in (
            ("config.json", model.config | {"dtype": "float32"}),
            ("tokenizer_config.json", TOKENIZER_CONFIG),
            ("generation_config.json", {"eos_token_id": model.config.get("eos_token_id")}),
        ):
            (aside / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def write_gguf(model: Merged, file: Path, name: str) -> None:
    """Write a Llama with a byte-level BPE vocabulary in half precision, whole or not at all."""
    import gguf

    kind = model.config["model_type"]
    if kind != "llama" or DecoderShape.of(model.config).rope.kind != "default":
        raise WeightsError(
            f"{name} is a {kind!r} model, not a plain Llama.", "Export it with --to hf instead."
        )
    with disk_errors(file), TemporaryDirectory(dir=file.resolve().parent, prefix=".export.") as aside:
        partial = Path(aside) / file.name
        writer = gguf.GGUFWriter(partial, "llama")
        _describe(writer, model.config, name)
        _add_vocabulary(writer, model)
        with progress("writing", len(model.weights), "tensors") as advance:
            for own in model.weights:
                if own != OUTPUT or not model.config.get("tie_word_embeddings"):
                    writer.add_tensor(gguf_name(own), _stored(own, model.weights[own], model.config))
                advance(1)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        partial.replace(file)


def _describe(writer: Any, config: dict[str, Any], name: str) -> None:  # noqa: ANN401
    heads, width = config["num_attention_heads"], config["hidden_size"]
    writer.add_name(name)
    writer.add_file_type(_FLOAT_16)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.get("num_key_value_heads") or heads)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    theta = config.get("rope_theta") or (config.get("rope_parameters") or {}).get("rope_theta") or 10000.0
    writer.add_rope_freq_base(theta)
    writer.add_rope_dimension_count(config.get("head_dim") or width // heads)
    writer.add_vocab_size(config["vocab_size"])


def _add_vocabulary(writer: Any, model: Merged) -> None:  # noqa: ANN401
    data = json.loads(model.tokenizer.read_text(encoding="utf-8"))
    vocabulary = Vocabulary.from_folder(model.tokenizer.parent)
    numbers: dict[str, int] = dict(data["model"].get("vocab", {}))
    numbers |= {added["content"]: added["id"] for added in data["added_tokens"]}
    tokens = sorted(numbers, key=lambda token: numbers[token])
    if data["model"]["type"] != "BPE" or [numbers[token] for token in tokens] != list(range(len(tokens))):
        raise WeightsError(
            f"{model.tokenizer} is no byte-level BPE without gaps.", "Export it with --to hf instead."
        )
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm" if "Digits" in json.dumps(data["pre_tokenizer"]) else "gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([_CONTROL if numbers[t] in vocabulary.special_ids else _NORMAL for t in tokens])
    merges = data["model"]["merges"]
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in merges])
    if (first := model.config.get("bos_token_id")) is not None:
        writer.add_bos_token_id(first)
    writer.add_eos_token_id(vocabulary.special(END))
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE.replace("{{ plan or '' }}", ""))  # llama.cpp passes messages only


def _stored(name: str, values: np.ndarray, config: dict[str, Any]) -> np.ndarray:
    """Half floats, but for norms; rows of queries and keys in llama.cpp's order."""
    if values.ndim == 1:
        return values
    parts = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
    part = name.split(".")[-2]
    if name != EMBEDDING and part in parts:
        heads = config.get(parts[part]) or config["num_attention_heads"]
        rows, columns = values.shape
        # Hugging Face rotates the two halves of a head, llama.cpp neighbouring pairs of rows.
        values = values.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
    return np.ascontiguousarray(values, np.float16)
