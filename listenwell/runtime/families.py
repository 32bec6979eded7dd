"""The families of causal models that onnxruntime runs here, and what sets each apart from Llama."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from listenwell.errors import WeightsError


@dataclass(frozen=True)
class Family:
    """What a family's layers have that Llama's have not."""

    title: str
    architecture: str
    """transformers' class."""
    input_biases: bool = False
    """Queries, keys and values have a bias."""
    head_norms: bool = False
    """Each head's queries and keys are normalized."""
    post_norms: bool = False
    """What attention and feed-forward layers give is normalized as well."""
    scaled_embedding: bool = False
    """Embeddings are multiplied by the root of their width."""
    shifted_gains: bool = False
    """Hugging Face's files hold the norms' gains less 1; GGUF files hold them whole."""
    activation: str = "silu"
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Settings that a config.json may leave out."""


_GEMMA = {
    "tie_word_embeddings": True,
    "head_dim": 256,
    "query_pre_attn_scalar": 256,
    "sliding_window": 4096,
    "rms_norm_eps": 1e-6,
    "hidden_activation": "gelu_pytorch_tanh",
}


def _gemma(title: str, architecture: str, head_norms: bool, **defaults: object) -> Family:
    return Family(
        title,
        architecture,
        head_norms=head_norms,
        post_norms=True,
        scaled_embedding=True,
        shifted_gains=True,
        activation="gelu_pytorch_tanh",
        defaults=_GEMMA | defaults,
    )


FAMILIES = {
    "llama": Family("Llama", "LlamaForCausalLM"),
    "qwen2": Family("Qwen 2", "Qwen2ForCausalLM", input_biases=True),
    "qwen3": Family("Qwen 3", "Qwen3ForCausalLM", head_norms=True, defaults={"head_dim": 128}),
    "gemma2": _gemma(
        "Gemma 2",
        "Gemma2ForCausalLM",
        False,
        sliding_window_pattern=2,
        attn_logit_softcapping=50.0,
        final_logit_softcapping=30.0,
    ),
    "gemma3_text": _gemma(
        "Gemma 3",
        "Gemma3ForCausalLM",
        True,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=131_072,
        sliding_window_pattern=6,
        rope_theta=1e6,
        rope_local_base_freq=1e4,
    ),
}
"""By the `model_type` of a config.json."""
GGUF_FAMILIES = {"gemma3": "gemma3_text"} | {name: name for name in FAMILIES if name != "gemma3_text"}
"""By the architecture of a GGUF file."""


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of the language model, where a model also reads images (Gemma 3 from 4B up)."""
    return config["text_config"] if config.get("model_type") == "gemma3" else config


def unknown_family(what: object, kind: object) -> WeightsError:
    """The error for a model of another family."""
    titles = ", ".join(family.title for family in FAMILIES.values())
    return WeightsError(f"{what} holds a {kind!r} model.", f"Use a model of one of the families: {titles}.")
