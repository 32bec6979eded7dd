"""CoBERT's matching (Zhong et al. 2020, §4) as an ONNX graph; `cobert.CoBERT` is the same in torch.

x are the token states of a context or a persona (m, width), y those of some replies (replies, n, width). A
text's states are an array of their own, so that x needs no mask.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from listenwell.rankers.config import PARTS, CobertSettings
from listenwell.runtime.onnx.checkpoint_encoder import Arrays
from listenwell.runtime.text import like_lengths

if TYPE_CHECKING:
    from listenwell.runtime.onnx.graph import Graph

MATCHING_VERSION = 1
"""Part of the cache key: raise it when graphs of the same settings come out differently."""
REPLY_TOKENS = 1024
"""Tokens of replies, padding included, that are matched at once; some ten MB with a long context."""


class Matching:
    """Scores replies for contexts and personas. Threads may share it.

    `weights` holds `weights` and `sharpness` where the settings have learned ones.
    """

    def __init__(self, settings: CobertSettings, weights: Arrays, width: int) -> None:
        from listenwell.runtime.onnx.cache import cached_graph
        from listenwell.runtime.onnx.session import open_session

        self.weights = weights["weights"] if settings.weighted else np.ones((2, len(PARTS)), np.float32)
        """For the context and for the persona, the weight of each of PARTS."""
        sharpness = float(weights["sharpness"]) if settings.weighted else 1.0
        graph = MatchingGraph(settings, width, sharpness)
        self._parts = [PARTS.index(part) for part in graph.parts]
        key = sha256(repr((MATCHING_VERSION, graph)).encode()).hexdigest()
        self._session = open_session(cached_graph("matching", key, graph.build)) if self._parts else None

    def scores(
        self, contexts: Sequence[np.ndarray], personas: Sequence[np.ndarray], replies: Sequence[np.ndarray]
    ) -> np.ndarray:
        """(contexts, replies) float32 from the states of each text, without the joint part.

        A context without a persona has a persona of shape (0, width).
        """
        scores = np.zeros((len(contexts), len(replies)), np.float32)
        if self._session is None:
            return scores
        for numbers in like_lengths([len(states) for states in replies], REPLY_TOKENS):
            y, mask = _padded([replies[number] for number in numbers])
            for weights, texts in zip(self.weights[:, self._parts], (contexts, personas), strict=True):
                for row, x in enumerate(texts):
                    if len(x):
                        inputs = {"x": x, "y": y, "mask": mask, "weights": weights}
                        scores[row, numbers] += self._session.run(["scores"], inputs)[0]
        return scores


@dataclass(frozen=True)
class MatchingGraph:
    """Writes the graph: inputs x, y, mask (replies, n), weights (parts,); output scores (replies,)."""

    settings: CobertSettings
    width: int
    sharpness: float

    @property
    def parts(self) -> list[str]:
        """The parts of eq. 6's concatenations that are compared, in order."""
        hops = self.settings.hops
        pooling = ("max", "mean") if self.settings.pooling == "both" else (self.settings.pooling,)
        first = ["hop 0"] if 0 in hops and not self.settings.joint else []
        return [*first, *(pooling if 1 in hops else ()), *(f"hop {hop}" for hop in (2, 3) if hop in hops)]

    def build(self, graph: "Graph") -> None:
        """Add all nodes; comments name the paper's equations."""
        x = graph.input("x", "FLOAT", ["m", self.width])
        y = graph.input("y", "FLOAT", ["replies", "n", self.width])
        mask = graph.input("mask", "FLOAT", ["replies", "n"])
        weights = graph.input("weights", "FLOAT", [len(self.parts)])
        product = graph.node("Einsum", [x, y], ["product"], equation="md,rnd->mrn")
        sharpness = graph.constant("sharpness", np.array(self.sharpness, np.float32))
        affinity = graph.node("Mul", [product, sharpness], ["affinity"])  # eq. 1
        is_padding = graph.node(
            "Equal", [mask, graph.constant("zero", np.array(0, np.float32))], ["is padding"]
        )
        masked = graph.constant("masked", np.array(-1e30, np.float32))
        open_affinity = graph.node("Where", [is_padding, masked, affinity], ["open affinity"])
        to_reply = graph.node("Softmax", [open_affinity], ["to reply"], axis=2)  # eq. 2
        to_text = graph.node("Softmax", [affinity], ["to text"], axis=0)  # eq. 3
        graph.node("ReduceSum", [mask, self._axis(graph, 1)], ["counts"], keepdims=0)  # (replies,)
        graph.node("ReduceSum", [mask, self._axis(graph, 1)], ["column of counts"], keepdims=1)
        products = {
            **self._cosine(graph),
            **self._first_hop(graph, to_reply, to_text),
            **self._later_hops(graph, to_reply, to_text),
        }
        rows = [
            graph.node("Unsqueeze", [products[part], self._axis(graph, 0)], [f"{part}.row"])
            for part in self.parts
        ]
        stacked = graph.node("Concat", rows, ["products"], axis=0)
        graph.node("Einsum", [weights, stacked], ["scores"], equation="k,kr->r")
        graph.output("scores", "FLOAT", ["replies"])

    def _cosine(self, graph: "Graph") -> dict[str, str]:
        """Hop 0: the cosine of the texts' means."""
        if "hop 0" not in self.parts:
            return {}
        mean_x = graph.node("ReduceMean", ["x", self._axis(graph, 0)], ["mean x"], keepdims=0)
        mean_y = self._masked_mean(graph, "y", "mean y")
        length_x = graph.node("ReduceL2", [mean_x, self._axis(graph, 0)], ["length x"], keepdims=1)
        length_y = graph.node("ReduceL2", [mean_y, self._axis(graph, 1)], ["length y"], keepdims=0)
        lengths = graph.node("Mul", [length_y, length_x], ["lengths"])
        least = graph.constant("least", np.array(1e-12, np.float32))
        divisor = graph.node("Max", [lengths, least], ["divisor"])
        inner = graph.node("Einsum", [mean_y, mean_x], ["inner"], equation="rd,d->r")
        return {"hop 0": graph.node("Div", [inner, divisor], ["cosine"])}

    def _first_hop(self, graph: "Graph", to_reply: str, to_text: str) -> dict[str, str]:
        """Attended tokens of both sides, pooled by maximum or mean."""
        poolings = [part for part in self.parts if part in ("max", "mean")]
        if not poolings:
            return {}
        attended_x = graph.node("Einsum", [to_reply, "y"], ["attended x"], equation="mrn,rnd->rmd")
        attended_y = graph.node("Einsum", [to_text, "x"], ["attended y"], equation="mrn,md->rnd")
        products = {}
        for part in poolings:
            operator = "ReduceMax" if part == "max" else "ReduceMean"
            pooled_x = graph.node(
                operator, [attended_x, self._axis(graph, 1)], [f"hop 1.{part}.x"], keepdims=0
            )
            if part == "max":  # padding repeats a token, which moves no maximum
                pooled_y = graph.node(
                    operator, [attended_y, self._axis(graph, 1)], ["hop 1.max.y"], keepdims=0
                )
            else:
                pooled_y = self._masked_mean(graph, attended_y, "mean of attended y")
            products[part] = self._inner(graph, pooled_x, pooled_y, part)
        return products

    def _later_hops(self, graph: "Graph", to_reply: str, to_text: str) -> dict[str, str]:
        """Attention over attention: hop 2 is eq. 4 and 5, hop 3 applies the matrices once more."""
        over_reply = graph.node("ReduceMean", [to_reply, self._axis(graph, 0)], ["over reply"], keepdims=0)
        sums = graph.node("Einsum", [to_text, "mask"], ["sums over text"], equation="mrn,rn->mr")
        over_text = graph.node("Div", [sums, "counts"], ["over text"])
        products = {}
        for hop in range(2, max(self.settings.hops) + 1):
            name = f"hop {hop}"
            over_text, over_reply = (
                graph.node("Einsum", [over_reply, to_text], [f"{name}.text"], equation="rn,mrn->mr"),
                graph.node("Einsum", [over_text, to_reply], [f"{name}.reply"], equation="mr,mrn->rn"),
            )
            if name in self.parts:
                second_x = graph.node("Einsum", [over_text, "x"], [f"{name}.x"], equation="mr,md->rd")
                second_y = graph.node("Einsum", [over_reply, "y"], [f"{name}.y"], equation="rn,rnd->rd")
                products[name] = self._inner(graph, second_x, second_y, name)
        return products

    def _masked_mean(self, graph: "Graph", values: str, name: str) -> str:
        """The mean over a reply's tokens: (replies, width)."""
        sums = graph.node("Einsum", ["mask", values], [f"{name}.sums"], equation="rn,rnd->rd")
        return graph.node("Div", [sums, "column of counts"], [name])

    def _inner(self, graph: "Graph", first: str, second: str, name: str) -> str:
        return graph.node("Einsum", [first, second], [f"{name}.inner"], equation="rd,rd->r")

    def _axis(self, graph: "Graph", axis: int) -> str:
        return graph.constant(f"axis {axis}", np.array([axis]))


def _padded(texts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Texts as rows, padded with their own first token: (texts, longest, width), and 1 where tokens are."""
    lengths = np.array([len(states) for states in texts])
    indices = np.arange(lengths.max())
    rows = np.stack([states[np.where(indices < len(states), indices, 0)] for states in texts])
    return rows, (indices < lengths[:, None]).astype(np.float32)
