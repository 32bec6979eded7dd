"""LoRA adapters by peft: the same way for every model that is trained."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from listenwell.checkpoint import Checkpoint
from listenwell.errors import MissingExtraError, RecipeError
from listenwell.runtime.encoder import has_adapter, merge_lora
from listenwell.runtime.names import ADAPTER, ADAPTER_CONFIG, HEAD_FILE, WHOLE, current_names
from listenwell.training.recipe import LoraRecipe


def add_lora(model: Any, recipe: LoraRecipe, base: str, task: str) -> Any:  # noqa: ANN401
    """A transformers model with adapters, which alone are trained; `task` is peft's name for its kind."""
    peft = _peft()
    config = peft.LoraConfig(
        r=recipe.rank,
        lora_alpha=recipe.alpha,
        lora_dropout=recipe.dropout,
        target_modules=recipe.targets,
        task_type=task,
    )
    adapted = peft.get_peft_model(model, config)
    adapted.peft_config["default"].base_model_name_or_path = base
    return adapted


def load_lora(model: Any, file: Path) -> None:  # noqa: ANN401
    """Take the adapters' weights from adapter_model.safetensors."""
    from safetensors.torch import load_file

    _peft().set_peft_model_state_dict(model, load_file(file))


def start_from(model: Any, encoder: Any, saved: Checkpoint, agreeing: Sequence[str]) -> Any:  # noqa: ANN401
    """`take_weights` of a model whose config agrees in some settings; returns its config."""
    config = type(model.config).from_dict(saved.config())
    if any(getattr(config, name) != getattr(model.config, name) for name in agreeing):
        raise RecipeError(
            f"{saved.folder} has another {' or '.join(agreeing)} than the recipe.", "Let them agree."
        )
    take_weights(model, encoder, saved)
    return config


def take_weights(model: torch.nn.Module, encoder: Any, saved: Checkpoint) -> None:  # noqa: ANN401
    """Begin with a trained model's weights; layers that it did not have stay as they are.

    An adapter is loaded into the encoder's own of the same form; without one it is merged into the encoder.
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
    known = {name: value.float() for name, value in current_names(weights).items() if name in own}
    model.load_state_dict(known, strict=False)


def halve_frozen(model: torch.nn.Module) -> None:
    """Keep linear layers' frozen weights in bf16: autocast would round them anew at every step."""
    for module in model.modules():
        if isinstance(module, torch.nn.Linear) and not module.weight.requires_grad:
            module.bfloat16()


def _peft() -> Any:  # noqa: ANN401
    """The library peft, which only recipes with `lora` need."""
    try:
        import peft
    except ModuleNotFoundError:
        raise MissingExtraError("peft", "train", "Training adapters") from None
    return peft
