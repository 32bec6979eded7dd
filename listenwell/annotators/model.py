"""A multi-task classifier: one encoder with an adapter, and the heads that share its pass.

The encoder's states of a text are pooled into one vector h; a head is a linear layer on h. Heads of
mechanisms can also mark words: a linear layer on each state of the reply (EPITOME §4's rationales).
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from listenwell import checkpoint
from listenwell.annotators.config import KIND, ClassifierConfig, no_marks
from listenwell.annotators.heads import HEADS
from listenwell.annotators.inference import BatchOutput
from listenwell.runtime.encoder import load_encoder, load_weights, save_weights
from listenwell.runtime.text import CPU_TOKENS, GPU_TOKENS, TokenBatch, Vocabulary
from listenwell.serialization import build, dumps


class MultiTaskClassifier(torch.nn.Module):  # type: ignore[misc]
    """The encoder and its heads."""

    def __init__(self, encoder: Any, config: ClassifierConfig, dropout: float = 0.0) -> None:  # noqa: ANN401
        super().__init__()
        config.check_room(int(encoder.config.max_position_embeddings))
        self.config = config
        self.encoder = encoder
        width = self.width
        self.dropout = torch.nn.Dropout(dropout)
        self.heads = torch.nn.ModuleDict(
            {name: torch.nn.Linear(width, len(HEADS[name].labels)) for name in config.heads}
        )
        self.words = torch.nn.Linear(width, len(config.marked)) if config.marked else None
        self._causal = encoder.config.model_type != "bert"

    @property
    def width(self) -> int:
        """Of the encoder's vectors."""
        return int(self.encoder.config.hidden_size)

    @property
    def tokens_at_once(self) -> int:
        """How many tokens of a batch are read fastest where the weights are."""
        return GPU_TOKENS if self._device.type == "cuda" else CPU_TOKENS

    def predict(self, batch: TokenBatch, mark_words: bool) -> BatchOutput:
        """See `inference.ClassifierBackend`; on a GPU the encoder runs in bfloat16."""
        device = self._device
        arrays = (batch.tokens, batch.types, batch.positions, batch.segments)
        tensors = [torch.from_numpy(array).to(device) for array in arrays]
        flat = batch.segments.reshape(-1)
        owners = torch.from_numpy(np.where(flat > 0, flat - 1, len(batch.tokens))).to(device)
        starts = torch.from_numpy(np.arange(len(batch.tokens)) * batch.tokens.shape[1]).to(device)
        with (
            torch.inference_mode(),
            torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"),
        ):
            states = self.states(*tensors)
            words = self.word_logits(states).sigmoid().float().cpu().numpy() if mark_words else None
            pooled = self.pooled(states, owners, starts).float()
        with torch.inference_mode():
            logits = {name: self.logits(pooled, name).cpu().numpy() for name in self.config.heads}
        return BatchOutput(pooled.cpu().numpy(), logits, words)

    @property
    def _device(self) -> torch.device:
        return next(self.parameters()).device

    def states(
        self, tokens: torch.Tensor, types: torch.Tensor, positions: torch.Tensor, segments: torch.Tensor
    ) -> torch.Tensor:
        """The encoder's last layer (rows, length, width); a row holds one or several texts.

        Args:
            tokens: (rows, length), as all others.
            types: 1 for the listener's words.
            positions: inside the text.
            segments: the text's number in its row; 0 is padding.
        """
        # Only inside its own text; padding sees padding, so that no row of the mask is empty.
        mask = segments[:, :, None] == segments[:, None, :]
        if self._causal:
            mask = mask & torch.ones(mask.shape[1:], dtype=torch.bool, device=mask.device).tril()
        inputs = {"input_ids": tokens, "attention_mask": mask[:, None], "position_ids": positions}
        if not self._causal:
            inputs["token_type_ids"] = types
        states: torch.Tensor = self.encoder(**inputs).last_hidden_state
        return states

    def pooled(self, states: torch.Tensor, owners: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
        """One vector a text: (texts, width) float32.

        Args:
            states: (rows, length, width).
            owners: (rows * length,), each position's text; padding has the number after the last one.
            starts: (texts,), the flat index of each text's first token.
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
        """Scores of a head's labels, without its temperature: (texts, labels)."""
        logits: torch.Tensor = self.heads[head](self.dropout(pooled))
        return logits

    def word_logits(self, states: torch.Tensor) -> torch.Tensor:
        """How much each token shows each marked head's level: (…, marked heads)."""
        if self.words is None:
            raise no_marks()
        logits: torch.Tensor = self.words(states.float())
        return logits


def save_classifier(classifier: MultiTaskClassifier, folder: Path) -> None:
    """Write config.json and the weights in fp16: the adapter's and heads', or all of them."""
    (folder / "config.json").write_text(dumps(classifier.config.to_dict()) + "\n", encoding="utf-8")
    save_weights(classifier, classifier.encoder, folder)


def load_classifier(folder: Path, weights: Path | None = None) -> tuple[MultiTaskClassifier, Vocabulary]:
    """Load a classifier that `save_classifier` wrote, with the adapter merged into the encoder.

    `weights` is the encoder's own folder, where it is not the installed one.
    """
    saved = checkpoint.open_checkpoint(folder, KIND)
    config = build(ClassifierConfig, saved.config())
    encoder, base = load_encoder(config.base, weights)
    classifier = MultiTaskClassifier(encoder, config)
    load_weights(classifier, encoder, saved)
    return classifier.eval(), Vocabulary.from_folder(base)


def with_temperatures(classifier: MultiTaskClassifier, temperatures: dict[str, float]) -> None:
    """Set fitted temperatures."""
    classifier.config = replace(classifier.config, temperatures=tuple(sorted(temperatures.items())))
