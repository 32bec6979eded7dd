"""An ear without torch: the encoder on onnxruntime, pooling and heads in numpy, the same as `model.MultiTaskClassifier`."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from listenwell.annotators.config import KIND, ClassifierConfig, no_marks
from listenwell.annotators.heads import HEADS
from listenwell.annotators.inference import CPU_TOKENS, Batch
from listenwell.checkpoint import open_checkpoint
from listenwell.runtime.onnx.checkpoint_encoder import (
    Arrays,
    base_folder,
    check_shapes,
    load_checkpoint_encoder,
)
from listenwell.runtime.products import product
from listenwell.runtime.text import Vocabulary
from listenwell.serialization import build

if TYPE_CHECKING:
    from listenwell.runtime.onnx.encoder import OnnxEncoder


class OnnxClassifier:
    """The encoder and its heads; several threads may use it at once.

    Args:
        encoder: with the adapter in it.
        config: what the ear is made of.
        weights: of the heads, by the names of a checkpoint.
    """

    tokens_at_once = CPU_TOKENS

    def __init__(self, encoder: "OnnxEncoder", config: ClassifierConfig, weights: Arrays) -> None:
        config.check_room(encoder.positions)
        self.config, self._encoder, self._weights = config, encoder, weights
        self.width = encoder.width

    def listen(self, batch: Batch) -> tuple[np.ndarray, list[np.ndarray]]:
        """What `inference.ClassifierBackend` promises."""
        states = self._encoder.states(batch.tokens, batch.types, batch.positions, batch.segments)
        words = [self._marks(states[row, first:end]) for row, first, end in batch.marked]
        return self.pooled(states, batch.owners, batch.starts), words

    def pooled(self, states: np.ndarray, owners: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """One vector a text, (texts, width), from states (rows, length, width); as `model.MultiTaskClassifier.pooled`."""
        flat = states.reshape(-1, states.shape[2])
        if self.config.pooling == "first":
            return np.asarray(flat[starts])
        ends = starts + np.bincount(owners, minlength=len(starts) + 1)[: len(starts)]
        if self.config.pooling == "last":
            return np.asarray(flat[ends - 1])
        return np.stack([flat[start:end].mean(axis=0) for start, end in zip(starts, ends, strict=True)])

    def answers(self, pooled: np.ndarray, head: str) -> np.ndarray:
        """Scores of a head's labels, without its temperature: (texts, labels)."""
        return self._linear(pooled, f"heads.{head}")

    def _marks(self, states: np.ndarray) -> np.ndarray:
        """How likely each place shows each marked head's level: (places, marked heads)."""
        if not self.config.marked:
            raise no_marks()
        return np.asarray(np.exp(-np.logaddexp(0, -self._linear(states, "words"))))

    def _linear(self, given: np.ndarray, name: str) -> np.ndarray:
        return product(given, self._weights[f"{name}.weight"].T) + self._weights[f"{name}.bias"]


def load_onnx_classifier(
    folder: Path, weights: Path | None = None, precision: str = "int8"
) -> tuple[OnnxClassifier, Vocabulary]:
    """An ear from its checkpoint.

    Args:
        folder: a checkpoint that `model.save_ear` filled.
        weights: the encoder's own folder, where it is not the installed one.
        precision: "int8", or "fp32" for the same numbers as torch.
    """
    saved = open_checkpoint(folder, KIND)
    config = build(ClassifierConfig, saved.config())
    encoder, own = load_checkpoint_encoder(saved, base_folder(config.base, weights), precision, "encoder.")
    wanted = {f"heads.{name}": len(HEADS[name].labels) for name in config.heads}
    if config.marked:
        wanted["words"] = len(config.marked)
    shapes = {f"{name}.weight": (count, encoder.width) for name, count in wanted.items()}
    check_shapes(saved, own, shapes | {f"{name}.bias": (count,) for name, count in wanted.items()})
    return OnnxClassifier(encoder, config, own), encoder.vocabulary
