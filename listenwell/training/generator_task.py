"""A training task of a generator, composed of a model, its data and an objective."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

from listenwell.training.causal_model import CausalModel
from listenwell.training.recipe import TrainRecipe
from listenwell.training.tokens import TokenBatch, collate


class TrainingData(Protocol):
    """What a generator learns from and is measured on."""

    corpus: str
    """What it learns from, for the result."""

    def examples(self) -> Sequence[Any]:
        """The training examples, of the kind that the objective collates."""

    def measure(self, split: str, model: CausalModel) -> dict[str, float]:
        """Perplexities on another split."""

    def files(self, shaping: bool = False) -> Iterator[Path]:
        """The files in use; `shaping`: without the test split's."""

    def conditions(self) -> dict[str, str]:
        """What is learned and what is measured, for the result."""


class Objective(ABC):
    """The loss over batches of examples."""

    collate: Callable[..., Any] = staticmethod(collate)
    """A batch of rows of example numbers, filled up to a height with padding."""

    @abstractmethod
    def loss_sum(self, batch: Any) -> torch.Tensor:  # noqa: ANN401
        """The summed loss over the batch's targets."""

    def measure(self) -> dict[str, float]:
        """The objective's own metrics on what is held out."""
        return {}

    def conditions(self) -> dict[str, str]:
        """How the loss is made up, for the result."""
        return {}


class CausalObjective(Objective):
    """The negative log-likelihood of the targets, in nats."""

    def __init__(self, model: CausalModel) -> None:
        self._model = model

    def loss_sum(self, batch: TokenBatch) -> torch.Tensor:
        """Summed over the targets."""
        return self._model.token_losses(batch).sum()


class GeneratorTask:
    """A `Task` that leaves its work to a model, its data and an objective."""

    kind: str
    metrics: tuple[str, ...] = ("perplexity_by_token", "perplexity_by_word", "bits_per_byte")
    table, counted = "perplexity", "replies"

    def __init__(
        self, generator: CausalModel, data: TrainingData, objective: Objective, recipe: TrainRecipe
    ) -> None:
        self.generator, self.data, self.objective, self.recipe = generator, data, objective, recipe
        self.model, self.vocabulary, self.corpus = generator.module, generator.vocabulary, data.corpus
        self.base_files = generator.base_files
        self.examples, self.data_files = data.examples, data.files
        self.collate, self.loss_sum = objective.collate, objective.loss_sum
        self.save, self.load = generator.save, generator.load_weights

    def measure(self, split: str) -> dict[str, float]:
        """Perplexities on a split, and the objective's own metrics."""
        return self.data.measure(split, self.generator) | self.objective.measure()

    def conditions(self) -> dict[str, str]:
        """What was learned, how and by which loss."""
        return self.data.conditions() | self.objective.conditions()


def perplexity_conditions(recipe: TrainRecipe) -> dict[str, str]:
    """What a reader must know to compare perplexities of generators."""
    return {
        "learned": "the listener's turns" if recipe.learn == "replies" else "everybody's turns",
        "learned without context": f"{100 * recipe.unconditional:g} % of the replies once more",
        "measured": "the listener's tokens and the end mark of each reply, given all turns before it",
        "tokenizer": recipe.base_name,
        "unit": "perplexity by token (tokenizer's), by word (between white space), bits by UTF-8 byte",
    }
