"""Training the planned generator: the plan's tokens, then the reply's, after the dialogue before them.

Each reply is one sequence, laid out as when it is spoken (generators/planned.py). A share of the replies is
learned without its plan, and a share once more without its context, so that P(y|x) and P(y) are known too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from listenwell.checkpoint import MANIFEST, open_checkpoint
from listenwell.corpora.sources import HELD_OUT, Source
from listenwell.dialogue import Example
from listenwell.errors import RecipeError
from listenwell.generators.planned import KIND, SHIPPED
from listenwell.generators.plans import CHOICES, LEVELS, TOKENS, PlanTokens, known_plans, token_words
from listenwell.generators.prompt_template import EncodedPrompt, PromptTemplate
from listenwell.generators.vanilla import KIND as CAUSAL
from listenwell.preference.pairs import talk_of
from listenwell.runtime.added_tokens import AddedTokens
from listenwell.runtime.names import ADDED_TOKENS
from listenwell.runtime.quiet import quiet_transformers
from listenwell.runtime.text import Vocabulary
from listenwell.runtime.weights import HUB_FILES
from listenwell.training.adapters import add_lora, load_lora
from listenwell.training.added_tokens import first_rows
from listenwell.training.causal import CausalTask, load_causal
from listenwell.training.recipe import PairsRecipe, TrainRecipe
from listenwell.training.tokens import Encoded

ADAPTER = "adapter_model.safetensors"


class PlannedTask(CausalTask):
    """A planned generator and the replies it learns from."""

    kind = KIND

    def __init__(self, model: Any, vocabulary: Vocabulary, recipe: TrainRecipe, device: torch.device) -> None:  # noqa: ANN401
        self._layout = PromptTemplate(vocabulary, PlanTokens.of(vocabulary))
        self._parts = parts_of(recipe)
        super().__init__(model, vocabulary, recipe, device)
        self.corpus = " + ".join(source.name for source, _ in self._parts)

    @classmethod
    def prepare(cls, recipe: TrainRecipe, device: torch.device) -> "PlannedTask":
        """Load the base model with its plan tokens, and adapters where the recipe asks for them."""
        for source, _ in parts_of(recipe):
            for split in cls.splits(recipe):
                source.files(split)  # before minutes are spent on the others
        model, folder = load_causal(recipe)
        vocabulary = Vocabulary.from_folder(folder)
        rows = first_rows(
            model, vocabulary, [token_words(level, value) for level in LEVELS for value in CHOICES[level]]
        )
        extended = vocabulary.extended(TOKENS)
        if recipe.lora:
            model = add_lora(model, recipe.lora, recipe.base, "CAUSAL_LM")
            base = model.get_base_model()
            base.set_input_embeddings(AddedTokens(base.get_input_embeddings().weight, rows))
        else:
            with quiet_transformers(), torch.no_grad():
                model.resize_token_embeddings(len(extended), mean_resizing=False)
                model.get_input_embeddings().weight[len(vocabulary) :] = rows
        task = cls(model, extended, recipe, device)
        task.base_files = tuple(folder / name for name in HUB_FILES)
        if recipe.pairs and recipe.pairs.start:
            task.base_files += (task.begin_from(recipe.pairs.start),)
        return task

    @classmethod
    def splits(cls, recipe: TrainRecipe, shaping: bool = False) -> tuple[str, ...]:
        """Of the corpora, those that are read; `shaping`: without the test split."""
        return recipe.data.used(shaping)

    def begin_from(self, start: Path) -> Path:
        """Take a trained speaker's weights, or those of a model that knows no plans; gives its manifest."""
        saved = open_checkpoint(SHIPPED if str(start) == "shipped" else start)
        if saved.kind not in (KIND, CAUSAL) or (ADAPTER in saved.sums) != bool(self.recipe.lora):
            raise RecipeError(
                f"{saved.folder} holds a {saved.kind!r} checkpoint that this recipe cannot go on from.",
                "Name a speaker's; give `lora` of the same rank if it was trained so.",
            )
        try:
            self.load(saved.folder)
        except (RuntimeError, ValueError) as error:  # peft and torch tell shapes that differ
            raise RecipeError(
                f"{saved.folder} has weights of another form: {str(error).splitlines()[0]}",
                "Give the recipe's `lora` the rank and targets that it was trained with.",
            ) from error
        return saved.folder / MANIFEST

    def measure(self, split: str) -> dict[str, float]:
        """Of each corpus, the first without a suffix: how likely replies are given their plans and without,
        and how likely the plans are."""
        found: dict[str, float] = {}
        for source, _ in self._parts:
            examples, window = self._examples(source, split), self._window()
            laid = [self._layout.example(example, plan, window) for example, plan in examples]
            without = [self._layout.example(example, None, window) for example, _ in examples]
            gold = self._measured([encoded(one, one.words) for one in laid])
            generic_question = self._measured([encoded(one, one.words) for one in without])
            plans = self._measured([encoded(one, one.plan, one.words) for one in laid])
            figures = gold | {
                f"{name}_unplanned": generic_question[name]
                for name in ("perplexity_by_token", "perplexity_by_word", "bits_per_byte")
            }
            figures |= {"plan_nll": plans["nll"] / len(examples)}
            suffix = f" on {source.name}" if found else ""
            found |= {f"{name}{suffix}": value for name, value in figures.items()}
        return found

    def save(self, folder: Path) -> None:
        """The adapter's files with the new tokens' rows, or the whole model; the vocabulary."""
        from safetensors.torch import load_file, save_file

        super().save(folder)
        if self.recipe.lora:
            rows = {"rows": self._base().get_input_embeddings().rows.detach()}
            # In halves, as adapters are shipped: what is measured is what will speak.
            for name, tensors in ((ADAPTER, load_file(folder / ADAPTER)), (ADDED_TOKENS, rows)):
                save_file({key: value.half().cpu() for key, value in tensors.items()}, folder / name)

    def load(self, folder: Path) -> None:
        """Take the weights of a checkpoint that `save` wrote, or of a model without plan tokens."""
        from safetensors.torch import load_file

        if not self.recipe.lora:
            super().load(folder)
            return
        load_lora(self.model, folder / ADAPTER)
        if (folder / ADDED_TOKENS).is_file():
            rows = load_file(folder / ADDED_TOKENS)["rows"]
            with torch.no_grad():
                self._base().get_input_embeddings().rows.copy_(rows)

    def data_files(self, shaping: bool = False) -> Iterator[Path]:
        """The files of the splits in use; `shaping`: without the test split's."""
        for source, _ in self._parts:
            for split in self.splits(self.recipe, shaping):
                yield from source.files(split)

    def conditions(self) -> dict[str, str]:
        """Which replies are learned, and what is measured."""
        recipe = self.recipe
        sources = ", ".join(f"{source.title} {count or 'all'}" for source, count in self._parts)
        divided = {"divided": HELD_OUT} if any(source.divides for source, _ in self._parts) else {}
        own = {
            "learned": f"plan and words of the listener's replies: {sources}",
            "learned beside": "the other person's turns" if recipe.learn == "all" else "nothing",
            "learned situations": f"{100 * recipe.planning.situations:g} % of those that are known",
            "learned without plan": f"{100 * recipe.planning.plan_dropout:g} % of the replies",
            "factors": "gold: the human reply's own plan stands before it; unplanned: none does, and the "
            "chance that one would begin counts against it",
            "plans": "the speaker's true emotion where the corpus knows it, the rest by the annotators",
            "begun from": str(recipe.pairs.start)
            if recipe.pairs and recipe.pairs.start
            else "the base model",
        }
        return super().conditions() | own | divided

    def _head(self) -> Sequence[torch.Tensor]:
        embeddings = self._base().get_input_embeddings()  # input and output are tied
        # In two parts, no gradient is worked out for the one that is not trained.
        return (embeddings.known, embeddings.rows) if self.recipe.lora else (embeddings.weight,)

    def _training_sequences(self, limit: int) -> list[Encoded]:
        recipe, random = self.recipe, np.random.default_rng([self.recipe.seed, 11])
        found: list[Encoded] = []
        for source, count in self._parts:
            examples = self._examples(source, recipe.data.train)
            if count > len(examples):
                raise RecipeError(
                    f"{source.name} has {len(examples)} training replies, not {count}.",
                    "Lower pairs.sources.",
                )
            chosen = random.permutation(len(examples))[:count] if count else range(len(examples))
            # A talk's last reply has the whole talk before it: what is learned of that is learned once.
            ends = set(
                {talk_of(example.context): place for place, (example, _) in enumerate(examples)}.values()
            )
            for place in chosen:
                example, plan = examples[place]
                given = None if random.random() < recipe.planning.plan_dropout else plan
                laid = self._layout.example(example, given, limit)
                # An emotion that nobody knows for certain is read, but not learned.
                known = recipe.planning.emotions and example.context.emotion is not None
                piece = encoded(laid, laid.plan + (given is not None and not known))
                if int(place) in ends:
                    found += self._around(example, laid, piece, limit, random)
                else:
                    found.append(piece)
                if random.random() < recipe.unconditional:
                    alone = self._layout.alone(example.reply.text, limit)
                    found.append(encoded(alone, alone.words))
        return found

    def _around(
        self, example: Example, laid: EncodedPrompt, piece: Encoded, limit: int, random: np.random.Generator
    ) -> list[Encoded]:
        """A talk's last reply, with what else is learned of the talk: the other person's turns, and what
        happened."""
        found = [piece]
        if self.recipe.learn == "all":
            found = [replace(piece, targets=piece.targets | self._layout.theirs(laid.tokens))]
        if example.context.situation and random.random() < self.recipe.planning.situations:
            told = self._layout.situation(example.context, limit)
            found.append(encoded(told, told.words))
        return found

    def _examples(self, source: Source, split: str) -> list[tuple[Example, Any]]:
        recipe, limit = self.recipe, self.recipe.data.limit
        if split != recipe.data.train and recipe.pairs and recipe.pairs.measured:
            limit = min(limit or recipe.pairs.measured, recipe.pairs.measured)
        return list(known_plans(list(islice(source.examples(split), limit))))


def encoded(laid: EncodedPrompt, first: int, end: int | None = None) -> Encoded:
    """A reply's tokens, of which those from `first` up to `end` are to be predicted."""
    targets = np.zeros(len(laid.tokens), bool)
    targets[first:end] = True
    words, size = len(laid.text.split()), len(laid.text.encode("utf-8", "replace"))
    return Encoded(np.array(laid.tokens, np.int32), targets, 1, words, size)


def parts_of(recipe: TrainRecipe) -> Sequence[tuple[Source, int]]:
    """The corpora of a recipe, and how many replies of each."""
    data = recipe.data
    pairs = recipe.pairs or PairsRecipe(((data.corpus, 0),))
    return [
        (Source(name, data.path if name == data.corpus else None, annotated=data.annotated), count)
        for name, count in pairs.sources
    ]
