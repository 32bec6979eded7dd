"""Starting from a trained classifier, such as the shipped one."""

from pathlib import Path

from listenwell.annotators.annotator import SHIPPED
from listenwell.annotators.config import KIND, ClassifierConfig
from listenwell.annotators.model import MultiTaskClassifier, with_temperatures
from listenwell.checkpoint import open_checkpoint
from listenwell.errors import RecipeError
from listenwell.training.adapters import take_weights
from listenwell.training.task_configs import ClassifierRecipe


def start_of(settings: ClassifierRecipe) -> Path | None:
    """The checkpoint to start from; "shipped" is the package's own."""
    return SHIPPED if settings.start == Path("shipped") else settings.start


def start_from(classifier: MultiTaskClassifier, folder: Path) -> None:
    """Give a classifier the weights of a trained one; heads that this does not have keep theirs.

    Args:
        classifier: its encoder has an adapter of the same form, or none: then theirs is merged into it.
        folder: the trained one's checkpoint.
    """
    saved = open_checkpoint(folder, KIND)
    config = ClassifierConfig.from_json(saved.path("config.json").read_text(encoding="utf-8"))
    if (config.base, config.pooling) != (classifier.config.base, classifier.config.pooling):
        raise RecipeError(f"{folder} has another base or pooling than the recipe.", "Let them agree.")
    take_weights(classifier, classifier.encoder, saved)
    known = {name: value for name, value in config.temperatures if name in classifier.config.heads}
    with_temperatures(classifier, known)
