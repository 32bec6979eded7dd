"""The graph of a causal model: tokens and what was read before in, scores of the next tokens out.

It is a Llama's; what other families add is in `runtime.families`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from listenwell.runtime.base import probe_layer
from listenwell.runtime.onnx.graph import MICROSOFT, Graph
from listenwell.runtime.onnx.shape import DecoderShape
from listenwell.runtime.onnx.state import cache_names
from listenwell.runtime.rope import Rope

EMBEDDING, OUTPUT = "model.embed_tokens.weight", "lm_head.weight"


def build_decoder(
    graph: Graph,
    shape: DecoderShape,
    weights: Mapping[str, np.ndarray],
    advance: Callable[[int], None] = lambda count: None,
    soft_prompt: np.ndarray | None = None,
) -> None:
    """Write a causal model's graph; norms' gains are given whole.

    Inputs: tokens (rows, more) int64; last (rows,) int32, the index of each row's last token counted from the
    row's beginning; total () int32, the longest row's tokens; kept (scores,) int64, the flat indices of the
    tokens whose successors are predicted; and past keys and values of each layer, (rows, key heads, room,
    head width). Outputs: logits (scores, vocabulary), hidden_states (scores, width), the states of the same
    tokens after `probe_layer` layers, and the same keys and values with the new tokens' after each row's old
    ones. The room can be larger than what is filled, and the outputs can be the inputs' own memory.

    Soft prompt tokens are numbered after the vocabulary: they can be read, and have no logits.
    """
    _Decoder(graph, shape, weights, soft_prompt).build(advance)


@dataclass(frozen=True)
class _Decoder:
    """The parts of a graph in the making."""

    graph: Graph
    shape: DecoderShape
    weights: Mapping[str, np.ndarray]
    soft_prompt: np.ndarray | None

    def build(self, advance: Callable[[int], None]) -> None:
        """All of it; the residual stream runs through the layers, its norm is what they read."""
        graph, shape = self.graph, self.shape
        tokens = graph.input("tokens", "INT64", ["rows", "more"])
        lengths = [graph.input("last", "INT32", ["rows"]), graph.input("total", "INT32", [])]
        rotations = {rope: self._rotations(rope) for rope in (shape.rope, shape.local_rope)}
        kept = graph.input("kept", "INT64", ["scores"])
        table = self.weights[EMBEDDING]
        read = table if self.soft_prompt is None else np.concatenate([table, self.soft_prompt])
        stream = graph.lookup(tokens, EMBEDDING, read)
        if shape.family.scaled_embedding:
            scale = graph.constant("embedding.scale", np.array(shape.width**0.5, np.float32))
            stream = graph.node("Mul", [stream, scale], ["embedding.scaled"])
        normed = self._normed(stream, "model.layers.0.input_layernorm", "first.normed")
        for layer in range(shape.layers):
            prefix = f"model.layers.{layer}"
            after = f"model.layers.{layer + 1}.input_layernorm" if layer + 1 < shape.layers else "model.norm"
            attended = self._attended(normed, layer, [*lengths, *rotations[shape.rope_of(layer)]])
            if shape.family.post_norms:
                attended = self._normed(attended, f"{prefix}.post_attention_layernorm")
            normed, stream = self._added(stream, attended, shape.feed_norm(layer))
            fed = self._fed_forward(normed, f"{prefix}.mlp")
            if shape.family.post_norms:
                fed = self._normed(fed, f"{prefix}.post_feedforward_layernorm")
            normed, stream = self._added(stream, fed, after)
            if layer + 1 == probe_layer(shape.layers):
                hidden_state = stream
            advance(1)
        flat = graph.constant("flat", np.array([-1, shape.width]))
        halfway = graph.node("Reshape", [hidden_state, flat], ["halfway"])
        graph.node("Gather", [halfway, kept], ["hidden_states"])
        graph.output("hidden_states", "FLOAT", ["scores", shape.width])
        states = graph.node("Reshape", [normed, flat], ["states"])
        self._scored(graph.node("Gather", [states, kept], ["chosen"]), table)
        advance(1)

    def _scored(self, chosen: str, table: np.ndarray) -> None:
        """The output layer: logits of the words of the embedding's table."""
        graph, shape = self.graph, self.shape
        out = "uncapped" if shape.logit_cap else "logits"
        # One table in memory for both.
        if graph.precision == "fp32" and shape.tied and self.soft_prompt is None:
            graph.node("Gemm", [chosen, EMBEDDING], [out], transB=1)
        else:
            graph.linear(chosen, "lm_head", table if shape.tied else self.weights[OUTPUT], out=out)
        if shape.logit_cap:
            cap = graph.constant("logit.cap", np.array(shape.logit_cap, np.float32))
            small = graph.node("Div", [out, cap], ["logits.small"])
            bounded = graph.node("Tanh", [small], ["logits.bounded"])
            graph.node("Mul", [bounded, cap], ["logits"])
        graph.output("logits", "FLOAT", ["scores", len(table)])

    def _attended(self, normed: str, layer: int, shared: list[str]) -> str:
        """Grouped-query attention over what was read before and what is new, and the layer behind it."""
        graph, shape, name = self.graph, self.shape, f"model.layers.{layer}.self_attn"
        bias = self._stacked(name, "q", "k", "v", kind="bias") if shape.family.input_biases else None
        packed = graph.linear(normed, f"{name}.qkv", self._stacked(name, "q", "k", "v"), bias)
        inputs = self._head_normed(packed, name) if shape.family.head_norms else [packed, "", ""]
        pasts, presents = cache_names(layer)
        for past, present in zip(pasts, presents, strict=True):
            graph.input(past, "FLOAT", ["rows", shape.key_heads, "room", shape.head_width])
            graph.output(present, "FLOAT", ["rows", shape.key_heads, "room after", shape.head_width])
        settings: dict[str, float] = {"num_heads": shape.heads, "kv_num_heads": shape.key_heads}
        if shape.scale != shape.head_width**-0.5:
            settings["scale"] = shape.scale
        if shape.attention_cap:
            settings["softcap"] = shape.attention_cap
        if shape.windows[layer]:
            settings["local_window_size"] = shape.windows[layer]
        attended = graph.node(
            "GroupQueryAttention",
            [*inputs, *pasts, *shared],
            [f"{name}.attended", *presents],
            MICROSOFT,
            do_rotary=1,
            **settings,
        )
        return graph.linear(attended, f"{name}.o_proj", self.weights[f"{name}.o_proj.weight"])

    def _head_normed(self, packed: str, name: str) -> list[str]:
        """Queries, keys and values, the first two normalized in each head."""
        graph, shape = self.graph, self.shape
        parts, heads = [f"{name}.{part}" for part in "qkv"], (shape.heads, shape.key_heads)
        sizes = np.array([shape.heads, shape.key_heads, shape.key_heads]) * shape.head_width
        graph.node("Split", [packed, graph.constant(f"{name}.sizes", sizes)], parts, axis=-1)
        for index, count in enumerate(heads):
            part = parts[index]
            # 0 keeps rows and tokens as they are.
            apart = graph.constant(f"{part}.apart", np.array([0, 0, count, shape.head_width]))
            whole = graph.constant(f"{part}.whole", np.array([0, 0, count * shape.head_width]))
            split = graph.node("Reshape", [part, apart], [f"{part}.heads"])
            normed = self._normed(split, f"{part}_norm")
            parts[index] = graph.node("Reshape", [normed, whole], [f"{part}.ready"])
        return parts

    def _fed_forward(self, normed: str, name: str) -> str:
        """A gated layer (Shazeer 2020, eq. 6): f(x G) ⊙ (x U) in one product, then down again."""
        graph = self.graph
        product = graph.linear(normed, f"{name}.gate_up", self._stacked(name, "gate", "up"))
        gate, up, opened, mixed = (f"{name}.{part}" for part in ("gate", "up", "opened", "mixed"))
        graph.node("Split", [product], [gate, up], axis=-1, num_outputs=2)
        if self.shape.family.activation == "silu":
            graph.node("QuickGelu", [gate], [opened], MICROSOFT, alpha=1.0)  # x sigmoid(alpha x): silu
        else:
            graph.node("Gelu", [gate], [opened], approximate="tanh")
        graph.node("Mul", [opened, up], [mixed])
        return graph.linear(mixed, f"{name}.down_proj", self.weights[f"{name}.down_proj.weight"])

    def _normed(self, x: str, norm: str, out: str = "") -> str:
        """The RMS norm (Zhang and Sennrich 2019) of what is read along its last axis."""
        gain, epsilon = self._gain(norm), self.shape.epsilon
        outputs = [out or f"{norm}.normed"]
        return self.graph.node("SimplifiedLayerNormalization", [x, gain], outputs, axis=-1, epsilon=epsilon)

    def _added(self, stream: str, change: str, norm: str) -> tuple[str, str]:
        """Add to the residual stream; gives the sum's RMS norm, and the sum."""
        outputs = [f"{norm}.normed", "", "", f"{norm}.sum"]
        self.graph.node(
            "SkipSimplifiedLayerNormalization",
            [stream, change, self._gain(norm)],
            outputs,
            MICROSOFT,
            epsilon=self.shape.epsilon,
        )
        return outputs[0], outputs[3]

    def _stacked(self, name: str, *parts: str, kind: str = "weight") -> np.ndarray:
        return np.concatenate([self.weights[f"{name}.{part}_proj.{kind}"] for part in parts])

    def _gain(self, norm: str) -> str:
        return self.graph.constant(f"{norm}.gain", self.weights[f"{norm}.weight"])

    def _rotations(self, rope: Rope) -> tuple[str, str]:
        """Constants with the cosines and sines of all positions."""
        prefix = "" if rope == self.shape.rope else "local."
        cosines, sines = rope.rotations(self.shape.positions, self.shape.head_width)
        return self.graph.constant(f"{prefix}cosines", cosines), self.graph.constant(f"{prefix}sines", sines)
