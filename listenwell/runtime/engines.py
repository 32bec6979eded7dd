"""Which engine runs a model: onnxruntime where it is installed, torch otherwise, or as it was asked for."""

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from listenwell.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from listenwell.runtime.base import Runtime

NAMES = ("auto", "onnx", "torch")
PRECISIONS = ("int8", "fp32")


@dataclass(frozen=True)
class Engine:
    """How a model is run."""

    name: str = "auto"
    """onnx: onnxruntime, quick and small; torch: transformers, any causal model; auto: onnx where it can."""
    precision: str = "int8"
    """Of onnx: int8, or fp32 for the same numbers as torch, which knows fp32 alone."""

    def __post_init__(self) -> None:
        for value, known in ((self.name, NAMES), (self.precision, PRECISIONS)):
            if value not in known:
                raise InputError(f"An engine cannot be {value!r}.", f"Give one of: {', '.join(known)}.")

    def chosen(self, weights: Path) -> str:
        """The engine for some weights: a folder in Hugging Face's layout, or a GGUF file."""
        if self.name != "auto":
            return self.name
        is_there = find_spec("onnxruntime") is not None and find_spec("onnx") is not None
        return "onnx" if is_there and _is_llama(weights) else "torch"


def load_runtime(weights: Path, adapter: Path | None = None, engine: Engine | None = None) -> "Runtime":
    """A causal model, ready to run.

    Args:
        weights: a folder in Hugging Face's layout, or a GGUF file.
        adapter: a folder with a LoRA adapter, and with new tokens, if it has any.
        engine: which one, and how exactly it works.
    """
    engine = engine or Engine()
    if engine.chosen(weights) == "onnx":
        from listenwell.runtime.onnx.engine import OnnxRuntime

        return OnnxRuntime.load(weights, adapter, engine.precision)
    if find_spec("torch") is None:
        raise MissingExtraError("torch", "train", "Running a model with torch")
    from listenwell.runtime.torch_engine import TorchRuntime
    from listenwell.weights import unpacked

    return TorchRuntime.from_folder(unpacked(weights), adapter=adapter)


def _is_llama(weights: Path) -> bool:
    """Whether onnxruntime can run it: a GGUF file that we unpack is a Llama, a folder says what it is."""
    if weights.is_file():
        return True
    try:
        config = json.loads((weights / "config.json").read_text(encoding="utf-8"))
        return bool(config["model_type"] == "llama")
    except (OSError, ValueError, KeyError, TypeError):
        return False  # the engine that reads it will tell what is wrong
