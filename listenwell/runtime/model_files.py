"""A base model as it lies on the disk: a folder in Hugging Face's layout, or a GGUF file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from listenwell.errors import WeightsError
from listenwell.runtime.gguf import PackedModel
from listenwell.runtime.names import INDEX, WHOLE
from listenwell.runtime.onnx.tensors import Tensors, shard_names, shards


@dataclass(frozen=True)
class ModelFiles:
    """What a model's files hold."""

    config: Mapping[str, Any]
    """Hugging Face's."""
    weights: Mapping[str, np.ndarray]
    """By Hugging Face's names, in float32; each is read when it is asked for."""
    tokenizer: str
    """The contents of a tokenizer.json."""

    @classmethod
    def read(cls, path: Path) -> "ModelFiles":
        """Open a folder or a GGUF file."""
        if path.is_file():
            packed = PackedModel(path)
            return cls(packed.config, packed, packed.tokenizer())
        try:
            config = json.loads((path / "config.json").read_text(encoding="utf-8"))
            if not isinstance(config["model_type"], str):
                raise TypeError("its model_type is no text")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise WeightsError(
                f"{path / 'config.json'} is damaged: {error}.", "Copy the model again."
            ) from error
        weights = Tensors(path / WHOLE) if (path / WHOLE).is_file() else shards(path)
        return cls(config, weights, (path / "tokenizer.json").read_text(encoding="utf-8"))


def model_files(path: Path) -> tuple[Path, ...]:
    """All files that shape a model; weights can be in several."""
    if path.is_file():
        return (path,)
    weights = [WHOLE]
    if not (path / WHOLE).is_file() and (path / INDEX).is_file():
        weights = [INDEX, *sorted(set(shard_names(path).values()))]
    return tuple(path / name for name in ("config.json", *weights, "tokenizer.json"))
