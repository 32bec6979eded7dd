"""Teaching a planned generator what not to say: the human reply is set against a worse one.

Direct preference optimization (DPO, Rafailov et al. 2023, Eq. 7) on the words of both replies, after the same
context and each after its plan; with the speaker's own replies as the worse ones it is one round of self-play
(SPIN, Chen et al. 2024). `listenwell preference pairs` makes such pairs, `preference.candidate_pairs`
those of two of its own replies. What is saved is a planned generator.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from listenwell.checkpoint import open_checkpoint
from listenwell.errors import RecipeError
from listenwell.files import one_at_a_time
from listenwell.generators.planned import KIND
from listenwell.generators.prompt_template import EncodedPrompt
from listenwell.runtime.text import Vocabulary
from listenwell.training.batching import Epoch
from listenwell.training.pair_batch import PairBatch, PairExample, collate_pairs
from listenwell.training.planned import PlannedTask, encoded
from listenwell.training.preference_loss import margins, pair_losses, reply_sums, unlikelihoods
from listenwell.training.preference_pairs import Pair, conversation_hash, read_pairs
from listenwell.training.recipe import BatchRecipe, PreferenceRecipe, TrainRecipe
from listenwell.training.references import REFERENCES, load_references, references_key, save_references
from listenwell.training.tokens import Encoded, TokenBatch

CHOICES = ("preference_loss", "preference_errors")
"""What is measured on the pairs held out, and can choose the best checkpoint."""


class PreferenceTask(PlannedTask):
    """A trained planned generator and the pairs it goes on with."""

    metrics = (*PlannedTask.metrics, *CHOICES)  # type: ignore[assignment]
    collate = staticmethod(collate_pairs)  # type: ignore[assignment]

    def __init__(self, model: Any, vocabulary: Vocabulary, recipe: TrainRecipe, device: torch.device) -> None:  # noqa: ANN401
        super().__init__(model, vocabulary, recipe, device)
        self._settings = settings_of(recipe)
        self._pairs, self._held_out = self._divided(read_pairs(self._settings.file))

    @classmethod
    def prepare(cls, recipe: TrainRecipe, device: torch.device) -> "PreferenceTask":
        """Load the generator to go on from, and how likely the replies of all pairs are to it."""
        settings_of(recipe)  # before minutes are spent on the rest
        task = super().prepare(recipe, device)
        assert isinstance(task, cls)
        task.know_references()
        return task

    @classmethod
    def splits(cls, recipe: TrainRecipe, shaping: bool = False) -> tuple[str, ...]:
        """Those that are measured: it learns from pairs."""
        return tuple(split for split in recipe.data.used(shaping) if split != recipe.data.train)

    def begin_from(self, start: Path) -> Path:
        """Take a trained planned speaker's weights; gives its manifest."""
        manifest = super().begin_from(start)
        open_checkpoint(manifest.parent, KIND)  # one that knows no plans has nothing to go on with here
        return manifest

    def know_references(self) -> None:
        """Work out how likely every reply is now, or take what an earlier run from here kept."""
        parts = {"learned": self._pairs, "held_out": self._held_out}
        file = self.recipe.output / REFERENCES
        key = references_key(self.base_files, [*self._pairs, *self._held_out], self.device.type)
        with one_at_a_time(file):  # of several processes the first one does it
            known = load_references(file, key)
            if known is None:
                known = {name: self._log_likelihoods(pairs) for name, pairs in parts.items()}
                save_references(file, key, known)
        self._pairs, self._held_out = (
            [
                replace(pair, references=(float(chosen), float(rejected)))
                for pair, (chosen, rejected) in zip(pairs, known[name], strict=True)
            ]
            for name, pairs in parts.items()
        )

    def pieces(self) -> Sequence[PairExample]:  # type: ignore[override]
        """The pairs that are learned from."""
        return self._pairs

    def loss_sum(self, batch: TokenBatch) -> torch.Tensor:
        """The summed loss of the pairs: −log σ of each margin, and beside it, each by its weight, the mean
        loss of the chosen reply's tokens and the mean unlikelihood of those meant for somebody else.

        Of a batch without pairs, as perplexity is measured on: the targets' negative log-likelihood.
        """
        if not isinstance(batch, PairBatch):
            return super().loss_sum(batch)
        recipe, move, size = self._settings, self._to_device, batch.weight
        losses, owners, counts = self._losses(batch), move(batch.owners), move(batch.counts)
        nats = reply_sums(-losses, owners, size)
        total = pair_losses(margins(nats, move(batch.references), counts, recipe), recipe)
        if recipe.nll:
            total = total - recipe.nll * (nats / counts)[:, 0]
        if recipe.unlikelihood:
            unlike = reply_sums(unlikelihoods(losses), owners, size) / counts
            total = total + recipe.unlikelihood * move(batch.others) * unlike[:, 1]
        return total.sum()

    def measure(self, split: str) -> dict[str, float]:
        """The planned speaker's figures on a split; on the pairs held out, how often (in percent) and by how
        much the chosen reply gained more than the rejected one, and its negative log-likelihood a token."""
        return super().measure(split) | self._preferences()

    def data_files(self, shaping: bool = False) -> Iterator[Path]:
        """The pairs, and the files of the splits that are measured; `shaping`: without the test split's."""
        yield self._settings.file
        yield from super().data_files(shaping)

    def conditions(self) -> dict[str, str]:
        """What is set against what, and how."""
        recipe, found = self._settings, Counter(pair.source for pair in self._pairs)
        kinds = ", ".join(f"{count} {source}" for source, count in sorted(found.items()))
        return super().conditions() | {
            "learned": f"to prefer the better of two replies; pairs by where the worse one is from: {kinds}",
            "learned without plan": "none",
            "learned without context": "none",
            "preference": f"DPO, beta {recipe.beta:g}, target margin {recipe.margin:g}, "
            f"{'a token' if recipe.normalized else 'a reply'}; weights: NLL of the chosen {recipe.nll:g}, "
            f"unlikelihood of replies to others {recipe.unlikelihood:g}",
            "pairs held out": f"{len(self._held_out)}, of whole talks drawn by hash; the preference figures' "
            "are of these, whatever the split",
        }

    def _training_sequences(self, limit: int) -> list[Encoded]:
        return []  # pairs are learned from instead

    def _divided(self, pairs: Sequence[Pair]) -> tuple[list[PairExample], list[PairExample]]:
        """What is learned from and what is held out; of each source the share that the recipe asks for."""
        recipe, shares = self._settings, dict(self._settings.shares)
        if unknown := sorted(set(shares) - {pair.source for pair in pairs}):
            raise RecipeError(
                f"{recipe.file} has no pairs of the source {unknown[0]!r}.", "Correct preference.shares."
            )
        draws = np.random.default_rng([self.recipe.seed, 13]).random(len(pairs))
        learned: list[PairExample] = []
        held_out: list[PairExample] = []
        limit = self.recipe.batches.row_tokens // 2  # both replies of a pair stand in one row
        for pair, draw in zip(pairs, draws, strict=True):
            if draw < shares.get(pair.source, 1.0) and pair.chosen != pair.rejected:
                part = held_out if conversation_hash(pair) < recipe.held_out else learned
                part.append(self._piece(pair, limit))
        if not learned or (recipe.held_out and not held_out):
            raise RecipeError(
                f"{recipe.file} holds {len(learned)} pairs to learn from and {len(held_out)} to measure on.",
                "Make more pairs, or change preference.shares and preference.held_out.",
            )
        return learned, held_out

    def _piece(self, pair: Pair, limit: int) -> PairExample:
        """Both replies after the very same talk: what is cut off a long one is cut off for both."""
        layout, texts = self._layout, (pair.chosen, pair.rejected)
        words = [layout.words(text, limit // 2) for text in texts]
        decided = [layout.plans.encode(plan) for plan in pair.plans]
        room = limit - max(len(plan) + len(reply) for plan, reply in zip(decided, words, strict=True))
        before = layout.prompt(pair.context, room).tokens

        def side(place: int) -> Encoded:
            first = len(before) + len(decided[place])
            tokens = [*before, *decided[place], *words[place]]
            return encoded(EncodedPrompt(tokens, len(before), first, texts[place]), first)

        return PairExample(side(0), side(1), pair.source)

    def _log_likelihoods(self, pairs: Sequence[PairExample]) -> np.ndarray:
        """Of both replies of each pair, in nats: (pairs, 2) float32."""
        found = np.zeros((len(pairs), 2), np.float32)
        plain = BatchRecipe("bucketed", 16_384 if self.device.type == "cuda" else 4_096, 8)
        self.model.eval()
        with torch.no_grad():
            for step in Epoch(pairs, collate_pairs, plain, 0, 0).steps():
                for batch in step.batches:
                    nats = reply_sums(-self._losses(batch), self._to_device(batch.owners), batch.weight)
                    found[batch.numbers] = nats.cpu().numpy()
        self.model.train()
        return found

    def _preferences(self) -> dict[str, float]:
        """The figures of the pairs held out."""
        if not self._held_out:
            return {}
        pairs, nats = self._held_out, torch.from_numpy(self._log_likelihoods(self._held_out))
        references = torch.tensor([pair.references for pair in pairs])
        counts = torch.tensor([[pair.chosen.weight, pair.rejected.weight] for pair in pairs])
        gained = margins(nats, references, counts, self._settings)
        is_right, sources = (gained > 0).numpy(), np.array([pair.source for pair in pairs])
        by_source = {
            f"preference_accuracy_{source}": 100 * float(is_right[sources == source].mean())
            for source in sorted(set(sources.tolist()))
        }
        return {
            "preference_loss": float(pair_losses(gained, self._settings).double().mean()),
            "preference_accuracy": 100 * float(is_right.mean()),
            "preference_errors": 100 * float(1 - is_right.mean()),
            "preference_margin": float(gained.double().mean()),
            "chosen_nll": -float(nats[:, 0].double().sum()) / float(counts[:, 0].sum()),
            **by_source,
        }


def settings_of(recipe: TrainRecipe) -> PreferenceRecipe:
    """The recipe's part about preferences, if all that they need is there."""
    if recipe.preference is None or recipe.pairs is None or recipe.pairs.start is None:
        raise RecipeError(
            "Preference tuning needs pairs, and a trained generator to go on from.",
            "Give preference.file and pairs.start.",
        )
    if recipe.metric in CHOICES and not recipe.preference.held_out:
        raise RecipeError(
            f"The metric {recipe.metric} is measured on pairs held out.", "Raise preference.held_out."
        )
    return recipe.preference
