"""Encoders and what is trained on top of them: load the base, write adapters and heads, read them back."""

from pathlib import Path
from typing import Any

import torch

from listenwell.checkpoint import Checkpoint
from listenwell.errors import CheckpointError, WeightsError
from listenwell.runtime.names import ADAPTER, ADAPTER_CONFIG, HEAD_FILE, WHOLE, current_names
from listenwell.runtime.onnx.tensors import lora_scale
from listenwell.runtime.quiet import quiet_transformers
from listenwell.runtime.weights import find_weights


def load_encoder(base: str, weights: Path | None = None, dropout: float = 0.0) -> tuple[Any, Path]:
    """A base model without its output layer in float32, and its folder."""
    from safetensors import SafetensorError
    from transformers import AutoConfig, AutoModel

    folder = find_weights(base, weights)
    # Layers take their dropout when they are made: a later change has no effect.
    settings: dict[str, Any] = {"attention_dropout": dropout}
    try:
        if AutoConfig.from_pretrained(folder, local_files_only=True).model_type == "bert":
            settings = {
                "hidden_dropout_prob": dropout,
                "attention_probs_dropout_prob": dropout,
                "add_pooling_layer": False,
            }
        with quiet_transformers():
            encoder = AutoModel.from_pretrained(
                folder,
                use_safetensors=True,
                local_files_only=True,
                dtype=torch.float32,
                attn_implementation="sdpa",
                **settings,
            )
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise WeightsError(
            f"{folder} holds no encoder that can be read: {error}.",
            "Name the folder of one such as all-MiniLM-L6-v2, saved with safetensors.",
        ) from error
    return encoder, folder


def save_weights(model: torch.nn.Module, encoder: Any, folder: Path) -> None:  # noqa: ANN401
    """Write a model's weights in fp16: its encoder's adapter and its own beside it, or all of them."""
    from safetensors.torch import load_file, save_file

    if has_adapter(encoder):
        with quiet_transformers():
            # The embeddings are never trained; peft would ask the hub whether they were.
            encoder.save_pretrained(folder, save_embedding_layers=False)
        (folder / "README.md").unlink(missing_ok=True)  # peft's empty form for a model card
        save_file(_halves(load_file(folder / ADAPTER)), folder / ADAPTER)
        save_file(_halves(own_weights(model, encoder)), folder / HEAD_FILE)
    else:
        save_file(_halves(model.state_dict()), folder / WHOLE)


def load_weights(
    model: torch.nn.Module,
    encoder: Any,  # noqa: ANN401
    saved: Checkpoint,
) -> None:
    """Load a checkpoint's weights; an adapter is merged into the encoder, which has none itself."""
    from safetensors.torch import load_file

    if WHOLE in saved.sums:
        weights, expected = _wholes(load_file(saved.path(WHOLE))), model.state_dict()
    else:
        merge_lora(encoder, saved.path(ADAPTER_CONFIG), saved.path(ADAPTER))
        weights, expected = _wholes(load_file(saved.path(HEAD_FILE))), own_weights(model, encoder)
    weights = current_names(weights)
    shapes, expected_shapes = (
        {name: value.shape for name, value in tensors.items()} for tensors in (weights, expected)
    )
    if differing := sorted({name for name, _ in shapes.items() ^ expected_shapes.items()}):
        raise CheckpointError(
            f"{saved.folder} lacks or adds the weights {', '.join(differing)}.", "Make it anew."
        )
    model.load_state_dict(weights, strict=False)


def has_adapter(encoder: Any) -> bool:  # noqa: ANN401
    """Whether an encoder was given adapters to train."""
    return hasattr(encoder, "peft_config")


def own_weights(model: torch.nn.Module, encoder: Any) -> dict[str, torch.Tensor]:  # noqa: ANN401
    """The weights of a model that are not its encoder's."""
    theirs = {id(value) for value in (*encoder.parameters(), *encoder.buffers())}
    named = (*model.named_parameters(), *model.named_buffers())
    kept = {name for name, value in named if id(value) not in theirs}
    return {name: value for name, value in model.state_dict().items() if name in kept}


def _halves(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: value.detach().to(torch.float16).contiguous().cpu() for name, value in weights.items()}


def _wholes(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: value.float() for name, value in weights.items()}


def merge_lora(model: Any, config: Path, weights: Path) -> None:  # noqa: ANN401
    """Add an adapter in peft's format to a model in place: W + (alpha / rank) B A (Hu et al. 2022, eq. 3)."""
    from safetensors.torch import load_file

    tensors = _wholes(load_file(weights))
    scale = lora_scale(config, tensors)
    layers = dict(model.named_modules())
    with torch.no_grad():
        for name, down in tensors.items():
            if ".lora_A." not in name:
                continue
            up = tensors[name.replace(".lora_A.", ".lora_B.")]
            path = name.removeprefix("base_model.model.").split(".lora_A.")[0]
            if path not in layers:
                raise CheckpointError(
                    f"The adapter {weights} has a layer {path!r} that the model lacks.",
                    "Use the base model that it was trained on.",
                )
            layers[path].weight += scale * (up @ down)
