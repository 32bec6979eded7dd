"""Training a reward model: a causal language model with a head that predicts raters' scores of a reply.

The last state of a reply predicts its empathy and relevance. The loss is their squared error and, within a
context, the pairwise loss of Bradley and Terry on the sum (Ouyang et al. 2022, Eq. 1). The model is large
and slow beside the probe that replies are reranked by (`generators.reward_model`): it scores samples, from
which the generator (best-of-n) and the probe learn.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from listenwell.conversation_state import with_state
from listenwell.dialogue import Dialogue
from listenwell.errors import RecipeError
from listenwell.generators.prompt_template import build_prompt
from listenwell.generators.reward_model import agreement
from listenwell.preference.rating_sheets import SCALES
from listenwell.preference.ratings import RatedContext, rated_contexts, rating_files
from listenwell.runtime.text import Vocabulary
from listenwell.training.causal_model import CausalModel
from listenwell.training.preference_pairs import conversation_key, held_out_share
from listenwell.training.recipe import TrainRecipe
from listenwell.training.task_configs import RewardTaskConfig

KIND = "reward"
PREDICTED = ("empathy", "relevance")
HEAD = "head.safetensors"
MIDDLE = 3.0
"""Of the scale from 1 to 5: the head predicts distances from it."""
REPLY_TOKENS = 80


@dataclass(frozen=True)
class RewardExample:
    """A context with its rated replies: each a sequence of its own."""

    sequences: tuple[np.ndarray, ...]
    scores: np.ndarray  # (replies, 2) float32

    @property
    def tokens(self) -> np.ndarray:
        """All sequences, one after the other."""
        return np.concatenate(self.sequences)

    @property
    def weight(self) -> int:
        """How many replies."""
        return len(self.sequences)

    def __len__(self) -> int:
        return sum(map(len, self.sequences))


@dataclass(frozen=True)
class RewardBatch:
    """Replies of several contexts, a row each."""

    tokens: np.ndarray  # (rows, length) int64
    lengths: np.ndarray  # (rows,) int64
    scores: np.ndarray  # (rows, 2) float32
    contexts: np.ndarray  # (rows,) int64

    @property
    def size(self) -> int:
        """Tokens that are no padding."""
        return int(self.lengths.sum())

    @property
    def weight(self) -> int:
        """How many replies."""
        return len(self.lengths)


def collate(
    examples: Sequence[RewardExample], rows: Sequence[Sequence[int]], width: int, height: int = 0
) -> RewardBatch:
    """Contexts as one batch; width and height are of no use, since a context has several rows."""
    chosen = [examples[index] for row in rows for index in row]
    sequences = [sequence for example in chosen for sequence in example.sequences]
    scores = np.concatenate([example.scores for example in chosen])
    contexts = np.repeat(np.arange(len(chosen)), [example.weight for example in chosen])
    return RewardBatch(*padded(sequences), scores, contexts)


def padded(sequences: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Sequences as rows, filled up on the right, and their lengths."""
    lengths = np.array([len(sequence) for sequence in sequences])
    tokens = np.zeros((len(sequences), int(lengths.max())), np.int64)
    for row, sequence in enumerate(sequences):
        tokens[row, : len(sequence)] = sequence
    return tokens, lengths


@dataclass(frozen=True)
class RewardInputs:
    """A dialogue and a reply as the reward model reads them."""

    vocabulary: Vocabulary
    limit: int

    def encode(self, dialogue: Dialogue, replies: Sequence[str]) -> list[np.ndarray]:
        """A sequence for each reply after the same context."""
        stateful = with_state(replace(dialogue, notes=()))
        state = stateful.note("state") or ""
        prompt = build_prompt(self.vocabulary, stateful, "", self.limit - REPLY_TOKENS, state=state)
        words = [self.vocabulary.encode(reply)[: REPLY_TOKENS - 1] for reply in replies]
        end = min(prompt.stop)
        return [np.array([*prompt.tokens, *own, end], np.int64) for own in words]


class RewardTask:
    """A reward model and the rated replies it learns from."""

    kind = KIND
    metrics = ("disagreement", "squared_error")
    table, counted = "reward", "replies"
    collate = staticmethod(collate)

    def __init__(self, causal: CausalModel, recipe: TrainRecipe) -> None:
        self.causal, self.recipe, self.device = causal, recipe, causal.device
        self.head = torch.nn.Linear(int(causal.base.config.hidden_size), len(PREDICTED)).to(causal.device)
        self.model = torch.nn.ModuleDict({"causal": causal.module, "head": self.head})
        self.base_files = causal.base_files
        self.settings = recipe.settings(RewardTaskConfig).reward
        self.inputs = RewardInputs(causal.vocabulary, self.settings.limit)
        self.corpus = "ratings"

    @classmethod
    def prepare(cls, recipe: TrainRecipe, device: torch.device) -> "RewardTask":
        """Load the base model and encode the rated replies."""
        task = cls.untrained(recipe, device)
        learned, held_out = task._divided
        if not learned or not held_out:
            raise RecipeError("There are too few ratings.", "Give more, or another reward.held_out.")
        return task

    @classmethod
    def untrained(cls, recipe: TrainRecipe, device: torch.device) -> "RewardTask":
        """The base model with a new head; `load` takes trained weights."""
        return cls(CausalModel.load(recipe, device), recipe)

    @cached_property
    def _divided(self) -> tuple[list[RewardExample], list[RewardExample]]:
        """The contexts that are learned from, and those held out with all others of their conversation."""
        learned, held_out = list[RewardExample](), list[RewardExample]()
        for dialogue, rated in rated_contexts(self.settings.ratings, self.recipe.data.train):
            example = self._example(dialogue, rated)
            if example is not None:
                is_held_out = held_out_share(conversation_key(dialogue)) < self.settings.held_out
                (held_out if is_held_out else learned).append(example)
        return learned, held_out

    def _example(self, dialogue: Dialogue, rated: RatedContext) -> RewardExample | None:
        columns = [SCALES.index(name) for name in PREDICTED]
        # The corpus's own reply is not in the file.
        replies = [reply for reply in rated.replies if reply.text is not None]
        if len(replies) < 2:
            return None
        sequences = self.inputs.encode(dialogue, [str(reply.text) for reply in replies])
        scores = np.array([reply.mean[columns] for reply in replies], np.float32)
        return RewardExample(tuple(sequences), scores)

    def examples(self) -> Sequence[RewardExample]:
        """The contexts that are learned from."""
        return self._divided[0]

    def loss_sum(self, batch: RewardBatch) -> torch.Tensor:
        """Squared errors, and the pairwise loss of the replies to one context, summed over the replies."""
        move = self.causal.to_device
        predicted = self.scores(batch.tokens, batch.lengths)
        target, contexts = move(batch.scores) - MIDDLE, move(batch.contexts)
        total = ((predicted - target) ** 2).mean(1).sum()
        if self.settings.pairwise:
            gaps = predicted.sum(1)[:, None] - predicted.sum(1)[None]
            better = target.sum(1)[:, None] - target.sum(1)[None]
            pairs = (contexts[:, None] == contexts[None]) & (better > 0)
            losses = torch.nn.functional.softplus(-gaps) * pairs
            counts = pairs.sum(1).clamp(min=1)
            total = total + self.settings.pairwise * (losses.sum(1) / counts).sum()
        return total

    def scores(self, tokens: np.ndarray, lengths: np.ndarray) -> torch.Tensor:
        """Predicted empathy and relevance, as distances from the scale's middle: (rows, 2)."""
        move = self.causal.to_device
        ends = move(lengths)
        mask = torch.arange(tokens.shape[1], device=self.device)[None] < ends[:, None]
        states = self.causal.base.model(
            input_ids=move(tokens), attention_mask=mask.long(), use_cache=False
        ).last_hidden_state
        last = states[torch.arange(len(tokens), device=self.device), ends - 1]
        predicted: torch.Tensor = self.head(last).float()
        return predicted

    def predict(self, sequences: Sequence[np.ndarray], rows: int = 256) -> np.ndarray:
        """Predicted scores of encoded replies, from 1 to 5: (replies, 2)."""
        order = sorted(range(len(sequences)), key=lambda index: len(sequences[index]))
        predicted = np.zeros((len(sequences), len(PREDICTED)), np.float32)
        self.model.eval()
        is_gpu = self.device.type == "cuda"
        faster = torch.autocast("cuda", torch.bfloat16) if is_gpu else nullcontext()
        with torch.inference_mode(), faster:
            for start in range(0, len(order), rows):
                some = order[start : start + rows]
                batch = padded([sequences[index] for index in some])
                predicted[some] = self.scores(*batch).cpu().numpy() + MIDDLE
        self.model.train()
        return predicted

    def measure(self, split: str) -> dict[str, float]:
        """Agreement with raters on the contexts held out, whatever the split."""
        held_out = self._divided[1]
        predicted = self.predict([sequence for example in held_out for sequence in example.sequences])
        rated = np.concatenate([example.scores for example in held_out])
        contexts = np.repeat(np.arange(len(held_out)), [example.weight for example in held_out])
        both = agreement(predicted.sum(1), rated.sum(1), contexts)
        picks = [
            float(rated[contexts == number].mean(1)[predicted[contexts == number].sum(1).argmax()])
            for number in range(len(held_out))
        ]
        best = [float(example.scores.mean(1).max()) for example in held_out]
        return {
            "disagreement": 100 * (1 - both),
            "agreement": both,
            "agreement_empathy": agreement(predicted[:, 0], rated[:, 0], contexts),
            "agreement_relevance": agreement(predicted[:, 1], rated[:, 1], contexts),
            "squared_error": float(((predicted - rated) ** 2).mean()),
            "rating_of_its_pick": float(np.mean(picks)),
            "rating_of_any": float(rated.mean()),
            "rating_of_the_best": float(np.mean(best)),
            "replies": float(len(rated)),
        }

    def save(self, folder: Path) -> None:
        """The adapter or the whole model, the tokenizer, and the head."""
        from safetensors.torch import save_file

        self.causal.save(folder)
        save_file({name: value.half().cpu() for name, value in self.head.state_dict().items()}, folder / HEAD)

    def load(self, folder: Path) -> None:
        """Take the weights of a checkpoint that `save` wrote."""
        from safetensors.torch import load_file

        self.causal.load_weights(folder)
        self.head.load_state_dict({name: value.float() for name, value in load_file(folder / HEAD).items()})

    def data_files(self, shaping: bool = False) -> Iterator[Path]:
        """The files of ratings."""
        for path in self.settings.ratings:
            yield from rating_files(path)

    def conditions(self) -> dict[str, str]:
        """What it learned from."""
        learned, held_out = self._divided
        return {
            "ratings": f"{sum(example.weight for example in learned)} replies to {len(learned)} contexts",
            "held out": f"{len(held_out)} contexts, of whole conversations drawn by hash",
            "raters": "language models; no person has rated",
            "loss": f"squared error, and {self.settings.pairwise:g} times the pairwise loss",
        }
