"""How the files are called that hold what was trained: with torch and without, they are the same."""

ADAPTER, ADAPTER_CONFIG = "adapter_model.safetensors", "adapter_config.json"
"""A LoRA adapter in peft's format."""
HEAD_FILE = "heads.safetensors"
"""Beside an adapter: the weights that are not the encoder's."""
WHOLE = "model.safetensors"
"""All weights, where there is no adapter."""
