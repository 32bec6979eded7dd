"""From a quantized GGUF file to an ordinary Hugging Face model, in numpy alone.

GGUF is llama.cpp's format: one file with the configuration, the tokenizer and quantized tensors. What
comes out has Hugging Face's names and layout, so that any engine reads it.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from listenwell.errors import WeightsError
from listenwell.progress import progress
from listenwell.runtime.families import FAMILIES, GGUF_FAMILIES, unknown_family
from listenwell.runtime.gguf_vocabulary import tokenizer_json
from listenwell.runtime.onnx.tensors import Lazy
from listenwell.runtime.rope import Rope

UNPACKED_VERSION = 2
"""Part of the cache key: raise it when the unpacked form changes."""

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
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
_POST_NORM_NAMES = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
"""Of families that normalize what their layers give."""
_ROPE_FACTORS = "rope_freqs.weight"
_LARGEST = {"gemma2": 46, "gemma3": 62}
"""Layers of the 27B models, whose attention scale the files do not hold: it is not their head width's."""


class PackedModel(Lazy):
    """A GGUF file's weights by Hugging Face's names, in float32; each is unpacked when it is asked for."""

    def __init__(self, file: Path) -> None:
        try:
            from gguf import GGUFReader
        except ModuleNotFoundError:
            raise WeightsError(
                f"Unpacking {file.name} needs the package gguf.", "Install it: pip install gguf"
            ) from None
        try:
            reader = GGUFReader(file)
        except (ValueError, IndexError, OSError) as error:
            raise WeightsError(f"{file} is not a whole GGUF file: {error}.", "Download it again.") from None
        self._fields = _Fields(reader, file)
        self._architecture = self._fields["general.architecture"]
        if self._architecture not in GGUF_FAMILIES:
            raise unknown_family(file, self._architecture)
        self._family = FAMILIES[GGUF_FAMILIES[self._architecture]]
        packed = {tensor.name: tensor for tensor in reader.tensors}
        factors = packed.pop(_ROPE_FACTORS, None)  # of the configuration; other tables are computed
        super().__init__(
            {self._name(name): partial(self._unpacked, tensor) for name, tensor in packed.items()}
        )
        self.config = self._config(None if factors is None else _dequantized(factors))
        """Hugging Face's."""

    def tokenizer(self) -> str:
        """The contents of a tokenizer.json."""
        return tokenizer_json(self._fields)

    def _unpacked(self, tensor: Any) -> np.ndarray:  # noqa: ANN401
        values, part = _dequantized(tensor), tensor.name.split(".")[-2]
        if self._family.shifted_gains and part.endswith("norm"):
            return values - 1
        if self._architecture != "llama" or part not in ("attn_q", "attn_k"):
            return values
        heads = self.config["num_attention_heads" if part == "attn_q" else "num_key_value_heads"]
        # llama.cpp rotates a Llama's neighbouring pairs of rows, Hugging Face the two halves of a head.
        rows, columns = values.shape
        paired = values.reshape(heads, rows // heads // 2, 2, columns)
        return np.ascontiguousarray(paired.swapaxes(1, 2).reshape(rows, columns))

    def _config(self, rope_factors: np.ndarray | None) -> dict[str, Any]:
        fields, prefix = self._fields, self._architecture

        def own(name: str) -> Any:  # noqa: ANN401
            return fields.get(f"{prefix}.{name}")

        heads, width = fields[f"{prefix}.attention.head_count"], fields[f"{prefix}.embedding_length"]
        head_width = own("attention.key_length") or own("rope.dimension_count") or width // heads
        layers = fields[f"{prefix}.block_count"]
        scalar = width // heads if layers == _LARGEST.get(prefix) else head_width
        theta = own("rope.freq_base") or self._family.defaults.get("rope_theta") or 10000.0
        optional = {
            "sliding_window": own("attention.sliding_window"),
            "attn_logit_softcapping": own("attn_logit_softcapping"),
            "final_logit_softcapping": own("final_logit_softcapping"),
            "query_pre_attn_scalar": scalar if "query_pre_attn_scalar" in self._family.defaults else None,
            "rope_scaling": _rope_scaling(
                own("rope.scaling.type"), own("rope.scaling.factor"), Rope(theta), head_width, rope_factors
            ),
        }
        activation = "hidden_activation" if "hidden_activation" in self._family.defaults else "hidden_act"
        return {
            "architectures": [self._family.architecture],
            "model_type": GGUF_FAMILIES[prefix],
            "hidden_size": width,
            "intermediate_size": fields[f"{prefix}.feed_forward_length"],
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": own("attention.head_count_kv") or heads,
            "head_dim": head_width,
            "max_position_embeddings": fields[f"{prefix}.context_length"],
            "rms_norm_eps": fields[f"{prefix}.attention.layer_norm_rms_epsilon"],
            "rope_theta": theta,
            "vocab_size": len(fields["tokenizer.ggml.tokens"]),
            "tie_word_embeddings": "lm_head.weight" not in self,
            "bos_token_id": fields.get("tokenizer.ggml.bos_token_id"),
            "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
            activation: self._family.activation,
            "dtype": "float32",
            **{name: value for name, value in optional.items() if value is not None},
        }

    def _name(self, name: str) -> str:
        """Hugging Face's name of a tensor."""
        if name in _OUTER_NAMES:
            return _OUTER_NAMES[name]
        names = _LAYER_NAMES | (_POST_NORM_NAMES if self._family.post_norms else {})
        parts = name.split(".")
        if len(parts) == 4 and parts[0] == "blk" and parts[2] in names:
            return f"model.layers.{parts[1]}.{names[parts[2]]}.{parts[3]}"
        raise WeightsError(
            f"The GGUF file holds a tensor {name!r} that a {self._family.title} has not.", "Use another file."
        )


def unpack_gguf(file: Path, folder: Path) -> None:
    """Write config.json, model.safetensors (float32) and tokenizer.json of a GGUF file into a folder."""
    from safetensors.numpy import save_file

    packed, tensors = PackedModel(file), dict[str, np.ndarray]()
    with progress("unpacking the model", len(packed), "tensors") as advance:
        for name in packed:
            tensors[name] = packed[name]
            advance(1)
    (folder / "config.json").write_text(json.dumps(packed.config, indent=1), encoding="utf-8")
    (folder / "tokenizer.json").write_text(packed.tokenizer(), encoding="utf-8")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def gguf_name(name: str) -> str:
    """llama.cpp's name of a Llama's tensor that Hugging Face calls so."""
    for theirs, ours in _OUTER_NAMES.items():
        if name == ours:
            return theirs
    for theirs, ours in _LAYER_NAMES.items():
        hidden_state = f".{ours}."
        if name.startswith("model.layers.") and hidden_state in name:
            number, _, last = name.removeprefix("model.layers.").partition(hidden_state)
            return f"blk.{number}.{theirs}.{last}"
    raise WeightsError(f"A Llama has no tensor {name!r}.", "Export another model.")


class _Fields(dict[str, Any]):
    """The key-value part of a GGUF file, with a clear error for what is missing."""

    def __init__(self, reader: Any, file: Path) -> None:  # noqa: ANN401
        super().__init__({name: field.contents() for name, field in reader.fields.items()})
        self._file = file

    def __missing__(self, name: str) -> Any:  # noqa: ANN401
        raise WeightsError(f"{self._file} lacks {name}.", "Use another file.")


def _dequantized(tensor: Any) -> np.ndarray:  # noqa: ANN401
    from gguf.quants import dequantize

    return np.ascontiguousarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)


def _rope_scaling(
    kind: str | None, factor: float | None, plain: Rope, width: int, factors: np.ndarray | None
) -> dict[str, Any] | None:
    """Hugging Face's settings of what changes the rotary positions; None where nothing does."""
    if factors is None:
        return None if kind in (None, "none") else {"rope_type": kind, "factor": factor}
    # Llama 3.1 and later: the file holds what the frequencies are divided by, of which the largest is set.
    scaling = {
        "rope_type": "llama3",
        "factor": float(factors.max()),
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    divided = plain.frequencies(width) / factors
    if not np.allclose(Rope.of(scaling, plain.theta).frequencies(width), divided, rtol=1e-3, atol=0):
        raise WeightsError(
            "The GGUF file's rotary positions are scaled in a way that is not known here.",
            "Use the model's Hugging Face folder.",
        )
    return scaling
