"""A multi-task classifier on onnxruntime: encoder, pooling and heads are one graph. Imports no torch."""

from pathlib import Path
from typing import TYPE_CHECKING

from listenwell.annotators.config import KIND, ClassifierConfig
from listenwell.annotators.heads import HEADS
from listenwell.annotators.inference import BatchOutput
from listenwell.checkpoint import open_checkpoint
from listenwell.runtime.batches import CPU_TOKENS, TokenBatch
from listenwell.runtime.onnx.checkpoint_encoder import base_folder, open_encoder
from listenwell.runtime.text import Vocabulary
from listenwell.serialization import build

if TYPE_CHECKING:
    from listenwell.runtime.onnx.encoder import OnnxEncoder

WORDS = "words"


class OnnxClassifier:
    """The same scores as `model.MultiTaskClassifier`, with the heads in the graph. Threads may share it."""

    tokens_at_once = CPU_TOKENS

    def __init__(self, encoder: "OnnxEncoder", config: ClassifierConfig) -> None:
        self.config, self._encoder = config, encoder
        self.width = encoder.width

    def predict(self, batch: TokenBatch, mark_words: bool) -> BatchOutput:
        """See `inference.ClassifierBackend`."""
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
