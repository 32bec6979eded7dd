"""LoRA adapters by peft: the same way for every model that is trained."""

from pathlib import Path
from typing import Any

from listenwell.errors import MissingExtraError
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


def _peft(*names: str) -> tuple[Any, ...]:
    """Names out of peft, which only recipes with `lora` need."""
    try:
        import peft
    except ModuleNotFoundError:
        raise MissingExtraError("peft", "train", "Training adapters") from None
    return tuple(getattr(peft, name) for name in names)
