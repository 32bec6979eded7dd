"""Training CoMAE and its family: the reply's words and, from the context, its factors (§5.2).

L = L_NLL + λ (L_C + L_A + L_E). Over a step, L_NLL is the mean over the replies' tokens and the others' the
mean over the replies; a reply's own factors stand before those that follow from them and on its tokens.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from listenwell.checkpoint import open_checkpoint
from listenwell.corpora.sources import HELD_OUT, Source
from listenwell.errors import RecipeError
from listenwell.files import written_whole
from listenwell.labels import MECHANISM_ABBREVIATIONS
from listenwell.metrics import Perplexity
from listenwell.papers.comae.checkpoint import KIND, make_model, save_model
from listenwell.papers.comae.config import SHORT, SLOTS, ComaeConfig, ComaeTaskConfig
from listenwell.papers.comae.inputs import ComaeBatch, Inputs, TrainingExample, collate
from listenwell.papers.comae.model import ComaeModel, Words, token_losses
from listenwell.papers.comae.scoring import score
from listenwell.runtime.text import Vocabulary
from listenwell.runtime.weights import HUB_FILES
from listenwell.training.adapters import add_lora, take_weights
from listenwell.training.compiled import Functions, compiled
from listenwell.training.recipe import TrainRecipe

RANKS = "factors.npy"
"""Beside a run's result: for each test reply the rank of its true choice in each slot (`config.SLOTS`), 1 the
best, 0 where the model has no such factor; each factor after the likeliest ones before it. Table 4 takes the
files of two models."""
FIGURES = ("perplexity_by_token", "perplexity_by_word", "bits_per_byte")


class ComaeTask:
    """A model of the family and the annotated replies it learns from."""

    kind = KIND
    metrics = (*FIGURES, *(f"{name}_predicted" for name in FIGURES))
    table, counted = "perplexity", "replies"
    base_files: tuple[Path, ...] = ()
    collate = staticmethod(collate)

    def __init__(
        self, model: ComaeModel, vocabulary: Vocabulary, recipe: TrainRecipe, device: torch.device
    ) -> None:
        self.model: Any = model.to(device)
        self.vocabulary, self.recipe, self.device = vocabulary, recipe, device
        self.corpus = recipe.data.corpus
        self._inputs, self._source = Inputs(vocabulary, model.config), source_of(recipe)
        self._left_out: Counter[str] = Counter()
        self._known: dict[str, list[TrainingExample]] = {}
        self._plain: Functions = (self.model.decode, token_losses)
        self._fast = compiled(self._plain, recipe, device)
        self._train = self._encoded(recipe.data.train, recipe.batches.row_tokens)
        self._tokens_a_reply = sum(example.weight for example in self._train) / len(self._train)

    @classmethod
    def prepare(cls, recipe: TrainRecipe, device: torch.device) -> "ComaeTask":
        """Make the model, with adapters where the recipe asks for them, and encode the training data."""
        for split in recipe.data.used():
            source_of(recipe).files(split)  # before minutes are spent on the others
        config = replace(recipe.settings(ComaeTaskConfig).comae, base=recipe.base)
        model, folder = make_model(config, recipe.weights, recipe.dropout)
        if recipe.lora:
            model.decoder = add_lora(model.decoder, recipe.lora, recipe.base, "FEATURE_EXTRACTION")
            if model.head is not None:
                model.head.requires_grad_(False)
        task = cls(model, Vocabulary.from_folder(folder), recipe, device)
        task.base_files = tuple(folder / name for name in HUB_FILES)
        return task

    def examples(self) -> Sequence[TrainingExample]:
        """The training replies."""
        return self._train

    def loss_sum(self, batch: ComaeBatch) -> torch.Tensor:
        """The summed loss: L, times the tokens of an average reply, for each reply.

        The loop divides by the step's tokens. So a token's likelihood counts the same in every batch, and so
        does a reply's factor.
        """
        decoder, losses = self._fast if self.model.training else self._plain
        words = Words.of(batch, self.device)
        context, states = self.model.states(words, words.factors, decoder)
        total: torch.Tensor = losses(states, self.model.output_weights(), words.labels).sum()
        if self.model.config.factors:
            predicted = self.model.factor_losses(context, words.factors).sum()
            total = total + self.model.config.weight * self._tokens_a_reply * predicted
        return total

    def measure(self, split: str) -> dict[str, float]:
        """Perplexities with each reply's own factors, the same with predicted ones, and how well they are."""
        if split not in self._known:
            # All that the model can read: what is measured must not depend on how training is batched.
            self._known[split] = self._encoded(split, int(self.model.decoder.config.max_position_embeddings))
        examples = self._known[split]
        self.model.eval()
        scores = score(
            self.model, examples, ("gold", "predicted") if self.model.config.factors else ("gold",)
        )
        self.model.train()
        if split == self.recipe.data.test:
            with written_whole(self.recipe.output / RANKS) as out:
                np.save(out, scores.ranks["predicted"].astype(np.int32), allow_pickle=False)
        tokens = sum(example.weight for example in examples)
        words, size = sum(example.words for example in examples), sum(example.bytes for example in examples)
        figures = {
            "tokens": float(tokens),
            "words": float(words),
            "bytes": float(size),
            "replies": float(len(examples)),
        }
        for factors, nlls in scores.nll.items():
            total = Perplexity(float(nlls.sum()), tokens, words, size, self.recipe.base)
            each = (total.by_token, total.by_word, total.bits_per_byte, total.nll)
            ending = "" if factors == "gold" else f"_{factors}"
            figures |= {f"{name}{ending}": value for name, value in zip((*FIGURES, "nll"), each, strict=True)}
        return figures | factor_metrics(self.model.config, scores.ranks["gold"])

    def save(self, folder: Path) -> None:
        """Config, tokenizer and the weights in fp16."""
        save_model(self.model, self.vocabulary, folder)

    def load(self, folder: Path) -> None:
        """Take the weights of a checkpoint that `save` wrote."""
        take_weights(self.model, self.model.decoder, open_checkpoint(folder, KIND))

    def data_files(self, shaping: bool = False) -> Iterator[Path]:
        """The corpus's files of the splits in use; `shaping`: without the test split's."""
        for split in self.recipe.data.used(shaping):
            yield from self._source.files(split)

    def conditions(self) -> dict[str, str]:
        """Which model of the family, what it is told, and the units."""
        recipe, config = self.recipe, self.model.config
        left_out = ", ".join(f"{count} of {split}" for split, count in self._left_out.items() if count)
        conditions = {
            "model of the family": config.title,
            "learned": "everybody's turns" if recipe.learn == "all" else "the listener's turns",
            "measured": "the listener's tokens and the end mark of each reply, given all turns before it",
            "factors": "gold: the human reply's own, as the annotators read them; predicted: the likeliest, "
            "one after the other",
            "hits and accuracies": "of a factor, the human reply's own factors before it given",
            "weight of the factors' losses": f"{config.weight:g}",
            "learning rate multiplier of the new embeddings": f"{config.lr_multiplier:g}",
            "left out, since too long or without a factor": left_out or "none",
            "tokenizer": recipe.weights.name if recipe.weights else recipe.base,
            "unit": "perplexity by token (tokenizer's), by word (between white space), bits by UTF-8 byte",
        }
        return conditions | ({"split": HELD_OUT} if self._source.divides else {})

    def _encoded(self, split: str, limit: int) -> list[TrainingExample]:
        """A split's replies; one without a factor that the model needs, or without room, is left out."""
        examples, total = [], 0
        for example in islice(self._source.examples(split), self.recipe.data.limit):
            encoded, total = self._inputs.encode(example, limit), total + 1
            if encoded is not None and self._inputs.is_known(encoded.factors):
                examples.append(encoded)
        self._left_out[split] = total - len(examples)
        if not examples:
            needed = ", ".join(self.model.config.factors) or "a context"
            raise RecipeError(
                f"{self._source.name} {split} holds no reply with what the model needs: {needed}.",
                "Annotate the corpus with `listenwell annotate`, and name its folder as data.annotated.",
            )
        return examples


def source_of(recipe: TrainRecipe) -> Source:
    """The replies that the recipe names."""
    data = recipe.data
    return Source(data.corpus, data.path, recipe.learn == "all", data.annotated)


def factor_metrics(config: ComaeConfig, ranks: np.ndarray) -> dict[str, float]:
    """In percent: Hits@1 and Hits@3 of act and emotion, how often each mechanism, and all three are right."""
    figures: dict[str, float] = {}
    for name in config.factors:
        own = ranks[:, list(SLOTS[name])]
        if name == "mechanisms":
            for column, short in enumerate(MECHANISM_ABBREVIATIONS):
                figures[f"{short.lower()}_accuracy"] = _percent(own[:, column] == 1)
            figures["cm_exact"] = _percent((own == 1).all(axis=1))
        else:
            for k in (1, 3):
                figures[f"{SHORT[name].lower()}_hits_{k}"] = _percent(own[:, 0] <= k)
    return figures


def _percent(right: np.ndarray) -> float:
    return 100 * float(right.mean())
