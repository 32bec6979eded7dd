"""The sizes of a causal model, from Hugging Face's config."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from listenwell.errors import WeightsError
from listenwell.runtime.families import FAMILIES, Family, text_config
from listenwell.runtime.onnx.graph import ModelShape
from listenwell.runtime.rope import Rope

MOST_POSITIONS = 32_768
"""No dialogue is longer, and tables of all positions that some models read would be larger than layers."""
_HEAD_STEP = 16
"""onnxruntime's attention wants heads of a multiple of this."""


@dataclass(frozen=True)
class DecoderShape(ModelShape):
    """A causal model's sizes, as far as they move a number."""

    family: Family
    width: int
    inner: int
    layers: int
    heads: int
    key_heads: int
    head_width: int
    positions: int
    epsilon: float
    tied: bool
    scale: float
    """Of the products of queries and keys."""
    rope: Rope
    local_rope: Rope
    """Of layers with a window."""
    windows: tuple[int, ...]
    """For each layer, how many of the last tokens a token sees; 0 for all."""
    attention_cap: float
    logit_cap: float
    """c of c tanh(x / c), which bounds attention scores and logits (Gemma 2, §2); 0 for none."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "DecoderShape":
        """Read Hugging Face's config of a model of FAMILIES; what the graph has not is refused."""
        own = text_config(config)
        family = FAMILIES[own.get("model_type", "llama")]
        settings = {**family.defaults, **own}
        try:
            return cls._read(family, settings)
        except (KeyError, TypeError, ValueError) as error:
            raise WeightsError(f"The model's config.json lacks {error}.", "Copy the model again.") from error

    @classmethod
    def _read(cls, family: Family, settings: Mapping[str, Any]) -> "DecoderShape":
        heads, width = int(settings["num_attention_heads"]), int(settings["hidden_size"])
        head_width = int(settings.get("head_dim") or width // heads)
        windows = _windows(settings)
        activation = settings.get("hidden_activation") or settings.get("hidden_act") or family.activation
        differs = {
            "hidden_act": activation != family.activation,
            "attention_bias": bool(settings.get("attention_bias")),
            "mlp_bias": bool(settings.get("mlp_bias")),
            "use_bidirectional_attention": bool(settings.get("use_bidirectional_attention")),
            "use_sliding_window": bool(settings.get("use_sliding_window")) and not any(windows),
            "head_dim": head_width % _HEAD_STEP != 0,
        }
        cls.check_plain(family.title, differs)
        rope, local_rope = _ropes(settings)
        return cls(
            family=family,
            width=width,
            inner=int(settings["intermediate_size"]),
            layers=int(settings["num_hidden_layers"]),
            heads=heads,
            key_heads=int(settings.get("num_key_value_heads") or heads),
            head_width=head_width,
            positions=min(int(settings["max_position_embeddings"]), MOST_POSITIONS),
            epsilon=float(settings["rms_norm_eps"]),
            tied=bool(settings.get("tie_word_embeddings")),
            scale=float(settings.get("query_pre_attn_scalar") or head_width) ** -0.5,
            rope=rope,
            local_rope=local_rope,
            windows=windows,
            attention_cap=float(settings.get("attn_logit_softcapping") or 0),
            logit_cap=float(settings.get("final_logit_softcapping") or 0),
        )

    def rope_of(self, layer: int) -> Rope:
        """A layer's rotary positions."""
        return self.local_rope if self.windows[layer] else self.rope

    def feed_norm(self, layer: int) -> str:
        """The name of the norm before a layer's feed-forward part."""
        name = "pre_feedforward_layernorm" if self.family.post_norms else "post_attention_layernorm"
        return f"model.layers.{layer}.{name}"


def _windows(settings: Mapping[str, Any]) -> tuple[int, ...]:
    """Each layer's window: all but every n-th layer have one, where the config has a pattern."""
    layers, pattern = int(settings["num_hidden_layers"]), settings.get("sliding_window_pattern")
    kinds = settings.get("layer_types") or [
        "sliding_attention" if pattern and (layer + 1) % pattern else "full_attention"
        for layer in range(layers)
    ]
    window = int(settings.get("sliding_window") or 0)
    return tuple(window if kind == "sliding_attention" else 0 for kind in kinds)


def _ropes(settings: Mapping[str, Any]) -> tuple[Rope, Rope]:
    """The rotary positions of layers that see all tokens, and of those with a window."""
    parameters = settings.get("rope_parameters") or settings.get("rope_scaling") or {}
    by_kind = parameters if "full_attention" in parameters else {"full_attention": parameters}
    rope = Rope.of(by_kind["full_attention"], float(settings.get("rope_theta") or 10_000.0))
    if (local := settings.get("rope_local_base_freq")) is None:
        return rope, rope
    return rope, Rope.of(by_kind.get("sliding_attention") or {}, float(local))
