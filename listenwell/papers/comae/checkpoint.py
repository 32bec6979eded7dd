"""A CoMAE model as a checkpoint: made from its config, written, read back."""

from pathlib import Path
from typing import Any

import torch

from listenwell.checkpoint import open_checkpoint
from listenwell.errors import WeightsError
from listenwell.papers.comae.config import ComaeConfig
from listenwell.papers.comae.model import ComaeModel
from listenwell.runtime.encoder import load_weights, save_weights
from listenwell.runtime.names import WHOLE
from listenwell.runtime.quiet import quiet_transformers
from listenwell.runtime.text import Vocabulary
from listenwell.runtime.weights import find_weights
from listenwell.serialization import build, dumps

KIND = "comae"
BACKBONE = "backbone.json"
"""The causal model's own config, so that a whole model loads without its base."""


def make_model(
    config: ComaeConfig, weights: Path | None = None, dropout: float = 0.0
) -> tuple[ComaeModel, Path]:
    """A model that was not trained, and its base model's folder."""
    from safetensors import SafetensorError
    from transformers import AutoConfig, AutoModelForCausalLM

    folder = find_weights(config.base, weights)
    try:
        settings = AutoConfig.from_pretrained(folder, local_files_only=True)
        for name in ("attention_dropout", "attn_pdrop"):  # GPT-2 has the latter name
            if hasattr(settings, name):
                setattr(settings, name, dropout)
        with quiet_transformers():
            causal = AutoModelForCausalLM.from_pretrained(
                folder, config=settings, dtype=torch.float32, attn_implementation="sdpa", use_safetensors=True
            )
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise WeightsError(
            f"{folder} holds no causal model that CoMAE could be built on: {error}.",
            "Name the folder of one saved with safetensors.",
        ) from error
    return _around(config, causal), folder


def save_model(model: ComaeModel, vocabulary: Vocabulary, folder: Path) -> None:
    """Write config, tokenizer and the weights in fp16: the adapter's and the new parts', or all of them."""
    (folder / "config.json").write_text(dumps(model.config.to_dict()) + "\n", encoding="utf-8")
    (folder / BACKBONE).write_text(model.decoder.config.to_json_string(), encoding="utf-8")
    (folder / "tokenizer.json").write_text(vocabulary.to_json(), encoding="utf-8")
    save_weights(model, model.decoder, folder)


def load_model(folder: Path, weights: Path | None = None) -> tuple[ComaeModel, Vocabulary]:
    """A model from its checkpoint, ready to generate, and its vocabulary."""
    from transformers import AutoConfig, AutoModelForCausalLM

    saved = open_checkpoint(folder, KIND)
    config = build(ComaeConfig, saved.config())
    if WHOLE in saved.sums:
        settings = AutoConfig.from_pretrained(saved.path(BACKBONE), local_files_only=True)
        settings.dtype = torch.float32
        model = _around(config, AutoModelForCausalLM.from_config(settings, attn_implementation="sdpa"))
    else:
        model, _ = make_model(config, weights)
    load_weights(model, model.decoder, saved)
    return model.eval(), Vocabulary.from_folder(folder)


def _around(config: ComaeConfig, causal: Any) -> ComaeModel:  # noqa: ANN401
    """The module around a causal model; an output layer of its own is kept."""
    is_shared = causal.get_output_embeddings().weight is causal.get_input_embeddings().weight
    return ComaeModel(config, causal.base_model, None if is_shared else causal.get_output_embeddings())
