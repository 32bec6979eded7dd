"""AdamW and its learning rate."""

import math
from typing import Any

import torch

from listenwell.training.recipe import OptimizerRecipe


def make_optimizer(model: torch.nn.Module, recipe: OptimizerRecipe) -> torch.optim.AdamW:
    """AdamW over what is trained; weight decay spares vectors (norms and biases).

    The learning rate of each group is multiplied by its `lr_multiplier`.
    """
    trained = {name: value for name, value in model.named_parameters() if value.requires_grad}
    has_heads = "backbone" in dict(model.named_children()) and recipe.head_lr_multiplier != 1
    multiplied = {name for name in trained if has_heads and not name.startswith("backbone.")}
    groups: list[dict[str, Any]] = [
        {"params": [], "weight_decay": decay, "lr_multiplier": lr_multiplier}
        for lr_multiplier in (1.0, recipe.head_lr_multiplier)
        for decay in (recipe.weight_decay, 0.0)
    ]
    for name, parameter in trained.items():
        groups[2 * (name in multiplied) + (parameter.ndim <= 1)]["params"].append(parameter)
    on_gpu = any(parameter.is_cuda for parameter in trained.values())
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=recipe.learning_rate,
        betas=recipe.betas,
        fused=True if on_gpu else None,  # one kernel for all parameters
    )


def learning_rate(recipe: OptimizerRecipe, progress: float) -> float:
    """The rate at a share of the whole training: a linear rise, then the decay to zero."""
    if progress < recipe.warmup_share:
        return recipe.learning_rate * (progress + 1e-8) / recipe.warmup_share
    after = min(1.0, (progress - recipe.warmup_share) / max(1e-8, 1 - recipe.warmup_share))
    share = {"constant": 1.0, "linear": 1 - after, "cosine": 0.5 * (1 + math.cos(math.pi * after))}
    return recipe.learning_rate * share[recipe.decay]
