"""Low-rank adapters merged into a model's weights, without the library that trained them."""

import json
from pathlib import Path
from typing import Any

import torch

from listenwell.errors import CheckpointError


def merge_lora(model: Any, config: Path, weights: Path) -> None:  # noqa: ANN401
    """Add an adapter in peft's format to a model in place: W + (alpha / rank) B A (Hu et al. 2022, eq. 3)."""
    from safetensors.torch import load_file

    settings = json.loads(config.read_text(encoding="utf-8"))
    tensors = {name: value.float() for name, value in load_file(weights).items()}
    more = ("use_dora", "use_rslora", "alpha_pattern", "rank_pattern", "fan_in_fan_out")
    if any(map(settings.get, more)) or not all(".lora_A." in n or ".lora_B." in n for n in tensors):
        raise CheckpointError(f"{config} describes more than plain LoRA.", "Merge it with peft.")
    scale = settings["lora_alpha"] / settings["r"]
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
