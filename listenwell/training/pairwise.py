"""Training a reader: a cross-encoder that tells a fitting reply from one that is nearly right.

loss = −log σ(s(x, fitting) − s(x, wrong)) over pairs of replies to one context x (Bradley and Terry 1952), as
`python -m listenwell.preference.hard_negatives` makes them. What is saved is a ranker.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from listenwell.errors import RecipeError
from listenwell.training.preference_pairs import Pair, read_pairs, conversation_hash
from listenwell.preference.pairwise_accuracy import ERRORS, READING, errors_by_kind
from listenwell.rankers.base import RankingModel, States, Words
from listenwell.rankers.cross import CrossEncoder
from listenwell.rankers.inputs import Text, stacked
from listenwell.runtime.text import Vocabulary
from listenwell.training.rankers import RankTask
from listenwell.training.recipe import PreferenceRecipe, TrainRecipe

AT_ONCE = 128
"""Pairs that are measured together."""


@dataclass(frozen=True)
class PairwiseExample:
    """A context, a fitting reply and a wrong one."""

    context: Text
    replies: tuple[Text, Text]

    weight = 1

    @property
    def tokens(self) -> np.ndarray:
        """Everything that is read for it: (length,) int32."""
        return np.concatenate([self.context.tokens, *(reply.tokens for reply in self.replies)])

    def __len__(self) -> int:
        return len(self.context) + sum(map(len, self.replies))


@dataclass(frozen=True)
class PairwiseBatch:
    """Arrays by the names of `rankers.base.Words`."""

    context: dict[str, np.ndarray]
    replies: dict[str, np.ndarray]
    """All fitting ones, then all wrong ones."""
    size: int
    """Tokens that are no padding."""

    @property
    def weight(self) -> int:
        """How many pairs."""
        return len(self.context["tokens"])


def collate(
    pieces: Sequence[PairwiseExample], rows: Sequence[Sequence[int]], width: int, height: int = 0
) -> PairwiseBatch:
    """Pieces as one batch; width and height are of no use here."""
    chosen = [pieces[index] for row in rows for index in row]
    replies = [piece.replies[which] for which in (0, 1) for piece in chosen]
    return PairwiseBatch(
        stacked([piece.context for piece in chosen]), stacked(replies), sum(map(len, chosen))
    )


class PairwiseTask(RankTask):
    """A cross-encoder and the pairs it learns from."""

    metrics = (ERRORS,)  # type: ignore[assignment]
    table, counted = READING, "pairs"
    collate = staticmethod(collate)  # type: ignore[assignment]

    def __init__(
        self, ranker: RankingModel, vocabulary: Vocabulary, recipe: TrainRecipe, device: torch.device
    ) -> None:
        if not isinstance(ranker, CrossEncoder):
            raise RecipeError("A reader reads context and reply together.", "Set ranker.model to cross.")
        super().__init__(ranker, vocabulary, recipe, device)
        self.corpus = "pairs"
        learned: list[Pair] = []
        held_out: list[Pair] = []
        for pair in read_pairs(settings_of(recipe).file):
            (held_out if conversation_hash(pair) < settings_of(recipe).held_out else learned).append(pair)
        if not learned or not held_out:
            raise RecipeError(
                f"{len(learned)} pairs are there to learn from and {len(held_out)} to measure on.",
                "Make more pairs, or change preference.held_out.",
            )
        self._learned, self._held_out = self._read(learned), self._read(held_out)
        self._held_out_pairs = held_out

    def pieces(self) -> Sequence[PairwiseExample]:  # type: ignore[override]
        """The pairs that are learned from."""
        return self._learned

    def loss_sum(self, batch: PairwiseBatch) -> torch.Tensor:  # type: ignore[override]
        """The summed −log σ of how far the fitting reply is above the wrong one."""
        return torch.nn.functional.softplus(-self._margins(batch)).sum()

    def measure(self, split: str) -> dict[str, float]:
        """Of the pairs held out, whatever the split: how often the wrong reply is above, also by kind."""
        margins = []
        self.model.eval()
        with torch.no_grad():
            for start in range(0, len(self._held_out), AT_ONCE):
                some = self._held_out[start : start + AT_ONCE]
                batch = collate(some, [[place] for place in range(len(some))], 0)
                margins.append(self._margins(batch).float().cpu())
        self.model.train()
        found = errors_by_kind(self._held_out_pairs, torch.cat(margins).numpy())
        return {**found, "pairs": float(len(self._held_out))}

    def data_files(self, shaping: bool = False) -> Iterator[Path]:
        """The pairs."""
        yield settings_of(self.recipe).file

    def conditions(self) -> dict[str, str]:
        """How the reader was taught and measured."""
        config, kinds = self.model.config, sorted({pair.source for pair in self._held_out_pairs})
        return {
            "ranker": f"{config.model}, as a reader",
            "reads": f"{config.turns} turns, no persona",
            "learned": f"{len(self._learned):,} pairs of a fitting and a wrong reply: {', '.join(kinds)}",
            "measured": f"{len(self._held_out):,} pairs of other talks of the same file, drawn by hash",
            "longest training sequence": f"context {config.context_tokens}, "
            f"reply {config.reply_tokens} tokens",
        }

    def _margins(self, batch: PairwiseBatch) -> torch.Tensor:
        """How far each fitting reply is above the wrong one: (pairs,)."""
        count = batch.weight
        rows = torch.arange(count, device=self.device).repeat(2)
        columns = torch.arange(2 * count, device=self.device)
        context, replies = (self._words(part) for part in (batch.context, batch.replies))
        scores = self.model.score_pairs(context, None, replies, rows, columns)
        return scores[:count] - scores[count:]

    def _words(self, arrays: dict[str, np.ndarray]) -> States:
        words = Words(
            *(torch.from_numpy(arrays[name]).to(self.device) for name in ("tokens", "types", "parts"))
        )
        states: States = self.model.states(words)
        return states

    def _read(self, pairs: Sequence[Pair]) -> list[PairwiseExample]:
        inputs = self._inputs
        contexts = inputs.contexts([pair.context for pair in pairs])
        chosen = inputs.replies([pair.chosen for pair in pairs])
        rejected = inputs.replies([pair.rejected for pair in pairs])
        return [
            PairwiseExample(context, (fitting, wrong))
            for context, fitting, wrong in zip(contexts, chosen, rejected, strict=True)
        ]


def settings_of(recipe: TrainRecipe) -> PreferenceRecipe:
    """The recipe's part about pairs."""
    if recipe.preference is None:
        raise RecipeError("A reader learns from pairs.", "Give preference.file.")
    return recipe.preference
