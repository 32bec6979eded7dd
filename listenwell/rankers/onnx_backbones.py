"""What makes states of words without torch: a BERT on onnxruntime, or word vectors alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from listenwell.checkpoint import Checkpoint
from listenwell.rankers.config import HEADS, INNER, LAYERS, WIDTH, RankerConfig
from listenwell.rankers.inputs import Text, stacked
from listenwell.runtime.names import WHOLE
from listenwell.runtime.onnx.checkpoint_encoder import Arrays, load_arrays, load_checkpoint_encoder

if TYPE_CHECKING:
    from listenwell.runtime.onnx.encoder import OnnxEncoder

TRANSFORMER = {
    "model_type": "bert",
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": INNER,
    "max_position_embeddings": 512,
    "layer_norm_eps": 1e-12,
}
"""The body that has no base model, as `bodies.make_body` makes it."""
_VECTORS = "body.vectors.weight"


class Backbone(Protocol):
    """What makes states of words."""

    width: int

    def __call__(self, texts: Sequence[Text]) -> np.ndarray:
        """(texts, longest, width) float32; what stands in padding means nothing."""
        ...


class EncoderBackbone:
    """The states of a BERT's last layer."""

    def __init__(self, encoder: "OnnxEncoder") -> None:
        self._encoder, self.width = encoder, encoder.width

    def __call__(self, texts: Sequence[Text]) -> np.ndarray:
        """(texts, longest, width)"""
        rows = stacked(texts)
        places = np.broadcast_to(np.arange(rows["tokens"].shape[1]), rows["tokens"].shape)
        return self._encoder.states(rows["tokens"], rows["types"], places, rows["parts"] > 0)


class WordBackbone:
    """The vectors of the words alone."""

    def __init__(self, vectors: np.ndarray) -> None:
        self._vectors, self.width = vectors, vectors.shape[1]

    def __call__(self, texts: Sequence[Text]) -> np.ndarray:
        """(texts, longest, width)"""
        return np.asarray(self._vectors[stacked(texts)["tokens"]])


def load_backbone(
    saved: Checkpoint, config: RankerConfig, base: Path, precision: str, joint: bool
) -> tuple[Backbone, Arrays]:
    """The body, and the weights that are not its own.

    Args:
        saved: the ranker's checkpoint.
        config: what it is made of.
        base: the base model's folder.
        precision: "fp32" or "int8".
        together: whether it reads persona, context and reply as one text.
    """
    if config.body == "words":
        own = load_arrays(saved, WHOLE)
        return WordBackbone(own.pop(_VECTORS)), own
    shape = TRANSFORMER if config.body == "transformer" else None
    encoder, own = load_checkpoint_encoder(saved, base, precision, "body.encoder.", shape)
    config.check_room(encoder.positions, joint)
    return EncoderBackbone(encoder), own
