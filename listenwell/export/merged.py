"""A checkpoint as one model: the base's weights merged with adapter and new tokens, one tensor at a time."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from listenwell.checkpoint import Checkpoint
from listenwell.generators.vanilla import ADAPTER
from listenwell.runtime.names import ADDED_TOKENS
from listenwell.runtime.onnx.tensors import Adapted, Extended, Tensors
from listenwell.runtime.weights import find_weights

EMBEDDING, OUTPUT = "model.embed_tokens.weight", "lm_head.weight"
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{{ plan or '' }}{% endif %}"
)
"""ChatML. The model generates its plan as special tokens before the text, unless `plan` gives one, such as
`<|emotion:sad|><|mechanisms:ER|><|act:consoling|><|tone:caring|>`."""


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
    if not (folder / ADAPTER).is_file():
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return Merged(Tensors(folder / "model.safetensors"), config, folder / "tokenizer.json")
    base = find_weights(json.loads((folder / ADAPTER).read_text(encoding="utf-8"))["base_model_name_or_path"])
    config = json.loads((base / "config.json").read_text(encoding="utf-8"))
    weights: Mapping[str, np.ndarray] = Adapted(Tensors(base / "model.safetensors"), folder)
    if (folder / ADDED_TOKENS).is_file():
        rows = Tensors(folder / ADDED_TOKENS)["rows"]
        weights = Extended(weights, dict.fromkeys((EMBEDDING, OUTPUT), rows))
        config["vocab_size"] += len(rows)
    return Merged(weights, config, folder / "tokenizer.json")
