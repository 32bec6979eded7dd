"""What the loop asks of a model to be trained; the loop knows nothing else about it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from listenwell.training.recipe import TrainRecipe

if TYPE_CHECKING:
    import torch


class Task(Protocol):
    """A model with its data, its loss and its validation."""

    model: Any
    """The torch module whose parameters are trained."""
    kind: str
    """The checkpoint's kind."""
    metrics: tuple[str, ...]
    """The metrics of `measure` that a best checkpoint can be chosen by; smaller is better."""
    table: str
    """The results' task, such as "perplexity"."""
    counted: str
    """The figure of `measure` that says how many items were measured, such as "replies"."""
    corpus: str
    """What it learns from, for the result."""
    base_files: tuple[Path, ...]
    """The files of the base weights, for their hash."""

    @classmethod
    def prepare(cls, recipe: TrainRecipe, device: "torch.device") -> "Task":
        """Load the base model and encode the training data."""

    def examples(self) -> Sequence[Any]:
        """The training data: of the protocol `TrainingExample`."""

    def collate(self, examples: Sequence[Any], rows: Sequence[Sequence[int]], width: int, height: int) -> Any:  # noqa: ANN401
        """A `Batch` of rows of example numbers, filled up to `height` rows with padding."""

    def loss_sum(self, batch: Any) -> "torch.Tensor":  # noqa: ANN401
        """The summed loss over the batch's targets, on the device, without waiting for it."""

    def measure(self, split: str) -> dict[str, float]:
        """Metrics on another split, weighted by tokens whatever the batches."""

    def save(self, folder: Path) -> None:
        """Write the model's files (config, weights, tokenizer) into a checkpoint's folder."""

    def load(self, folder: Path) -> None:
        """Take the weights of a checkpoint that `save` wrote."""

    def data_files(self, shaping: bool = False) -> Iterator[Path]:
        """The files of the data, for their hash; `shaping`: only of what is learned from and chosen by."""

    def conditions(self) -> dict[str, str]:
        """What a reader must know of this kind of task to compare its figures."""
