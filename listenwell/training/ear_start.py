"""Going on from a trained ear, such as the shipped one."""

from pathlib import Path

from listenwell.annotators.annotator import SHIPPED
from listenwell.annotators.model import ADAPTER, HEAD_FILE, KIND, WHOLE, Ear, EarConfig, with_temperatures
from listenwell.checkpoint import open_checkpoint
from listenwell.errors import RecipeError
from listenwell.runtime.lora import merge_lora
from listenwell.training.adapters import load_lora
from listenwell.training.recipe import EarRecipe


def start_of(settings: EarRecipe) -> Path | None:
    """The ear to go on from; "shipped" is the one that comes with the package."""
    return SHIPPED if settings.start == Path("shipped") else settings.start


def begin_from(ear: Ear, folder: Path) -> None:
    """Give an ear the weights of a trained one; heads that this did not have begin anew.

    Args:
        ear: an encoder with an adapter of the same form, or without one: then theirs is merged into it.
        folder: the trained one's checkpoint.
    """
    from safetensors.torch import load_file

    saved = open_checkpoint(folder, KIND)
    config = EarConfig.from_json(saved.path("config.json").read_text(encoding="utf-8"))
    if (config.base, config.pooling) != (ear.config.base, ear.config.pooling):
        raise RecipeError(f"{folder} has another base or pooling than the recipe.", "Let them agree.")
    has_adapter = hasattr(ear.encoder, "peft_config")
    if WHOLE in saved.sums:
        if has_adapter:
            raise RecipeError(
                f"{folder} has no adapter.", "Leave `lora` out of the recipe, or begin elsewhere."
            )
        weights = load_file(saved.path(WHOLE))
    else:
        weights = load_file(saved.path(HEAD_FILE))
        if has_adapter:
            load_lora(ear.encoder, saved.path(ADAPTER))
        else:
            merge_lora(ear.encoder, saved.path("adapter_config.json"), saved.path(ADAPTER))
    own = ear.state_dict()
    ear.load_state_dict({name: value.float() for name, value in weights.items() if name in own}, strict=False)
    known = {name: value for name, value in config.temperatures if name in ear.config.heads}
    with_temperatures(ear, known)
