"""Running a classifier over many texts: batches of similar length, every text encoded once for all heads.

Arrays go in and come out: the engine is the classifier's own affair. The one on onnxruntime is here, with
encoder, pooling and heads in one graph. Imports no torch.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Union

import numpy as np

from listenwell.annotators.config import KIND, ClassifierConfig, no_marks
from listenwell.annotators.heads import HEADS
from listenwell.annotators.views import Input
from listenwell.checkpoint import open_checkpoint
from listenwell.runtime.onnx.checkpoint_encoder import base_folder, open_encoder
from listenwell.runtime.text import CPU_TOKENS, TokenBatch, Vocabulary, like_lengths
from listenwell.serialization import build

if TYPE_CHECKING:
    from listenwell.annotators.model import MultiTaskClassifier
    from listenwell.runtime.onnx.encoder import OnnxEncoder

WORDS = "words"
"""The graph's output that marks words."""

ClassifierBackend = Union["MultiTaskClassifier", "OnnxClassifier"]
"""A classifier on torch or on onnxruntime; `predict` runs a batch with one text per row."""


@dataclass(frozen=True)
class BatchOutput:
    """A classifier's outputs for a batch."""

    pooled: np.ndarray
    """(texts, width) float32"""
    logits: dict[str, np.ndarray]
    """By head (texts, labels) float32, not divided by its temperature."""
    words: np.ndarray | None
    """(rows, length, marked heads): the probability that a token shows each marked head's level."""


@dataclass(frozen=True)
class ClassifierOutput:
    """A classifier's outputs for any number of texts."""

    pooled: np.ndarray
    """The encoder's vector of each text: (texts, width) float32."""
    by_head: dict[str, np.ndarray]
    """Scores of each head's labels: (texts, labels)."""
    words: dict[int, np.ndarray]
    """By marked text: the probability that each token of its last turn shows each marked head's level."""

    def logits(self, head: str, indices: Sequence[int] | None = None) -> np.ndarray:
        """Scores of a head's labels (texts, labels), for some of the texts or all."""
        logits = self.by_head[head]
        return logits if indices is None else logits[np.asarray(indices, np.int64)]


def classify(
    classifier: ClassifierBackend,
    inputs: Sequence[Input],
    marked: Collection[int] = (),
    advance: Callable[[int], None] | None = None,
) -> ClassifierOutput:
    """Run a classifier over every input; `marked` are those whose words are to be marked.

    `advance` is called with the number of inputs of each finished batch.
    """
    if marked and not classifier.config.marked:
        raise no_marks()
    pooled = np.zeros((len(inputs), classifier.width), np.float32)
    logits = {
        name: np.zeros((len(inputs), len(HEADS[name].labels)), np.float32) for name in classifier.config.heads
    }
    words: dict[int, np.ndarray] = {}
    for indices in like_lengths([len(text) for text in inputs], classifier.tokens_at_once):
        texts = [inputs[index] for index in indices]
        output = classifier.predict(
            TokenBatch.padded(texts), mark_words=any(index in marked for index in indices)
        )
        pooled[indices] = output.pooled
        for name, scores in output.logits.items():
            logits[name][indices] = scores
        if output.words is not None:
            for row, (index, text) in enumerate(zip(indices, texts, strict=True)):
                if index in marked:
                    first, end = text.last
                    words[index] = output.words[row, first:end]
        if advance:
            advance(len(indices))
    return ClassifierOutput(pooled, logits, words)


class OnnxClassifier:
    """The same scores as `model.MultiTaskClassifier`, with the heads in the graph. Threads may share it."""

    tokens_at_once = CPU_TOKENS

    def __init__(self, encoder: "OnnxEncoder", config: ClassifierConfig) -> None:
        self.config, self._encoder = config, encoder
        self.width = encoder.width

    def predict(self, batch: TokenBatch, mark_words: bool) -> BatchOutput:
        """See `ClassifierBackend`."""
        from listenwell.runtime.onnx.heads import POOLED

        outputs = [POOLED, *self.config.heads, *([WORDS] if mark_words else [])]
        pooled, *scores = self._encoder.run(batch, outputs)
        words = scores.pop() if mark_words else None
        return BatchOutput(pooled, dict(zip(self.config.heads, scores, strict=True)), words)


def load_onnx_classifier(
    folder: Path, weights: Path | None = None, precision: str = "int8"
) -> tuple[OnnxClassifier, Vocabulary]:
    """Load a classifier that `model.save_classifier` wrote; "fp32" gives the same numbers as torch."""
    from listenwell.runtime.onnx.heads import PooledHeads

    saved = open_checkpoint(folder, KIND)
    config = build(ClassifierConfig, saved.config())
    encoder = open_encoder(saved, base_folder(config.base, weights), ("encoder.",))
    config.check_room(encoder.positions)
    sizes = {f"heads.{name}": len(HEADS[name].labels) for name in config.heads}
    if config.marked:
        sizes[WORDS] = len(config.marked)
    shapes: dict[str, tuple[int, ...]] = {
        f"{name}.weight": (size, encoder.width) for name, size in sizes.items()
    }
    encoder.check_shapes(shapes | {f"{name}.bias": (size,) for name, size in sizes.items()})
    heads = PooledHeads(
        config.pooling,
        {name: encoder.linear(f"heads.{name}") for name in config.heads},
        {WORDS: encoder.linear(WORDS)} if config.marked else {},
    )
    loaded = encoder.load(precision, heads)
    return OnnxClassifier(loaded, config), loaded.vocabulary
