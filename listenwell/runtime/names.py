"""Names of the files and weights in a checkpoint, the same with torch and without."""

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")

ADAPTER, ADAPTER_CONFIG = "adapter_model.safetensors", "adapter_config.json"
"""A LoRA adapter in peft's format."""
HEAD_FILE = "heads.safetensors"
"""Beside an adapter: the weights that are not the encoder's."""
WHOLE = "model.safetensors"
"""All weights, where there is no adapter."""
INDEX = "model.safetensors.index.json"
"""Where all weights are in several files: the file of each."""
SOFT_PROMPT = "voice.safetensors"
"""Beside a generator's weights: the soft prompt's embeddings, as `rows`; see `generators.prefix_cache`."""
ADDED_TOKENS = "added_tokens.safetensors"
"""Beside an adapter: the embeddings of tokens that were added to the vocabulary, as `rows`."""

OLD_PREFIXES = {
    "body.": "backbone.",  # rankers
    "heads.tone.": "heads.expressed_emotion.",  # annotators
    "factors.tone.": "factors.expressed_emotion.",  # CoMAE
}
"""Prefixes of weights' names in earlier releases, and those of today."""


def current_names(weights: Mapping[str, T]) -> dict[str, T]:
    """A checkpoint's weights under today's names."""
    return {_current(name): value for name, value in weights.items()}


def _current(name: str) -> str:
    old = next((prefix for prefix in OLD_PREFIXES if name.startswith(prefix)), "")
    return OLD_PREFIXES.get(old, "") + name.removeprefix(old)
