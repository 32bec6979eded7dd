"""Rankers on onnxruntime: pooling, the cross-encoder's head and CoBERT's matching are in graphs. No torch."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from listenwell.checkpoint import open_checkpoint
from listenwell.errors import CheckpointError
from listenwell.rankers.config import HEADS, INNER, KIND, LAYERS, PARTS, PRECISION, WIDTH, RankerConfig
from listenwell.rankers.inputs import Inputs, Text, distinct_texts
from listenwell.rankers.onnx_cobert import Matching
from listenwell.runtime.onnx.checkpoint_encoder import (
    Arrays,
    CheckpointEncoder,
    base_folder,
    open_encoder,
    runs_on_onnx,
)
from listenwell.runtime.text import Vocabulary
from listenwell.serialization import build

if TYPE_CHECKING:
    from listenwell.runtime.onnx.encoder import OnnxEncoder
    from listenwell.runtime.onnx.heads import PooledHeads

CONFIGS = {
    "transformer": {
        "model_type": "bert",
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "max_position_embeddings": 512,
        "layer_norm_eps": 1e-12,
    },
    "words": {"model_type": "words", "max_position_embeddings": 2**31 - 1},  # as wide as its base model's
}
"""The config.json of backbones that are not a base model, as `model.make_backbone` makes them."""
_SCORE = "score"

Advance = Callable[[int], None]


class OnnxRanker(ABC):
    """The same scores as the ranker of `rankers.RANKERS` with torch. Threads may share it.

    `encoder` is the backbone with pooling in its graph, `weights` are the ranker's own.
    """

    gives_vectors = False
    """Whether replies can be searched by inner product."""
    reads_pairs = False
    """Whether persona, context and reply are encoded as one text."""

    def __init__(self, config: RankerConfig, encoder: "OnnxEncoder", weights: Arrays) -> None:
        self.config, self.encoder, self.weights = config, encoder, weights
        self.vector_width = encoder.width

    @classmethod
    @abstractmethod
    def shapes(cls, config: RankerConfig, width: int) -> dict[str, tuple[int, ...]]:
        """The shapes of the ranker's own weights."""

    @classmethod
    def heads(cls, encoder: CheckpointEncoder) -> "PooledHeads | None":
        """What the graph computes after the encoder; mean pooling if None."""
        return None

    @abstractmethod
    def score_texts(
        self, contexts: Sequence[Text], personas: Sequence[Text], replies: Sequence[Text]
    ) -> np.ndarray:
        """Score every reply for every context: (contexts, replies) float32."""

    def reply_vectors(self, replies: Sequence[Text], advance: Advance | None = None) -> np.ndarray:
        """(replies, width) float32; their inner products with `context_vectors` are first scores."""
        raise _no_vectors()

    def context_vectors(self, contexts: Sequence[Text], personas: Sequence[Text]) -> np.ndarray:
        """(contexts, width) float32"""
        raise _no_vectors()


class OnnxBiEncoder(OnnxRanker):
    """`bi.BiEncoder`: one vector each for the context and for the reply."""

    gives_vectors = True

    @classmethod
    def shapes(cls, config: RankerConfig, width: int) -> dict[str, tuple[int, ...]]:
        """The scale of cosines."""
        return {"scale": ()} if config.bi.cosine else {}

    def __init__(self, config: RankerConfig, encoder: "OnnxEncoder", weights: Arrays) -> None:
        super().__init__(config, encoder, weights)
        self._normalized = config.bi.cosine
        self._scale = np.float32(np.exp(weights["scale"]) if config.bi.cosine else 1.0)

    def score_texts(
        self, contexts: Sequence[Text], personas: Sequence[Text], replies: Sequence[Text]
    ) -> np.ndarray:
        """(contexts, replies) float32"""
        # All texts at once, so that those of similar length share batches.
        means = self._means([*contexts, *personas, *replies])
        context, persona, reply = np.split(means, np.cumsum([len(contexts), len(personas)]))
        return np.asarray(self._queries(context, persona, personas) @ self._vectors(reply).T)

    def reply_vectors(self, replies: Sequence[Text], advance: Advance | None = None) -> np.ndarray:
        """(replies, width) float32"""
        return self._vectors(self._means(replies, advance))

    def context_vectors(self, contexts: Sequence[Text], personas: Sequence[Text]) -> np.ndarray:
        """(contexts, width) float32; the learned scale is in them."""
        return self._queries(self._means(contexts), self._means(personas), personas)

    def _means(self, texts: Sequence[Text], advance: Advance | None = None) -> np.ndarray:
        """The mean of each text's states, zeros for an empty text: (texts, width)."""
        distinct, numbers = distinct_texts(texts)
        means = self.encoder.pooled(distinct, advance=advance)
        if advance:
            advance(len(texts) - sum(1 for text in distinct if len(text)))
        return np.asarray(means[numbers])

    def _vectors(self, means: np.ndarray) -> np.ndarray:
        return normalize(means) if self._normalized else means

    def _queries(self, context: np.ndarray, persona: np.ndarray, personas: Sequence[Text]) -> np.ndarray:
        """The average of context and persona (PEC §5.1's Tri-encoder); the context alone without one."""
        has_persona = np.array([len(text) > 0 for text in personas], bool)[:, None]
        return np.asarray(
            self._vectors(np.where(has_persona, (context + persona) / 2, context)) * self._scale
        )


class OnnxCoBERT(OnnxBiEncoder):
    """`cobert.CoBERT`: co-attention between context and reply, persona and reply (PEC §4)."""

    def __init__(self, config: RankerConfig, encoder: "OnnxEncoder", weights: Arrays) -> None:
        OnnxRanker.__init__(self, config, encoder, weights)
        self._normalized, self._scale = True, np.float32(1)  # its own scores are weighted instead
        self.gives_vectors = config.cobert.vectors > 0
        self._matching = Matching(config.cobert, weights, encoder.width)

    @classmethod
    def shapes(cls, config: RankerConfig, width: int) -> dict[str, tuple[int, ...]]:
        """A weight for each part, of context and of persona, and the attention's sharpness."""
        return {"weights": (2, len(PARTS)), "sharpness": ()} if config.cobert.weighted else {}

    def score_texts(
        self, contexts: Sequence[Text], personas: Sequence[Text], replies: Sequence[Text]
    ) -> np.ndarray:
        """(contexts, replies) float32"""
        states, means = self._encoded([*contexts, *personas, *replies])
        end = len(contexts) + len(personas)
        scores = self._matching.scores(states[: len(contexts)], states[len(contexts) : end], states[end:])
        if self.config.cobert.joint:
            queries = self._queries(means[: len(contexts)], means[len(contexts) : end], personas)
            scores += self._matching.weights[0, PARTS.index("hop 0")] * (
                queries @ self._vectors(means[end:]).T
            )
        return scores

    def _encoded(self, texts: Sequence[Text]) -> tuple[list[np.ndarray], np.ndarray]:
        """For each text its states (tokens, width), and the means of all (texts, width)."""
        from listenwell.runtime.onnx.encoder import STATES
        from listenwell.runtime.onnx.heads import POOLED

        distinct, numbers = distinct_texts(texts)
        filled = [index for index, text in enumerate(distinct) if len(text)]
        states = [np.zeros((0, self.encoder.width), np.float32)] * len(distinct)
        means = np.zeros((len(distinct), self.encoder.width), np.float32)
        texts_to_encode = [distinct[index] for index in filled]
        for indices, (values, pooled) in self.encoder.batches(texts_to_encode, [STATES, POOLED]):
            for row, index in enumerate(indices):
                states[filled[index]] = values[row, : len(texts_to_encode[index])]
                means[filled[index]] = pooled[row]
        return [states[number] for number in numbers], means[numbers]


class OnnxCrossEncoder(OnnxRanker):
    """`cross.CrossEncoder`: persona, context and reply are encoded as one text."""

    reads_pairs = True

    @classmethod
    def shapes(cls, config: RankerConfig, width: int) -> dict[str, tuple[int, ...]]:
        """The linear head's."""
        return {"head.weight": (1, width), "head.bias": (1,)}

    @classmethod
    def heads(cls, encoder: CheckpointEncoder) -> "PooledHeads":
        """A linear layer on the mean."""
        from listenwell.runtime.onnx.heads import PooledHeads

        return PooledHeads(text_heads={_SCORE: encoder.linear("head")})

    def score_texts(
        self, contexts: Sequence[Text], personas: Sequence[Text], replies: Sequence[Text]
    ) -> np.ndarray:
        """(contexts, replies) float32"""
        before = [joined(persona, context) for persona, context in zip(personas, contexts, strict=True)]
        pairs = [joined(context, reply) for context in before for reply in replies]
        shape = len(contexts), len(replies)
        return self.encoder.pooled(pairs, _SCORE).reshape(shape) if pairs else np.zeros(shape, np.float32)


ONNX_RANKERS: dict[str, type[OnnxRanker]] = {
    "bi": OnnxBiEncoder,
    "cobert": OnnxCoBERT,
    "cross": OnnxCrossEncoder,
}
"""By the names of `rankers.RANKERS`; all others need torch."""


def runs_on_onnx_ranker(config: RankerConfig, weights: Path | None = None) -> bool:
    """Whether a ranker runs without torch; `weights` is the base model's folder if not the installed one."""
    if config.model not in ONNX_RANKERS:
        return False
    return config.backbone != "pretrained" or runs_on_onnx(base_folder(config.base, weights))


def load_onnx_ranker(
    folder: Path, weights: Path | None = None, precision: str = PRECISION
) -> tuple[OnnxRanker, Inputs]:
    """Load a ranker that `model.save_ranker` wrote, and its inputs; `weights` is the base model's folder.

    "fp32" gives the same numbers as torch, "int8" is smaller.
    """
    saved = open_checkpoint(folder, KIND)
    config = build(RankerConfig, saved.config())
    base = base_folder(config.base, weights)
    ranker = ONNX_RANKERS[config.model]
    inner = "" if config.backbone == "words" else "encoder."
    prefixes = (f"backbone.{inner}", f"body.{inner}")  # today's, and that of earlier releases
    encoder = open_encoder(saved, base, prefixes, CONFIGS.get(config.backbone))
    config.check_room(encoder.positions, ranker.reads_pairs)
    encoder.check_shapes(ranker.shapes(config, encoder.width))
    loaded = encoder.load(precision, ranker.heads(encoder))
    return ranker(config, loaded, encoder.own), Inputs(Vocabulary.from_folder(base), config)


def joined(first: Text, second: Text) -> Text:
    """One text of two: the second's parts are numbered on from the first's."""
    begin = int(first.parts.max(initial=0))
    return Text(
        np.concatenate((first.tokens, second.tokens)),
        np.concatenate((first.types, second.types)),
        np.concatenate((first.parts, second.parts + begin)),
    )


def normalize(vectors: np.ndarray) -> np.ndarray:
    """Each row divided by its length; zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12))


def _no_vectors() -> CheckpointError:
    return CheckpointError(
        "A cross-encoder gives no vectors for large pools.", "Use a bi-encoder, or CoBERT with vectors."
    )
