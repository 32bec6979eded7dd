"""Training the planned generator: the plan's tokens, then the reply's, after the dialogue before them.

Each reply is one sequence, in the same layout as in generation (`generators.prompt_template`). A share of the
replies is learned without its plan, and a share once more without its context, so that the model gives P(y|x)
and P(y) too.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from listenwell.conversation_state import with_state, without_state
from listenwell.corpora.sources import HELD_OUT, Source
from listenwell.dialogue import STATE, Example, Factors
from listenwell.errors import RecipeError
from listenwell.generators.planned import KIND
from listenwell.generators.plans import CROWD, PlanTokens, known_plans
from listenwell.generators.prompt_template import EncodedPrompt, PromptTemplate
from listenwell.runtime.text import Vocabulary
from listenwell.training.causal_model import CausalModel
from listenwell.training.generator_task import CausalObjective, GeneratorTask, perplexity_conditions
from listenwell.training.preference_pairs import conversation_key
from listenwell.training.recipe import TrainRecipe
from listenwell.training.task_configs import PairsRecipe, PlannedTaskConfig
from listenwell.training.tokens import Encoded


class PlannedData:
    """Replies with their plans."""

    def __init__(self, vocabulary: Vocabulary, recipe: TrainRecipe) -> None:
        self.template = PromptTemplate(vocabulary, PlanTokens.of(vocabulary), CROWD)
        self._recipe, self._config = recipe, recipe.settings(PlannedTaskConfig)
        self._sources = sources_of(recipe)
        self.corpus = " + ".join(source.name for source, _ in self._sources)
        self._train: list[Encoded] | None = None

    def examples(self) -> Sequence[Encoded]:
        """The training replies, read at the first call."""
        if self._train is None:
            self._train = self._training_sequences(self._recipe.batches.row_tokens)
        return self._train

    def measure(self, split: str, model: CausalModel) -> dict[str, float]:
        """Perplexities of the replies with their plans and without, and the plans' mean loss.

        Of each corpus; metrics of the first one have no suffix.
        """
        figures: dict[str, float] = {}
        for source, _ in self._sources:
            planned, window = self._planned(source, split), model.context_length
            with_plan = [self.template.example(example, plan, window) for example, plan in planned]
            without_plan = [self.template.example(example, None, window) for example, _ in planned]
            gold = model.perplexity([encoded(prompt, prompt.words) for prompt in with_plan])
            unplanned = model.perplexity([encoded(prompt, prompt.words) for prompt in without_plan])
            plans = model.perplexity([encoded(prompt, prompt.plan, prompt.words) for prompt in with_plan])
            of_source = gold | {
                f"{name}_unplanned": unplanned[name]
                for name in ("perplexity_by_token", "perplexity_by_word", "bits_per_byte")
            }
            of_source |= {"plan_nll": plans["nll"] / len(planned)}
            suffix = f" on {source.name}" if figures else ""
            figures |= {f"{name}{suffix}": value for name, value in of_source.items()}
        return figures

    def files(self, shaping: bool = False) -> Iterator[Path]:
        """The files of the splits in use; `shaping`: without the test split's."""
        yield from source_files(self._recipe, self._recipe.data.used(shaping))

    def conditions(self) -> dict[str, str]:
        """Which replies are learned, and what is measured."""
        recipe, planning, pairs = self._recipe, self._config.planning, self._config.pairs
        sources = ", ".join(f"{source.title} {count or 'all'}" for source, count in self._sources)
        divided = {"divided": HELD_OUT} if any(source.divides for source, _ in self._sources) else {}
        own = {
            "learned": f"plan and words of the listener's replies: {sources}",
            "learned beside": "the other person's turns" if recipe.learn == "all" else "nothing",
            "learned situations": f"{100 * planning.situations:g} % of those that are known",
            "learned without plan": f"{100 * planning.plan_dropout:g} % of the replies",
            "factors": "gold: the human reply's own plan stands before it; unplanned: none does, and the "
            "probability that one would begin counts against it",
            "plans": "the speaker's true emotion where the corpus has it, the rest by the annotators",
            "state": f"before {100 * planning.state:g} % of the replies after a second message",
            "begins from": str(pairs.start) if pairs and pairs.start else "the base model",
        }
        return perplexity_conditions(recipe) | own | divided

    def _training_sequences(self, limit: int) -> list[Encoded]:
        recipe, planning = self._recipe, self._config.planning
        random = np.random.default_rng([recipe.seed, 11])
        sequences: list[Encoded] = []
        for source, count in self._sources:
            planned = self._planned(source, recipe.data.train)
            if count > len(planned):
                raise RecipeError(
                    f"{source.name} has {len(planned)} training replies, not {count}.",
                    "Lower pairs.sources.",
                )
            is_drawn = bool(count or planning.replies)
            order = random.permutation(len(planned)) if is_drawn else range(len(planned))
            # A conversation's last reply has all of it before it: what is learned beside is learned once.
            keys = [conversation_key(example.context) for example, _ in planned]
            last = set({key: index for index, key in enumerate(keys)}.values())
            for index in islice(_of_each(order, keys, last, planning.replies), count or None):
                example, plan = planned[index]
                kept = None if random.random() < planning.plan_dropout else plan
                if planning.state and random.random() >= planning.state:
                    example = replace(example, context=without_state(example.context))
                prompt = self.template.example(example, kept, limit)
                # An emotion that the corpus does not label is input, but no target.
                is_labelled = planning.emotions and example.context.emotion is not None
                sequence = encoded(prompt, prompt.plan + (kept is not None and not is_labelled))
                if int(index) in last:
                    sequences += self._with_context_targets(example, prompt, sequence, limit, random)
                else:
                    sequences.append(sequence)
                if random.random() < recipe.unconditional:
                    unconditional = self.template.alone(example.reply.text, limit)
                    sequences.append(encoded(unconditional, unconditional.words))
        return sequences

    def _with_context_targets(
        self,
        example: Example,
        prompt: EncodedPrompt,
        sequence: Encoded,
        limit: int,
        random: np.random.Generator,
    ) -> list[Encoded]:
        """A conversation's last reply, with the other person's turns and the situation as targets too."""
        targets = sequence.targets
        if self._recipe.learn == "all":
            targets = targets | self.template.said_by("user", prompt.tokens)
        if self._config.planning.earlier:
            targets = targets | self.template.earlier(prompt)
        sequences = [replace(sequence, targets=targets)]
        if example.context.situation and random.random() < self._config.planning.situations:
            situation = self.template.situation(example.context, limit)
            sequences.append(encoded(situation, situation.words))
        return sequences

    def _planned(self, source: Source, split: str) -> list[tuple[Example, Factors]]:
        data, pairs = self._recipe.data, self._config.pairs
        limit = data.limit
        if split != data.train and pairs and pairs.measured:
            limit = min(limit or pairs.measured, pairs.measured)
        planned = list(known_plans(list(islice(source.examples(split), limit))))
        if not self._config.planning.state:
            return planned
        return [(_stateful(example), plan) for example, plan in planned]


class PlannedTask(GeneratorTask):
    """Fine-tuning of a planned generator."""

    kind = KIND

    @classmethod
    def prepare(cls, recipe: TrainRecipe, device: torch.device) -> "PlannedTask":
        """Load the base model with its plan tokens, or the generator to start from, and encode the data."""
        list(source_files(recipe, recipe.data.used()))  # before minutes are spent on the others
        generator = CausalModel.load(recipe, device, plans=True)
        data = PlannedData(generator.vocabulary, recipe)
        data.examples()
        pairs = recipe.settings(PlannedTaskConfig).pairs
        if pairs and pairs.start:
            generator.start_from(pairs.start)
        return cls(generator, data, CausalObjective(generator), recipe)


def _stateful(example: Example) -> Example:
    """With the state of its context, read from the annotations unless the corpus holds it."""
    if example.context.note(STATE):
        return example
    return replace(example, context=with_state(example.context))


def _of_each(order: Iterable[int], keys: Sequence[str], last: set[int], count: int) -> Iterator[int]:
    """Of each conversation at most `count` replies, its last one among them; all for 0."""
    left = dict.fromkeys(keys, count - 1)
    for index in order:
        if not count or index in last:
            yield int(index)
        elif left[keys[index]] > 0:
            left[keys[index]] -= 1
            yield int(index)


def encoded(prompt: EncodedPrompt, first: int, end: int | None = None) -> Encoded:
    """A reply's tokens, of which those from `first` up to `end` are to be predicted."""
    targets = np.zeros(len(prompt.tokens), bool)
    targets[first:end] = True
    words, size = len(prompt.text.split()), len(prompt.text.encode("utf-8", "replace"))
    return Encoded(np.array(prompt.tokens, np.int32), targets, 1, words, size)


def sources_of(recipe: TrainRecipe) -> Sequence[tuple[Source, int]]:
    """The corpora of a recipe, and how many replies of each; 0 is all."""
    data = recipe.data
    pairs = recipe.settings(PlannedTaskConfig).pairs or PairsRecipe(((data.corpus, 0),))
    return [
        (Source(name, data.path if name == data.corpus else None, annotated=data.annotated), count)
        for name, count in pairs.sources
    ]


def source_files(recipe: TrainRecipe, splits: Sequence[str]) -> Iterator[Path]:
    """The corpora's files of some splits; one that is missing is an error."""
    for source, _ in sources_of(recipe):
        for split in splits:
            yield from source.files(split)
