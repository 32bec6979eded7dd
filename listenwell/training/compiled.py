"""Compiled functions for training, where compiling pays."""

from collections.abc import Callable
from typing import Any

import torch

from listenwell.training.recipe import TrainRecipe

Functions = tuple[Callable[..., Any], Callable[..., Any]]
"""Tokens to hidden states, and those to the losses of the targets."""


def compiled(plain: Functions, recipe: TrainRecipe, device: torch.device) -> Functions:
    """The same functions compiled, if the recipe lets them and all rows have one shape.

    For rows of every length, as in buckets or in measuring, a graph would be made anew for each: minutes
    before the first steps are through.
    """
    if not recipe.compile or device.type != "cuda" or recipe.batches.batching != "packed":
        return plain
    torch.compiler.reset()  # graphs of an earlier model count towards a limit
    # Packed rows have one shape; targets come in any number.
    return torch.compile(plain[0], dynamic=False), torch.compile(plain[1], dynamic=True)
