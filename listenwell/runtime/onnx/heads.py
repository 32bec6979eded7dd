"""Pooling and linear heads as parts of an encoder's graph: token states in, vectors and scores out."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from listenwell.runtime.onnx.graph import Graph

POOLED = "pooled"
"""The output with one vector per text: (texts, width)."""
POOLINGS = ("mean", "first", "last")

Linear = tuple[np.ndarray, np.ndarray]
"""Weight (outputs, width) and bias (outputs,)."""


@dataclass(frozen=True, eq=False)
class PooledHeads:
    """What an encoder's graph computes from the states of its last layer.

    Heads stay in float32 where the encoder is quantized: they are small, and their scores are the result.
    """

    pooling: str = "mean"
    """One of POOLINGS: the mean over a text's tokens, its first token, or its last."""
    text_heads: Mapping[str, Linear] = field(default_factory=dict)
    """Output name to a linear layer on the pooled vector: scores (texts, outputs)."""
    token_heads: Mapping[str, Linear] = field(default_factory=dict)
    """Output name to a linear layer with a sigmoid on each token's state: (rows, length, outputs)."""

    def key(self) -> str:
        """A hash of everything that shapes this part of the graph."""
        total = hashlib.sha256(self.pooling.encode())
        for heads in (self.text_heads, self.token_heads):
            for name, arrays in heads.items():
                total.update(name.encode())
                for array in arrays:
                    total.update(repr(array.shape).encode() + array.tobytes())
            total.update(b"/")
        return total.hexdigest()

    def build(self, graph: Graph, width: int) -> None:
        """Add the heads to a graph that has the inputs of `bert.build_bert` and the output `states`."""
        pooled = self._pooled(graph, width)
        graph.output(pooled, "FLOAT", ["texts", width])
        for name, (weight, bias) in self.text_heads.items():
            graph.output(graph.dense(pooled, name, weight, bias), "FLOAT", ["texts", len(bias)])
        for name, (weight, bias) in self.token_heads.items():
            logits = graph.dense("states", f"{name}.logits", weight, bias)
            graph.node("Sigmoid", [logits], [name])
            graph.output(name, "FLOAT", ["rows", "length", len(bias)])

    def _pooled(self, graph: Graph, width: int) -> str:
        """(texts, width): a matrix of the tokens that count, times the states."""
        from onnx import TensorProto

        unit, all_tokens = (
            graph.constant("pool.one", np.array(1)),
            graph.constant("pool.row", np.array([1, -1])),
        )
        states = graph.node(
            "Reshape", ["states", graph.constant("pool.shape", np.array([-1, width]))], ["pool.states"]
        )
        segments = graph.node("Reshape", ["segments", all_tokens], ["pool.segments"])  # (1, tokens)
        most = graph.node("ReduceMax", ["segments"], ["pool.texts"], keepdims=0)
        end = graph.node("Add", [most, unit], ["pool.end"])
        numbers = graph.node("Range", [unit, end, unit], ["pool.range"])
        axis = graph.constant("pool.axis", np.array([1]))
        column = graph.node("Unsqueeze", [numbers, axis], ["pool.numbers"])  # (texts, 1)
        is_own = graph.node("Equal", [column, segments], ["pool.own"])  # (texts, tokens)
        own = graph.node("Cast", [is_own], ["pool.weights"], to=TensorProto.FLOAT)
        counts = graph.node("ReduceSum", [own, axis], ["pool.counts"], keepdims=1)  # (texts, 1)
        if self.pooling == "mean":
            sums = graph.node("MatMul", [own, states], ["pool.sums"])
            return graph.node("Div", [sums, counts], [POOLED])
        positions = graph.node("Reshape", ["positions", all_tokens], ["pool.positions"])
        target = graph.constant("pool.first", np.array(0))
        if self.pooling == "last":
            lengths = graph.node("Cast", [counts], ["pool.lengths"], to=TensorProto.INT64)
            target = graph.node("Sub", [lengths, unit], ["pool.last"])
        is_there = graph.node("Equal", [positions, target], ["pool.there"])
        is_chosen = graph.node("And", [is_own, is_there], ["pool.chosen"])
        chosen = graph.node("Cast", [is_chosen], ["pool.selection"], to=TensorProto.FLOAT)
        return graph.node("MatMul", [chosen, states], [POOLED])
