"""From a quantized GGUF file to an ordinary Llama folder, in numpy alone.

GGUF is llama.cpp's format: one file with the configuration, the tokenizer and quantized tensors. What
comes out has Hugging Face's names and layout, so that any engine reads it.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from listenwell.errors import WeightsError
from listenwell.progress import progress

UNPACKED_VERSION = 1
"""Part of the cache key: raise it when the unpacked form changes."""

_CONTROL = 3  # llama.cpp's token type for marks such as <|im_start|>

_OUTER_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER_NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def unpack_gguf(file: Path, folder: Path) -> None:
    """Write config.json, model.safetensors (float32) and tokenizer.json of a GGUF file into a folder."""
    try:
        from gguf import GGUFReader
    except ModuleNotFoundError:
        raise WeightsError(
            f"Unpacking {file.name} needs the package gguf.", "Install it: pip install gguf"
        ) from None
    from safetensors.numpy import save_file

    try:
        reader = GGUFReader(file)
    except (ValueError, IndexError, OSError) as error:
        raise WeightsError(f"{file} is not a whole GGUF file: {error}.", "Download it again.") from None
    fields = _Fields(reader, file)
    if (architecture := fields["general.architecture"]) != "llama":
        raise WeightsError(
            f"{file} holds a {architecture!r} model.", "Use a Llama model, or a Hugging Face folder."
        )
    config = _config(fields, tied=all(tensor.name != "output.weight" for tensor in reader.tensors))
    tensors: dict[str, np.ndarray] = {}
    with progress("unpacking the model", len(reader.tensors), "tensors") as advance:
        for tensor in reader.tensors:
            if (name := _name(tensor.name)) is not None:  # rope tables are computed, not stored
                tensors[name] = _tensor(tensor, config)
            advance(1)
    (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    (folder / "tokenizer.json").write_text(_tokenizer(fields), encoding="utf-8")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


class _Fields:
    """The key-value part of a GGUF file, with a clear error for what is missing."""

    def __init__(self, reader: Any, file: Path) -> None:  # noqa: ANN401
        self._reader, self._file = reader, file

    def get(self, name: str) -> Any:  # noqa: ANN401
        field = self._reader.fields.get(name)
        return None if field is None else field.contents()

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        if (value := self.get(name)) is None:
            raise WeightsError(f"{self._file} lacks {name}.", "Use another file.")
        return value


def _config(fields: _Fields, tied: bool) -> dict[str, Any]:
    """A Hugging Face LlamaConfig."""
    heads, width = fields["llama.attention.head_count"], fields["llama.embedding_length"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": width,
        "intermediate_size": fields["llama.feed_forward_length"],
        "num_hidden_layers": fields["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": fields.get("llama.attention.head_count_kv") or heads,
        "head_dim": fields.get("llama.rope.dimension_count") or width // heads,
        "max_position_embeddings": fields["llama.context_length"],
        "rms_norm_eps": fields["llama.attention.layer_norm_rms_epsilon"],
        "rope_theta": fields.get("llama.rope.freq_base") or 10000.0,
        "vocab_size": len(fields["tokenizer.ggml.tokens"]),
        "tie_word_embeddings": tied,
        "bos_token_id": fields.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
        "hidden_act": "silu",
        "dtype": "float32",
    }


def _name(name: str) -> str | None:
    """Hugging Face's name of a tensor; None for what it does not store."""
    if name in _OUTER_NAMES:
        return _OUTER_NAMES[name]
    parts = name.split(".")
    if len(parts) == 4 and parts[0] == "blk" and parts[2] in _LAYER_NAMES:
        return f"model.layers.{parts[1]}.{_LAYER_NAMES[parts[2]]}.{parts[3]}"
    if name.startswith("rope_freqs"):
        return None
    raise WeightsError(f"The GGUF file holds a tensor {name!r} that a Llama has not.", "Use another file.")


def gguf_name(name: str) -> str:
    """llama.cpp's name of a tensor that Hugging Face calls so."""
    for theirs, ours in _OUTER_NAMES.items():
        if name == ours:
            return theirs
    for theirs, ours in _LAYER_NAMES.items():
        hidden_state = f".{ours}."
        if name.startswith("model.layers.") and hidden_state in name:
            number, _, last = name.removeprefix("model.layers.").partition(hidden_state)
            return f"blk.{number}.{theirs}.{last}"
    raise WeightsError(f"A Llama has no tensor {name!r}.", "Export another model.")


def _tensor(tensor: Any, config: dict[str, Any]) -> np.ndarray:  # noqa: ANN401
    """One tensor in float32, rows of queries and keys in Hugging Face's order."""
    from gguf.quants import dequantize

    values = np.ascontiguousarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
    heads = {
        "attn_q": config["num_attention_heads"],
        "attn_k": config["num_key_value_heads"],
    }.get(tensor.name.split(".")[2] if tensor.name.startswith("blk.") else "")
    if heads is None:
        return values
    # llama.cpp rotates neighbouring pairs of rows, Hugging Face the two halves of a head.
    rows, columns = values.shape
    paired = values.reshape(heads, rows // heads // 2, 2, columns)
    return np.ascontiguousarray(paired.swapaxes(1, 2).reshape(rows, columns))


def _tokenizer(fields: _Fields) -> str:
    """A tokenizer.json of the vocabulary inside the file."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    if (model := fields["tokenizer.ggml.model"]) != "gpt2":
        raise WeightsError(
            f"The tokenizer {model!r} inside the GGUF file is not a byte-level BPE.",
            "Use a Hugging Face folder with a tokenizer.json.",
        )
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    splits = {
        "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level]),
        "gpt-2": byte_level,
        "default": byte_level,
    }
    if (split := fields.get("tokenizer.ggml.pre") or "default") not in splits:
        raise WeightsError(
            f"The GGUF file splits text by the rule {split!r}, which is not known here.",
            "Use a Hugging Face folder with a tokenizer.json.",
        )
    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ", 1)) for merge in fields["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = splits[split]
    tokenizer.decoder = decoders.ByteLevel()
    kinds = fields["tokenizer.ggml.token_type"]
    tokenizer.add_special_tokens(
        [
            AddedToken(token, normalized=False, special=True)
            for token, kind in zip(tokens, kinds, strict=True)
            if kind == _CONTROL
        ]
    )
    return str(tokenizer.to_str())
