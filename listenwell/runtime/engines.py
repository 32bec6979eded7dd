"""Which engine runs a model: onnxruntime, which is small, or torch, which also trains."""

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from listenwell.errors import InputError, MissingExtraError, unknown_name
from listenwell.runtime.families import FAMILIES, text_config

if TYPE_CHECKING:
    from listenwell.runtime.base import Runtime

AUTO, ONNX, TORCH = NAMES = ("auto", "onnx", "torch")
PRECISIONS = ("int8", "fp32")
_NEEDED = ("onnx", "onnxruntime")


@dataclass(frozen=True)
class Engine:
    """How a model is run."""

    name: str = AUTO
    """onnx: onnxruntime, quick and small; torch: transformers, any causal model; auto: onnx where it can."""
    precision: str = "int8"
    """Of onnx: int8, or fp32 for the same numbers as torch, which knows fp32 alone."""

    def __post_init__(self) -> None:
        for value, known in ((self.name, NAMES), (self.precision, PRECISIONS)):
            if value not in known:
                raise InputError(f"An engine cannot be {value!r}.", f"Give one of: {', '.join(known)}.")


def choose_engine(name: str, what: str, fits: bool = True) -> str:
    """ONNX or TORCH; an error says what to install where neither can be.

    Args:
        name: one of NAMES; AUTO takes onnxruntime where it is installed and can run the model.
        what: the model, for messages, such as "The ranker poly".
        fits: whether onnxruntime can run it.
    """
    if name not in NAMES:
        raise unknown_name("engine", name, NAMES)
    if name == ONNX and not fits:
        raise InputError(
            f"{what} does not run on onnxruntime.",
            "Use the engine torch, which comes with: pip install 'listenwell[train]'",
        )
    if name != TORCH and fits:
        if all(map(is_installed, _NEEDED)):
            return ONNX
        if name == ONNX:
            raise InputError(
                f"{what} needs the packages {' and '.join(_NEEDED)} to run on onnxruntime.",
                f"Install them with: pip install {' '.join(_NEEDED)}",
            )
    if not is_installed("torch"):
        raise MissingExtraError("torch", "train", what)
    return TORCH


def is_installed(package: str) -> bool:
    """Whether a package can be imported; it is not."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def load_runtime(weights: Path, adapter: Path | None = None, engine: Engine | None = None) -> "Runtime":
    """A causal model from a folder in Hugging Face's layout or a GGUF file, and a LoRA adapter's folder."""
    engine = engine or Engine()
    # Whoever asks for onnxruntime hears from it what is wrong with the weights.
    fits = engine.name == ONNX or _has_graph(weights)
    if choose_engine(engine.name, f"The model {weights.name}", fits) == ONNX:
        from listenwell.runtime.onnx.engine import OnnxRuntime

        return OnnxRuntime.load(weights, adapter, engine.precision)
    from listenwell.runtime.torch_engine import TorchRuntime
    from listenwell.runtime.weights import unpacked

    return TorchRuntime.from_folder(unpacked(weights), adapter=adapter)


def _has_graph(weights: Path) -> bool:
    """Whether onnxruntime can run it: of a GGUF file its reader tells, a folder says what it is."""
    if weights.is_file():
        return True
    try:
        config = json.loads((weights / "config.json").read_text(encoding="utf-8"))
        return text_config(config)["model_type"] in FAMILIES
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False  # the engine that reads it will tell what is wrong
