"""The graph of a Llama: tokens and what was read before in, scores of the next tokens out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from listenwell.errors import WeightsError
from listenwell.runtime.base import probe_layer
from listenwell.runtime.onnx.graph import MICROSOFT, Graph, ModelShape

EMBEDDING, OUTPUT = "model.embed_tokens.weight", "lm_head.weight"


@dataclass(frozen=True)
class LlamaShape(ModelShape):
    """A Llama's sizes."""

    width: int
    inner: int
    layers: int
    heads: int
    key_heads: int
    head_width: int
    positions: int
    epsilon: float
    theta: float
    tied: bool

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "LlamaShape":
        """Read Hugging Face's config; what this graph has not is refused."""
        rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
        kind = rope.get("rope_type") or rope.get("type") or "default"
        strange = {
            "model_type": config.get("model_type", "llama") != "llama",
            "hidden_act": config.get("hidden_act", "silu") != "silu",
            "attention_bias": bool(config.get("attention_bias")),
            "mlp_bias": bool(config.get("mlp_bias")),
            "rope_type": kind != "default",
        }
        cls.check_plain("Llama", strange)
        try:
            heads = int(config["num_attention_heads"])
            return cls(
                width=int(config["hidden_size"]),
                inner=int(config["intermediate_size"]),
                layers=int(config["num_hidden_layers"]),
                heads=heads,
                key_heads=int(config.get("num_key_value_heads") or heads),
                head_width=int(config.get("head_dim") or config["hidden_size"] // heads),
                positions=int(config["max_position_embeddings"]),
                epsilon=float(config["rms_norm_eps"]),
                theta=float(rope.get("rope_theta") or config.get("rope_theta") or 10000.0),
                tied=bool(config.get("tie_word_embeddings")),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise WeightsError(f"The model's config.json lacks {error}.", "Copy the model again.") from error


def build_llama(
    graph: Graph,
    shape: LlamaShape,
    weights: Mapping[str, np.ndarray],
    advance: Callable[[int], None] = lambda count: None,
    soft_prompt: np.ndarray | None = None,
) -> None:
    """Write a Llama's graph.

    Inputs: tokens (rows, more) int64; last (rows,) int32, the index of each row's last token counted from the
    row's beginning; total () int32, the longest row's tokens; kept (scores,) int64, the flat indices of the
    tokens whose successors are predicted; and past keys and values of each layer, (rows, key heads, room,
    head width). Outputs: logits (scores, vocabulary), hidden_states (scores, width), the states of the same
    tokens after `probe_layer` layers, and the same keys and values with the new tokens' after each row's old
    ones. The room can be larger than what is filled, and the outputs can be the inputs' own memory.

    Soft prompt tokens are numbered after the vocabulary: they can be read, and have no logits.
    """
    _Llama(graph, shape, weights, soft_prompt).build(advance)


def cache_names(layer: int) -> tuple[tuple[str, str], tuple[str, str]]:
    """A layer's past keys and values among the inputs, and present ones among the outputs."""
    return (f"past.{layer}.keys", f"past.{layer}.values"), (
        f"present.{layer}.keys",
        f"present.{layer}.values",
    )


def rotations(shape: LlamaShape) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines of rotary positions (Su et al. 2021, eq. 15): (positions, head width / 2) each."""
    # In float32 as transformers has them: late positions' angles are large, and round differently.
    powers = np.arange(0, shape.head_width, 2, dtype=np.float32) / np.float32(shape.head_width)
    frequencies = (1 / np.float32(shape.theta) ** powers).astype(np.float32)
    angles = np.arange(shape.positions, dtype=np.float32)[:, None] * frequencies
    return np.cos(angles), np.sin(angles)


@dataclass(frozen=True)
class _Llama:
    """The parts of a graph in the making."""

    graph: Graph
    shape: LlamaShape
    weights: Mapping[str, np.ndarray]
    soft_prompt: np.ndarray | None

    def build(self, advance: Callable[[int], None]) -> None:
        """All of it; the residual stream runs through the layers, its norm is what they read."""
        graph, shape = self.graph, self.shape
        tokens = graph.input("tokens", "INT64", ["rows", "more"])
        cosines, sines = rotations(shape)
        shared = [
            graph.input("last", "INT32", ["rows"]),
            graph.input("total", "INT32", []),
            graph.constant("cosines", cosines),
            graph.constant("sines", sines),
        ]
        kept = graph.input("kept", "INT64", ["scores"])
        table = self.weights[EMBEDDING]
        read = table if self.soft_prompt is None else np.concatenate([table, self.soft_prompt])
        stream = graph.lookup(tokens, EMBEDDING, read)
        normed = graph.node(
            "SimplifiedLayerNormalization",
            [stream, self._gain("model.layers.0.input_layernorm")],
            ["first.normed"],
            axis=-1,
            epsilon=shape.epsilon,
        )
        for layer in range(shape.layers):
            prefix = f"model.layers.{layer}"
            after = f"model.layers.{layer + 1}.input_layernorm" if layer + 1 < shape.layers else "model.norm"
            attended = self._attended(normed, layer, shared)
            normed, stream = self._added(stream, attended, f"{prefix}.post_attention_layernorm")
            normed, stream = self._added(stream, self._fed_forward(normed, f"{prefix}.mlp"), after)
            if layer + 1 == probe_layer(shape.layers):
                hidden_state = stream
            advance(1)
        flat = graph.constant("flat", np.array([-1, shape.width]))
        halfway = graph.node("Reshape", [hidden_state, flat], ["halfway"])
        graph.node("Gather", [halfway, kept], ["hidden_states"])
        graph.output("hidden_states", "FLOAT", ["scores", shape.width])
        states = graph.node("Reshape", [normed, flat], ["states"])
        chosen = graph.node("Gather", [states, kept], ["chosen"])
        if (
            graph.precision == "fp32" and shape.tied and self.soft_prompt is None
        ):  # one table in memory for both
            graph.node("Gemm", [chosen, EMBEDDING], ["logits"], transB=1)
        else:
            graph.linear(chosen, "lm_head", table if shape.tied else self.weights[OUTPUT], out="logits")
        graph.output("logits", "FLOAT", ["scores", len(table)])
        advance(1)

    def _attended(self, normed: str, layer: int, shared: list[str]) -> str:
        """Grouped-query attention over what was read before and what is new, and the layer behind it."""
        graph, shape, name = self.graph, self.shape, f"model.layers.{layer}.self_attn"
        packed = graph.linear(normed, f"{name}.qkv", self._stacked(name, "q", "k", "v"))
        pasts, presents = cache_names(layer)
        for past, present in zip(pasts, presents, strict=True):
            graph.input(past, "FLOAT", ["rows", shape.key_heads, "room", shape.head_width])
            graph.output(present, "FLOAT", ["rows", shape.key_heads, "room after", shape.head_width])
        attended = graph.node(
            "GroupQueryAttention",
            [packed, "", "", *pasts, *shared],
            [f"{name}.attended", *presents],
            MICROSOFT,
            num_heads=shape.heads,
            kv_num_heads=shape.key_heads,
            do_rotary=1,
        )
        return graph.linear(attended, f"{name}.o_proj", self.weights[f"{name}.o_proj.weight"])

    def _fed_forward(self, normed: str, name: str) -> str:
        """SwiGLU (Shazeer 2020, eq. 6): silu(x G) ⊙ (x U) in one product, then down again."""
        graph = self.graph
        product = graph.linear(normed, f"{name}.gate_up", self._stacked(name, "gate", "up"))
        gate, up, opened, mixed = (f"{name}.{part}" for part in ("gate", "up", "opened", "mixed"))
        graph.node("Split", [product], [gate, up], axis=-1, num_outputs=2)
        graph.node("QuickGelu", [gate], [opened], MICROSOFT, alpha=1.0)  # x sigmoid(alpha x): silu
        graph.node("Mul", [opened, up], [mixed])
        return graph.linear(mixed, f"{name}.down_proj", self.weights[f"{name}.down_proj.weight"])

    def _added(self, stream: str, change: str, norm: str) -> tuple[str, str]:
        """Add to the residual stream; gives the sum's RMS norm (Zhang and Sennrich 2019), and the sum."""
        outputs = [f"{norm}.normed", "", "", f"{norm}.sum"]
        self.graph.node(
            "SkipSimplifiedLayerNormalization",
            [stream, change, self._gain(norm)],
            outputs,
            MICROSOFT,
            epsilon=self.shape.epsilon,
        )
        return outputs[0], outputs[3]

    def _stacked(self, name: str, *parts: str) -> np.ndarray:
        return np.concatenate([self.weights[f"{name}.{part}_proj.weight"] for part in parts])

    def _gain(self, norm: str) -> str:
        return self.graph.constant(f"{norm}.gain", self.weights[f"{norm}.weight"])
