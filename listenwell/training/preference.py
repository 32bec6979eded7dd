"""Preference tuning of a planned generator, or of a soft prompt for one.

Direct preference optimization (DPO, Rafailov et al. 2023, Eq. 7) on the words of two replies, after the same
context and each after its plan. With the generator's own samples as rejected replies it is one round of
self-play (SPIN, Chen et al. 2024). `listenwell preference pairs` and `listenwell preference rated-pairs`
write the pairs.

With a soft prompt (prompt tuning, Lester et al. 2021) the generator's weights stay as they are, so its plans
and perplexities cannot get worse; the reference is the generator without the soft prompt.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from listenwell.errors import RecipeError
from listenwell.files import hash_files, one_at_a_time, written_whole
from listenwell.generators.planned import KIND
from listenwell.generators.plans import LEVELS
from listenwell.generators.prompt_template import EncodedPrompt, PromptTemplate
from listenwell.training.batching import Epoch
from listenwell.training.causal_model import CausalModel, measuring_batches
from listenwell.training.generator_task import GeneratorTask, Objective
from listenwell.training.planned import PlannedData, encoded, source_files
from listenwell.training.preference_loss import (
    PairBatch,
    PairExample,
    collate_pairs,
    margins,
    pair_losses,
    reply_sums,
    unlikelihoods,
)
from listenwell.training.preference_pairs import Pair, conversation_hash, read_pairs
from listenwell.training.recipe import TrainRecipe
from listenwell.training.task_configs import (
    PREFERENCE_METRICS,
    PreferenceRecipe,
    PreferenceTaskConfig,
    SoftPromptTaskConfig,
)
from listenwell.training.tokens import Encoded

REFERENCES = "references.safetensors"
"""In a run's folder: how likely the replies were at its start, worked out once."""


class PreferenceData:
    """Preference pairs to learn from and pairs held out; perplexity is measured on the recipe's corpora.

    `reserved` tokens of each sequence are left free for a soft prompt.
    """

    def __init__(self, planned: PlannedData, recipe: TrainRecipe, reserved: int = 0) -> None:
        self._planned, self._recipe = planned, recipe
        self._settings = recipe.settings(PreferenceTaskConfig).preference
        self.corpus = planned.corpus
        # Both replies of a pair stand in one row.
        self.limit = recipe.batches.row_tokens // 2 - reserved
        self.learned, self.held_out = self._divided(read_pairs(self._settings.file))

    def examples(self) -> Sequence[PairExample]:
        """The pairs that are learned from."""
        return self.learned

    def measure(self, split: str, model: CausalModel) -> dict[str, float]:
        """The planned generator's perplexities on a split."""
        return self._planned.measure(split, model)

    def files(self, shaping: bool = False) -> Iterator[Path]:
        """The pairs, and the files of the splits that are measured; `shaping`: without the test split's."""
        yield self._settings.file
        yield from source_files(self._recipe, measured_splits(self._recipe, shaping))

    def conditions(self) -> dict[str, str]:
        """Which pairs are learned from, and which are measured on."""
        counts = Counter(pair.source for pair in self.learned)
        sources = ", ".join(f"{count} {source}" for source, count in sorted(counts.items()))
        return self._planned.conditions() | {
            "learned": f"to prefer the better of two replies; pairs by source of the rejected one: {sources}",
            "learned without plan": "none",
            "learned without context": "none",
            "pairs held out": f"{len(self.held_out)}, of whole conversations drawn by hash; preference "
            "metrics are measured on these, whatever the split",
        }

    def set_references(self, references: dict[str, np.ndarray]) -> None:
        """Give every pair the log-likelihoods of its replies under the reference model."""
        self.learned, self.held_out = (
            [
                replace(pair, references=(float(chosen), float(rejected)))
                for pair, (chosen, rejected) in zip(pairs, references[name], strict=True)
            ]
            for name, pairs in (("learned", self.learned), ("held_out", self.held_out))
        )

    def insert_soft_prompt(self, tokens: np.ndarray) -> None:
        """Put a soft prompt before the plan of every reply."""
        self.learned, self.held_out = (
            [
                replace(
                    pair,
                    chosen=_with_soft_prompt(pair.chosen, tokens),
                    rejected=_with_soft_prompt(pair.rejected, tokens),
                )
                for pair in pairs
            ]
            for pairs in (self.learned, self.held_out)
        )

    def _divided(self, pairs: Sequence[Pair]) -> tuple[list[PairExample], list[PairExample]]:
        """What is learned from and what is held out; of each source the share that the recipe asks for."""
        settings, shares = self._settings, dict(self._settings.shares)
        if unknown := sorted(set(shares) - {pair.source for pair in pairs}):
            raise RecipeError(
                f"{settings.file} has no pairs of the source {unknown[0]!r}.", "Correct preference.shares."
            )
        draws = np.random.default_rng([self._recipe.seed, 13]).random(len(pairs))
        learned: list[PairExample] = []
        held_out: list[PairExample] = []
        for pair, draw in zip(pairs, draws, strict=True):
            if draw < shares.get(pair.source, 1.0) and pair.chosen != pair.rejected:
                part = held_out if conversation_hash(pair) < settings.held_out else learned
                part.append(encode_pair(pair, self._planned.template, self.limit, settings.plans))
        if not learned or (settings.held_out and not held_out):
            raise RecipeError(
                f"{settings.file} holds {len(learned)} pairs to learn from and {len(held_out)} to measure "
                "on.",
                "Make more pairs, or change preference.shares and preference.held_out.",
            )
        return learned, held_out


class DPOObjective(Objective):
    """The loss of preference pairs."""

    collate = staticmethod(collate_pairs)

    def __init__(self, model: CausalModel, settings: PreferenceRecipe, data: PreferenceData) -> None:
        self._model, self.settings, self._data = model, settings, data

    def loss_sum(self, batch: PairBatch) -> torch.Tensor:
        """The sum over pairs of −log σ(margin), the chosen reply's mean loss and the unlikelihood of replies
        to somebody else, each by its weight."""
        settings, move, size = self.settings, self._model.to_device, batch.weight
        losses, owners, counts = self._model.token_losses(batch), move(batch.owners), move(batch.counts)
        nats = reply_sums(-losses, owners, size)
        total = pair_losses(margins(nats, move(batch.references), counts, settings), settings)
        if settings.nll:
            total = total - settings.nll * (nats / counts)[:, 0]
        if settings.unlikelihood:
            unlike = reply_sums(unlikelihoods(losses), owners, size) / counts
            total = total + settings.unlikelihood * move(batch.others) * unlike[:, 1]
        return total.sum()

    def log_likelihoods(self, pairs: Sequence[PairExample]) -> np.ndarray:
        """Of both replies of each pair, in nats: (pairs, 2) float32."""
        model, values = self._model, np.zeros((len(pairs), 2), np.float32)
        model.module.eval()
        with torch.no_grad():
            for step in Epoch(pairs, collate_pairs, measuring_batches(model.device), 0, 0).steps():
                for batch in step.batches:
                    losses = model.token_losses(batch)
                    nats = reply_sums(-losses, model.to_device(batch.owners), batch.weight)
                    values[batch.numbers] = nats.cpu().numpy()
        model.module.train()
        return values

    def measure(self) -> dict[str, float]:
        """Over the pairs held out: loss, accuracy (in percent), margin, and the chosen replies' mean loss."""
        pairs = self._data.held_out
        if not pairs:
            return {}
        nats = torch.from_numpy(self.log_likelihoods(pairs))
        references = torch.tensor([pair.references for pair in pairs])
        counts = torch.tensor([[pair.chosen.weight, pair.rejected.weight] for pair in pairs])
        gains = margins(nats, references, counts, self.settings)
        is_right, sources = (gains > 0).numpy(), np.array([pair.source for pair in pairs])
        by_source = {
            f"preference_accuracy_{source}": 100 * float(is_right[sources == source].mean())
            for source in sorted(set(sources.tolist()))
        }
        return {
            "preference_loss": float(pair_losses(gains, self.settings).double().mean()),
            "preference_accuracy": 100 * float(is_right.mean()),
            "preference_errors": 100 * float(1 - is_right.mean()),
            "preference_margin": float(gains.double().mean()),
            "chosen_nll": -float(nats[:, 0].double().sum()) / float(counts[:, 0].sum()),
            **by_source,
        }

    def conditions(self) -> dict[str, str]:
        """The loss's terms; and of a soft prompt, what is trained."""
        settings, soft_prompt = self.settings, self._model.soft_prompt
        loss = {
            "preference": f"DPO, beta {settings.beta:g}, target margin {settings.margin:g}, "
            f"{'a token' if settings.normalized else 'a reply'}; weights: NLL of the chosen "
            f"{settings.nll:g}, unlikelihood of replies to others {settings.unlikelihood:g}",
        }
        if soft_prompt is None:
            return loss
        return loss | {
            "tuning": f"a soft prompt of {len(soft_prompt)} tokens; the generator's weights are frozen",
            "measured": "perplexity without the soft prompt, which is the generator's; preferences with it",
        }


class PreferenceTask(GeneratorTask):
    """Preference tuning of a generator, or of a soft prompt where the recipe's model is `soft_prompt`."""

    kind = KIND
    metrics = (*GeneratorTask.metrics, *PREFERENCE_METRICS)
    data: PreferenceData
    objective: DPOObjective

    @classmethod
    def prepare(cls, recipe: TrainRecipe, device: torch.device) -> "PreferenceTask":
        """Load the generator to start from, which is the reference model, and encode the pairs."""
        config = recipe.settings(PreferenceTaskConfig)
        assert config.pairs is not None and config.pairs.start is not None  # the config checks it
        list(source_files(recipe, measured_splits(recipe)))  # before minutes are spent on the others
        count = config.preference.soft_prompt if isinstance(config, SoftPromptTaskConfig) else 0
        generator = CausalModel.load(recipe, device, plans=True)
        data = PreferenceData(PlannedData(generator.vocabulary, recipe), recipe, reserved=count)
        start = generator.start_from(config.pairs.start, (KIND,))
        objective = DPOObjective(generator, config.preference, data)
        add_references(data, objective, generator, recipe.output / REFERENCES)
        if count:
            generator.add_soft_prompt(count, start)
        if generator.soft_prompt is not None:
            data.insert_soft_prompt(generator.soft_prompt)
        return cls(generator, data, objective, recipe)


def add_references(data: PreferenceData, objective: DPOObjective, model: CausalModel, file: Path) -> None:
    """Work out the reference log-likelihoods of all pairs, or read those that an earlier run kept."""
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import save

    # A name for all that shapes them: the weights, every token that is read, and what computes.
    key = hashlib.sha256(f"{hash_files(model.base_files)} {model.device.type}\n".encode())
    for pair in (*data.learned, *data.held_out):
        for sequence in (pair.chosen, pair.rejected):
            key.update(f"{len(sequence)} {len(sequence) - sequence.weight}\n".encode())
            key.update(sequence.tokens.tobytes())
    with one_at_a_time(file):  # of several processes the first one does it
        references: dict[str, np.ndarray] = {}
        try:
            with safe_open(str(file), framework="np") as kept:
                if (kept.metadata() or {}).get("key") == key.hexdigest():
                    references = {name: kept.get_tensor(name) for name in kept.keys()}  # noqa: SIM118
        except (OSError, SafetensorError):
            pass  # not there yet, or damaged: they are worked out anew
        if not references:
            parts = {"learned": data.learned, "held_out": data.held_out}
            references = {name: objective.log_likelihoods(pairs) for name, pairs in parts.items()}
            with written_whole(file) as out:
                out.write(save(references, {"key": key.hexdigest()}))
    data.set_references(references)


def encode_pair(pair: Pair, template: PromptTemplate, limit: int, targets_plans: bool = False) -> PairExample:
    """Both replies after the same context: what is cut off a long one is cut off for both."""
    texts = (pair.chosen, pair.rejected)
    words = [template.words(text, limit // 2) for text in texts]
    plans = [template.plans.encode(plan) for plan in pair.plans]
    room = limit - max(len(plan) + len(reply) for plan, reply in zip(plans, words, strict=True))
    before = template.prompt(pair.context, room).tokens

    def side(index: int) -> Encoded:
        first = len(before) + len(plans[index])
        tokens = [*before, *plans[index], *words[index]]
        prompt = EncodedPrompt(tokens, len(before), first, texts[index])
        return encoded(prompt, prompt.plan if targets_plans else first)

    return PairExample(side(0), side(1), pair.source)


def measured_splits(recipe: TrainRecipe, shaping: bool = False) -> tuple[str, ...]:
    """The corpora's splits that are read: pairs are learned from, not the training split."""
    return tuple(split for split in recipe.data.used(shaping) if split != recipe.data.train)


def _with_soft_prompt(sequence: Encoded, tokens: np.ndarray) -> Encoded:
    """The same with the soft prompt before its plan, which stands before the first target."""
    index = int(sequence.targets.argmax()) - len(LEVELS)
    return replace(
        sequence,
        tokens=np.insert(sequence.tokens, index, tokens),
        targets=np.insert(sequence.targets, index, np.zeros(len(tokens), bool)),
    )
