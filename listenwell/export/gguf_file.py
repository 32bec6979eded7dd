"""A GGUF file, which llama.cpp and Ollama run."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from listenwell.errors import WeightsError
from listenwell.export.merged import EMBEDDING, OUTPUT, TEMPLATE, Merged
from listenwell.files import disk_errors
from listenwell.progress import progress
from listenwell.runtime.gguf import gguf_name
from listenwell.runtime.text import Vocabulary

_NORMAL, _CONTROL = 1, 3  # llama.cpp's types of tokens
_FLOAT_16 = 1  # its number for files of half floats


def write_gguf(model: Merged, file: Path, name: str) -> None:
    """Configuration, vocabulary and weights in half precision; whole or not at all.

    Args:
        model: a Llama with a byte-level BPE vocabulary.
        file: where to.
        name: what the model is called inside.
    """
    import gguf

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
    writer.add_eos_token_id(vocabulary.special("<|im_end|>"))
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
