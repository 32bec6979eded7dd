"""The graph of a BERT encoder (Devlin et al. 2019): words in, the states of its last layer out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from listenwell.errors import WeightsError
from listenwell.runtime.onnx.graph import MICROSOFT, Graph, ModelShape

BLOCK = 16
"""Numbers that are rounded together: fewer than a Llama's, because a BERT norms after it adds, so that its
channels cannot be balanced."""
WORDS, WORD_VECTORS = "words", "vectors.weight"
"""The `model_type` of an encoder that is a table of word vectors, and the name of that table."""
_SHUT = -1e30
"""Added to the score of a place that is not seen."""


@dataclass(frozen=True)
class BertShape(ModelShape):
    """A BERT's sizes."""

    width: int
    layers: int
    heads: int
    positions: int
    epsilon: float

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "BertShape":
        """Read Hugging Face's config; what this graph has not is refused."""
        strange = {
            "model_type": config.get("model_type", "bert") != "bert",
            "hidden_act": config.get("hidden_act", "gelu") != "gelu",
            "position_embedding_type": config.get("position_embedding_type", "absolute") != "absolute",
            "is_decoder": bool(config.get("is_decoder")),
        }
        cls.check_plain("BERT", strange)
        try:
            return cls(
                width=int(config["hidden_size"]),
                layers=int(config["num_hidden_layers"]),
                heads=int(config["num_attention_heads"]),
                positions=int(config["max_position_embeddings"]),
                epsilon=float(config["layer_norm_eps"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise WeightsError(f"The model's config.json lacks {error}.", "Copy the model again.") from error


def build_bert(
    graph: Graph,
    shape: BertShape,
    weights: Mapping[str, np.ndarray],
    advance: Callable[[int], None] = lambda count: None,
) -> None:
    """Write a BERT's graph from weights by Hugging Face's names.

    Inputs, all (rows, length) int64: tokens; types, 0 or 1; positions; segments, the number of the text that
    a token belongs to: it sees those of its own segment. Output: states (rows, length, width).
    """
    _Bert(graph, shape, weights).build(advance)


def build_words(graph: Graph, weights: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Write the graph of word vectors alone, with the inputs and the output of `build_bert`.

    Returns:
        The notes of the graph's file.
    """
    table = weights[WORD_VECTORS]
    for name in ("types", "positions", "segments"):
        graph.input(name, "INT64", ["rows", "length"])
    rows = graph.lookup(graph.input("tokens", "INT64", ["rows", "length"]), WORD_VECTORS, table)
    graph.node("Identity", [rows], ["states"])
    graph.output("states", "FLOAT", ["rows", "length", table.shape[1]])
    return {"width": str(table.shape[1]), "positions": str(2**31 - 1)}


@dataclass(frozen=True)
class _Bert:
    """The parts of a graph in the making."""

    graph: Graph
    shape: BertShape
    weights: Mapping[str, np.ndarray]

    def build(self, advance: Callable[[int], None]) -> None:
        """All of it: embeddings, and layers that norm after they add."""
        graph = self.graph
        words, types, positions = (
            graph.lookup(graph.input(input_name, "INT64", ["rows", "length"]), name, self.weights[name])
            for input_name, name in (
                ("tokens", "embeddings.word_embeddings.weight"),
                ("types", "embeddings.token_type_embeddings.weight"),
                ("positions", "embeddings.position_embeddings.weight"),
            )
        )
        typed = graph.node("Add", [words, types], ["embeddings.typed"])
        states = self._normed(typed, positions, "embeddings.LayerNorm")
        mask = self._mask()
        for layer in range(self.shape.layers):
            name = f"encoder.layer.{layer}"
            attended = self._attended(states, f"{name}.attention", mask)
            states = self._normed(states, attended, f"{name}.attention.output.LayerNorm")
            inner = self._dense(states, f"{name}.intermediate.dense")
            changed = self._dense(graph.node("Gelu", [inner], [f"{name}.opened"]), f"{name}.output.dense")
            states = self._normed(states, changed, f"{name}.output.LayerNorm")
            advance(1)
        graph.node("Identity", [states], ["states"])
        graph.output("states", "FLOAT", ["rows", "length", self.shape.width])

    def _mask(self) -> str:
        """What is added to scores: (rows, 1, length, length), 0 inside a segment."""
        graph = self.graph
        segments = graph.input("segments", "INT64", ["rows", "length"])
        for name, dimensions in (("down", [1, 3]), ("across", [1, 2])):
            axes = graph.constant(f"mask.{name}.axes", np.array(dimensions))
            graph.node("Unsqueeze", [segments, axes], [f"mask.{name}"])
        graph.node("Equal", ["mask.down", "mask.across"], ["mask.same"])
        seen = graph.constant("mask.seen", np.array(0, np.float32))
        shut = graph.constant("mask.shut", np.array(_SHUT, np.float32))
        return graph.node("Where", ["mask.same", seen, shut], ["mask"])

    def _attended(self, states: str, name: str, mask: str) -> str:
        """Multi-head attention inside each segment, and the layer behind it."""
        graph, parts = self.graph, [f"{name}.self.{part}" for part in ("query", "key", "value")]
        weight, bias = (
            np.concatenate([self.weights[f"{part}.{kind}"] for part in parts]) for kind in ("weight", "bias")
        )
        product = graph.linear(states, f"{name}.self", weight, bias)
        graph.node("Split", [product], parts, axis=-1, num_outputs=3)
        attended = graph.node(
            "MultiHeadAttention",
            [*parts, "", "", mask],
            [f"{name}.attended"],
            MICROSOFT,
            num_heads=self.shape.heads,
        )
        return self._dense(attended, f"{name}.output.dense")

    def _dense(self, states: str, name: str) -> str:
        return self.graph.linear(states, name, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _normed(self, states: str, change: str, name: str) -> str:
        """The layer norm of a sum."""
        graph, weights = self.graph, self.weights
        gain, shift = (
            graph.constant(f"{name}.{kind}", weights[f"{name}.{kind}"]) for kind in ("weight", "bias")
        )
        return graph.node(
            "SkipLayerNormalization",
            [states, change, gain, shift],
            [f"{name}.normed"],
            MICROSOFT,
            epsilon=self.shape.epsilon,
        )
