"""An ear: one encoder with an adapter, and the heads that share its pass.

The encoder's states of a text are pooled into one vector h; a head is a linear layer on h. Heads of
mechanisms can also mark words: a linear layer on each state of the reply (EPITOME §4's rationales).
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from listenwell import checkpoint
from listenwell.annotators.heads import HEADS
from listenwell.errors import InputError
from listenwell.records import Record, build, dumps
from listenwell.runtime.encoder import load_encoder, load_weights, save_weights
from listenwell.runtime.text import Vocabulary

KIND = "ear"
POOLINGS = ("mean", "first", "last")


@dataclass(frozen=True)
class EarConfig(Record):
    """What an ear is made of."""

    base: str
    """The encoder, a name of `weights.BASE_MODELS`."""
    heads: tuple[str, ...]
    """Names of `heads.HEADS`."""
    pooling: str = "mean"
    """mean over all states, or the first or last of them."""
    limit: int = 256
    """Tokens it reads at most."""
    marks_words: bool = False
    """Whether heads of levels also mark the words that show them."""
    temperatures: tuple[tuple[str, float], ...] = ()
    """By head; logits are divided by it before the softmax (Guo et al. 2017)."""

    def __post_init__(self) -> None:
        for name in self.heads:
            if name not in HEADS:
                raise InputError(f"There is no head {name!r}.", f"The heads: {', '.join(HEADS)}.")
        if self.pooling not in POOLINGS:
            raise InputError(f"pooling is {self.pooling!r}.", f"Give one of: {', '.join(POOLINGS)}.")

    def temperature(self, head: str) -> float:
        """The head's temperature; 1 where none was fitted."""
        return dict(self.temperatures).get(head, 1.0)

    @property
    def marked(self) -> tuple[str, ...]:
        """Heads that mark words, in order."""
        return tuple(name for name in self.heads if HEADS[name].view == "reply") if self.marks_words else ()


class Ear(torch.nn.Module):  # type: ignore[misc]
    """The encoder and its heads."""

    def __init__(self, encoder: Any, config: EarConfig, dropout: float = 0.0) -> None:  # noqa: ANN401
        super().__init__()
        if config.limit > (places := int(encoder.config.max_position_embeddings)):
            raise InputError(
                f"The ear's limit is {config.limit} tokens, but its encoder reads {places}.",
                "Lower the limit.",
            )
        self.config = config
        self.encoder = encoder
        width = int(encoder.config.hidden_size)
        self.dropout = torch.nn.Dropout(dropout)
        self.heads = torch.nn.ModuleDict(
            {name: torch.nn.Linear(width, len(HEADS[name].labels)) for name in config.heads}
        )
        self.words = torch.nn.Linear(width, len(config.marked)) if config.marked else None
        self._causal = encoder.config.model_type != "bert"

    def states(
        self, tokens: torch.Tensor, types: torch.Tensor, positions: torch.Tensor, segments: torch.Tensor
    ) -> torch.Tensor:
        """The encoder's last layer.

        Args:
            tokens: (rows, length), several pieces in a row or one.
            types: (rows, length), 1 for the listener's words.
            positions: (rows, length), the place inside the piece.
            segments: (rows, length), the piece's number in its row; 0 is padding.

        Returns:
            (rows, length, width)
        """
        # Only inside its own piece; padding sees padding, so that no row of the mask is empty.
        mask = segments[:, :, None] == segments[:, None, :]
        if self._causal:
            mask = mask & torch.ones(mask.shape[1:], dtype=torch.bool, device=mask.device).tril()
        given = {"input_ids": tokens, "attention_mask": mask[:, None], "position_ids": positions}
        if not self._causal:
            given["token_type_ids"] = types
        states: torch.Tensor = self.encoder(**given).last_hidden_state
        return states

    def pooled(self, states: torch.Tensor, owners: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
        """One vector a piece.

        Args:
            states: (rows, length, width).
            owners: (rows * length,), the number of the piece each place belongs to; padding has the number
                after the last one.
            starts: (pieces,), the flat place of each piece's first token.

        Returns:
            (pieces, width) in float32
        """
        flat = states.flatten(0, 1).float()
        if self.config.pooling == "first":
            return flat[starts]
        lengths = torch.bincount(owners, minlength=len(starts) + 1)[: len(starts)]
        if self.config.pooling == "last":
            return flat[starts + lengths - 1]
        sums = flat.new_zeros(len(starts) + 1, flat.shape[1]).index_add_(0, owners, flat)
        return sums[: len(starts)] / lengths[:, None]

    def logits(self, pooled: torch.Tensor, head: str) -> torch.Tensor:
        """Scores of a head's labels, without its temperature: (pieces, labels)."""
        found: torch.Tensor = self.heads[head](self.dropout(pooled))
        return found

    def word_logits(self, states: torch.Tensor) -> torch.Tensor:
        """How much each place shows each marked head's level: (places, marked heads)."""
        if self.words is None:
            raise InputError("This ear marks no words.", "Train one with marks_words.")
        found: torch.Tensor = self.words(states.float())
        return found


def save_ear(ear: Ear, folder: Path) -> None:
    """Write config.json and the weights in fp16: the adapter's and heads', or all of them."""
    (folder / "config.json").write_text(dumps(ear.config.to_dict()) + "\n", encoding="utf-8")
    save_weights(ear, ear.encoder, folder)


def load_ear(folder: Path, weights: Path | None = None) -> tuple[Ear, Vocabulary]:
    """An ear from its checkpoint, with the adapter merged into the encoder.

    Args:
        folder: a checkpoint that `save_ear` filled.
        weights: the encoder's own folder, where it is not the installed one.
    """
    saved = checkpoint.open_checkpoint(folder, KIND)
    config = build(EarConfig, saved.config())
    encoder, base = load_encoder(config.base, weights)
    ear = Ear(encoder, config)
    load_weights(ear, encoder, saved)
    return ear.eval(), Vocabulary.from_folder(base)


def with_temperatures(ear: Ear, temperatures: dict[str, float]) -> None:
    """Give the ear fitted temperatures."""
    ear.config = replace(ear.config, temperatures=tuple(sorted(temperatures.items())))


def probabilities(logits: np.ndarray, head: str, temperature: float) -> np.ndarray:
    """Calibrated probabilities of a head's labels: (pieces, labels)."""
    scaled = logits / temperature
    if HEADS[head].several:
        return np.asarray(np.exp(-np.logaddexp(0.0, -scaled)))  # 1 / (1 + exp(−x)), which overflows
    shifted = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
