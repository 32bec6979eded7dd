"""CoMAE's module (§5) around any causal model of Hugging Face's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from listenwell.papers.comae.config import CHOICES, SLOTS, ComaeConfig
from listenwell.papers.comae.inputs import NOTHING, ComaeBatch
from listenwell.rankers.inference import moved

SPREAD = 0.02
"""Standard deviation of what is new, as GPT-2's own: word embeddings are several times larger, so that the
pretrained model is hardly disturbed at the start."""

Decoder = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Embeddings (rows, length, width), mask and positions to hidden states (rows, length, width)."""


@dataclass(frozen=True)
class Words:
    """A `ComaeBatch` as tensors, by the same names."""

    columns: torch.Tensor
    segments: torch.Tensor
    positions: torch.Tensor
    owners: torch.Tensor
    ends: torch.Tensor
    factors: torch.Tensor
    sources: torch.Tensor
    labels: torch.Tensor

    @classmethod
    def of(cls, batch: ComaeBatch, device: torch.device) -> "Words":
        """Copy a batch to a device, without waiting for a GPU."""
        return cls(*(moved(getattr(batch, name), device) for name in cls.__annotations__))


class Factor(nn.Module):  # type: ignore[misc]
    """One factor: its embeddings M, which are its classifier too (Eqs. 4, 6, 8), and the layer F before it.

    Mechanisms have three slots of two choices each, act and expressed emotion one slot.

    Args:
        inputs: how many vectors the prediction is made from: the context's, and those of earlier factors.
        lr_multiplier: see `ComaeConfig`.
    """

    def __init__(self, name: str, width: int, inputs: int, lr_multiplier: float) -> None:
        super().__init__()
        slots, self.lr_multiplier = len(SLOTS[name]), lr_multiplier
        self.table = nn.Parameter(torch.randn(slots, CHOICES[name], width) * SPREAD / lr_multiplier)
        self.layer = nn.Linear(inputs * width, slots * width)
        nn.init.normal_(self.layer.weight, std=SPREAD)
        nn.init.zeros_(self.layer.bias)

    def embed(self, numbers: torch.Tensor) -> torch.Tensor:
        """The sum of the chosen embeddings (Eq. 4): (..., slots) to (..., width); NOTHING adds nothing."""
        choices = torch.arange(self.table.shape[1], device=numbers.device)
        chosen = (numbers[..., None] == choices).to(self.table.dtype)
        return self.lr_multiplier * torch.einsum("...sc,scw->...w", chosen, self.table)

    def logits(self, features: torch.Tensor) -> torch.Tensor:
        """Scores of the choices (Eqs. 3, 6, 8): (n, inputs · width) to (n, slots, choices) float32."""
        with torch.autocast(features.device.type, enabled=False):  # few rows: full precision costs nothing
            hidden = torch.tanh(self.layer(features.float())).unflatten(1, (self.table.shape[0], -1))
            return self.lr_multiplier * torch.einsum("nsw,scw->nsc", hidden, self.table)


class ComaeModel(nn.Module):  # type: ignore[misc]
    """A causal model that is told who speaks and which factors a reply has, and predicts them.

    Args:
        config: which factors.
        decoder: the causal model without its output layer, with adapters or without.
        head: its output layer, where it does not share the word embeddings as Eq. 10 has it.
    """

    def __init__(self, config: ComaeConfig, decoder: Any, head: nn.Module | None = None) -> None:  # noqa: ANN401
        super().__init__()
        self.config, self.decoder, self.head = config, decoder, head
        width = int(decoder.config.hidden_size)
        self.speakers = nn.Parameter(torch.randn(2, width) * SPREAD / config.lr_multiplier)
        self.factors = nn.ModuleDict(
            {
                name: Factor(name, width, 1 + earlier * config.hierarchical, config.lr_multiplier)
                for earlier, name in enumerate(config.factors)
            }
        )

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.speakers.device

    def embed(self, columns: torch.Tensor) -> torch.Tensor:
        """Word, speaker, act and emotion of each token (Eq. 2, Eq. 9 without its last term; positions are the
        causal model's own): (rows, length, COLUMNS) to (rows, length, width)."""
        token, speaker, act, expressed_emotion = columns.unbind(-1)
        total = self.decoder.get_input_embeddings()(token)
        told = (speaker[..., None] == torch.arange(2, device=columns.device)).to(total.dtype)
        total = total + self.config.lr_multiplier * (told @ self.speakers)
        for name, numbers in (("act", act), ("expressed_emotion", expressed_emotion)):
            if name in self.factors:
                total = total + self._factor(name).embed(numbers[..., None])
        return total

    def fuse(self, plans: torch.Tensor) -> torch.Tensor:
        """e_CoMAE, the sum of a plan's embeddings (before Eq. 9): (n, SLOT_COUNT) to (n, width)."""
        parts = [self._factor(name).embed(plans[:, SLOTS[name]]) for name in self.config.factors]
        none = self.speakers.new_zeros(len(plans), self.speakers.shape[1])
        return torch.stack([none, *parts]).sum(0)

    def predict(self, name: str, context: torch.Tensor, plans: torch.Tensor) -> torch.Tensor:
        """Scores of one factor's choices, given the factors before it (Eqs. 3 to 8).

        Args:
            name: which factor.
            context: h_x, (n, width), the hidden state of each context's last token.
            plans: (n, SLOT_COUNT), of which only the earlier factors are looked at, and only by a hierarchy.

        Returns:
            (n, slots, choices) float32.
        """
        parts = [context]
        if self.config.hierarchical:
            earlier = self.config.factors[: self.config.factors.index(name)]
            parts += [self._factor(factor).embed(plans[:, SLOTS[factor]]) for factor in earlier]
        return self._factor(name).logits(torch.cat(parts, dim=1))

    def decide(self, context: torch.Tensor, plans: torch.Tensor) -> torch.Tensor:
        """The plans with the likeliest choice in every slot that has NOTHING, factor after factor."""
        plans = plans.clone()
        for name in self.config.factors:
            slots = list(SLOTS[name])
            likeliest = self.predict(name, context, plans).argmax(-1)
            plans[:, slots] = torch.where(plans[:, slots] == NOTHING, likeliest, plans[:, slots])
        return plans

    def factor_losses(self, context: torch.Tensor, plans: torch.Tensor) -> torch.Tensor:
        """L_C + L_A + L_E of each reply (Eqs. 11 to 13), its own factors given: (n,)."""
        losses = context.new_zeros(len(plans), dtype=torch.float32)
        for name in self.config.factors:
            scores = self.predict(name, context, plans)
            truth = plans[:, SLOTS[name]]
            each = nn.functional.cross_entropy(scores.transpose(1, 2), truth, reduction="none")
            losses = losses + each.sum(1)
        return losses

    def states(
        self, words: Words, plans: torch.Tensor, decoder: Decoder | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One pass over context and reply, whose tokens carry the plans' embeddings (Eqs. 9, 10).

        Args:
            words: the batch.
            plans: (examples, SLOT_COUNT), the factors of each reply.
            decoder: another form of `decode`, such as a compiled one.

        Returns:
            h_x of each example (examples, width), and the state that predicts each target (targets, width).
        """
        fused = self.fuse(plans)
        table = torch.cat((fused.new_zeros(1, fused.shape[1]), fused))  # row 0: no reply's token
        inputs = self.embed(words.columns) + nn.functional.embedding(words.owners, table, padding_idx=0)
        # A token sees those of its own example that are not after it; padding sees padding, so that no row of
        # the mask is empty.
        segments, positions = words.segments, words.positions
        same = segments[:, :, None] == segments[:, None, :]
        mask = same & (positions[:, None, :] <= positions[:, :, None])
        hidden = (decoder or self.decode)(inputs, mask[:, None], positions).flatten(0, 1)
        return hidden[words.ends], hidden[words.sources]

    def decode(self, inputs: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """The causal model from embeddings to hidden states."""
        hidden: torch.Tensor = self.decoder(
            inputs_embeds=inputs, attention_mask=mask, position_ids=positions, use_cache=False
        ).last_hidden_state
        return hidden

    def output_weights(self) -> torch.Tensor:
        """M_W of Eq. 10: (vocabulary, width)."""
        layer: Any = self.head or self.decoder.get_input_embeddings()
        weights: torch.Tensor = layer.weight
        return weights

    def _factor(self, name: str) -> Factor:
        factor = self.factors[name]
        assert isinstance(factor, Factor)
        return factor


def token_losses(states: torch.Tensor, weights: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Negative log-likelihood of each label, in nats (Eq. 10): (targets, width) to (targets,) float32."""
    return nn.functional.cross_entropy((states @ weights.T).float(), labels, reduction="none")
