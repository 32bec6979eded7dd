"""LoRA adapters by peft: the same way for every model that is trained."""

from pathlib import Path
from typing import Any

import torch

from listenwell.checkpoint import Checkpoint
from listenwell.errors import MissingExtraError, RecipeError
from listenwell.runtime.encoder import has_adapter, merge_lora
from listenwell.runtime.names import ADAPTER, ADAPTER_CONFIG, HEAD_FILE, WHOLE
from listenwell.training.recipe import LoraRecipe


def add_lora(model: Any, recipe: LoraRecipe, base: str, task: str) -> Any:  # noqa: ANN401
    """The model with adapters, which alone are trained.

    Args:
        model: a transformers model.
        recipe: rank, scale, dropout and layers.
        base: the base model's name, written into the adapter's config: a name, no place on this machine.
        task: peft's name for the kind of model.
    """
    LoraConfig, get_peft_model = _peft("LoraConfig", "get_peft_model")
    config = LoraConfig(
        r=recipe.rank,
        lora_alpha=recipe.alpha,
        lora_dropout=recipe.dropout,
        target_modules=recipe.targets,
        task_type=task,
    )
    adapted = get_peft_model(model, config)
    adapted.peft_config["default"].base_model_name_or_path = base
    return adapted


def load_lora(model: Any, file: Path) -> None:  # noqa: ANN401
    """Take the adapters' weights from adapter_model.safetensors."""
    from safetensors.torch import load_file

    (set_peft_model_state_dict,) = _peft("set_peft_model_state_dict")
    set_peft_model_state_dict(model, load_file(file))


def take_weights(model: torch.nn.Module, encoder: Any, saved: Checkpoint) -> None:  # noqa: ANN401
    """Begin with a trained model's weights; layers that it did not have stay as they are.

    Args:
        model: the whole.
        encoder: its part with an adapter of the same form, or without one: then theirs is merged into it.
        saved: the trained one.
    """
    from safetensors.torch import load_file

    if WHOLE in saved.sums:
        if has_adapter(encoder):
            raise RecipeError(
                f"{saved.folder} has no adapter.", "Leave `lora` out of the recipe, or begin elsewhere."
            )
        weights = load_file(saved.path(WHOLE))
    else:
        weights = load_file(saved.path(HEAD_FILE))
        if has_adapter(encoder):
            load_lora(encoder, saved.path(ADAPTER))
        else:
            merge_lora(encoder, saved.path(ADAPTER_CONFIG), saved.path(ADAPTER))
    own = model.state_dict()
    known = {name: value.float() for name, value in weights.items() if name in own}
    model.load_state_dict(known, strict=False)


def _peft(*names: str) -> tuple[Any, ...]:
    """Names out of peft, which only recipes with `lora` need."""
    try:
        import peft
    except ModuleNotFoundError:
        raise MissingExtraError("peft", "train", "Training adapters") from None
    return tuple(getattr(peft, name) for name in names)
