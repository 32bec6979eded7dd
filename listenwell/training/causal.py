"""Fine-tuning a causal language model on dialogues: the listener's turns are predicted, nothing else.

A dialogue is one sequence in the model's chat format. Every listener turn in it is learned with exactly the
turns before it as context, so each reply counts once and each context is read once.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from listenwell.corpora import CORPORA, CorpusLoader
from listenwell.dialogue import Dialogue
from listenwell.errors import RecipeError
from listenwell.generators.prompt_template import role_of
from listenwell.generators.vanilla import KIND
from listenwell.runtime.chat_format import Chat
from listenwell.runtime.text import Vocabulary
from listenwell.training.causal_model import CausalModel
from listenwell.training.generator_task import CausalObjective, GeneratorTask, perplexity_conditions
from listenwell.training.recipe import TrainRecipe
from listenwell.training.tokens import Encoded


def encode_dialogue(
    vocabulary: Vocabulary, dialogue: Dialogue, limit: int, everyone: bool = False
) -> Encoded | None:
    """A dialogue's tokens, with the listener's words and end marks as targets.

    A dialogue longer than the limit loses its oldest turns; None if no reply with a context is left.
    `everyone`: everybody's turns are targets, the first one too.
    """
    chat, turns = Chat(vocabulary), list(dialogue.turns)
    parts: list[tuple[list[int], bool]] = []
    for turn in turns:
        tokens = chat.turn(role_of(turn, dialogue), vocabulary.encode(turn.text))
        parts.append((tokens, turn.speaker == dialogue.listener))
    length = len(chat.begin) + sum(len(tokens) for tokens, _ in parts)
    while len(parts) > 2 and length > limit:
        length -= len(parts.pop(0)[0])
        turns.pop(0)
    if length > limit or not (everyone or any(is_reply for _, is_reply in parts[1:])):
        return None
    targets, texts = np.zeros(length, bool), list[str]()
    begin = len(chat.begin)
    for number, (tokens, is_reply) in enumerate(parts):
        if everyone or (is_reply and number > 0):
            head = len(chat.head(role_of(turns[number], dialogue)))
            targets[begin + head : begin + len(tokens) - len(chat.tail) + 1] = True  # the end token too
            texts.append(turns[number].text)
        begin += len(tokens)
    return Encoded(
        np.array([*chat.begin, *(token for tokens, _ in parts for token in tokens)], np.int32),
        targets,
        len(texts),
        sum(len(text.split()) for text in texts),
        sum(len(text.encode("utf-8", "replace")) for text in texts),
    )


class DialogueData:
    """Dialogues whose turns are learned."""

    def __init__(self, vocabulary: Vocabulary, recipe: TrainRecipe) -> None:
        self._vocabulary, self._recipe = vocabulary, recipe
        self.corpus = recipe.data.corpus
        self._loader = _loader(recipe)
        limit = recipe.batches.row_tokens
        self._train = self._encoded(recipe.data.train, limit, recipe.learn == "all")
        if recipe.unconditional:
            self._train += self._unconditional(limit)

    def examples(self) -> Sequence[Encoded]:
        """The training dialogues."""
        return self._train

    def measure(self, split: str, model: CausalModel) -> dict[str, float]:
        """Perplexities of the listener's replies, given all that the model can read before them."""
        return model.perplexity(self._encoded(split, model.context_length))

    def files(self, shaping: bool = False) -> Iterator[Path]:
        """The corpus's files of the splits in use; `shaping`: without the test split's."""
        for split in self._recipe.data.used(shaping):
            yield from self._loader.files(split)

    def conditions(self) -> dict[str, str]:
        """Units, and which turns are learned."""
        return perplexity_conditions(self._recipe)

    def _dialogues(self, split: str) -> Iterator[Dialogue]:
        items = islice(self._loader.read(split), self._recipe.data.limit)
        return (item for item in items if isinstance(item, Dialogue))

    def _encoded(self, split: str, limit: int, everyone: bool = False) -> list[Encoded]:
        dialogues = self._dialogues(split)
        encoded = (encode_dialogue(self._vocabulary, dialogue, limit, everyone) for dialogue in dialogues)
        sequences = [sequence for sequence in encoded if sequence is not None]
        if not sequences:
            raise RecipeError(
                f"{self._loader.name} {split} holds no dialogue with a reply to learn from.",
                "Name another corpus or split in the recipe's data, or raise its limit.",
            )
        return sequences

    def _unconditional(self, limit: int) -> list[Encoded]:
        """A share of the training replies without their contexts, which teach P(y)."""
        random = np.random.default_rng([self._recipe.seed, 7])
        replies = [
            Dialogue((example.reply,), listener=example.reply.speaker)
            for dialogue in self._dialogues(self._recipe.data.train)
            for example in dialogue.examples()
            if random.random() < self._recipe.unconditional
        ]
        encoded = (encode_dialogue(self._vocabulary, reply, limit, True) for reply in replies)
        return [sequence for sequence in encoded if sequence is not None]


class CausalTask(GeneratorTask):
    """Fine-tuning of a causal model on dialogues."""

    kind = KIND

    @classmethod
    def prepare(cls, recipe: TrainRecipe, device: torch.device) -> "CausalTask":
        """Load the base model and encode the training dialogues."""
        loader = _loader(recipe)
        for split in recipe.data.used():
            loader.check(split)  # before minutes are spent on the others
        generator = CausalModel.load(recipe, device)
        data = DialogueData(generator.vocabulary, recipe)
        return cls(generator, data, CausalObjective(generator), recipe)


def _loader(recipe: TrainRecipe) -> CorpusLoader:
    loader: CorpusLoader = CORPORA.load(recipe.data.corpus)(recipe.data.path)
    return loader
