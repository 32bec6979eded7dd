"""Weights by name as numpy arrays, one at a time from safetensors files; adapters and new rows are added."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from listenwell.errors import CheckpointError, WeightsError
from listenwell.runtime.names import ADAPTER, ADAPTER_CONFIG, INDEX

_DTYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8"}
_MORE = ("use_dora", "use_rslora", "alpha_pattern", "rank_pattern", "fan_in_fan_out")
"""Settings of an adapter that mean more than plain LoRA."""


class _Named(Mapping[str, np.ndarray]):
    """Weights by the names of something that is known; subclasses read each when it is asked for."""

    _known: Mapping[str, Any]

    def __contains__(self, name: object) -> bool:
        return name in self._known  # without reading it

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class Tensors(_Named):
    """The tensors of a safetensors file in float32; each is read when it is asked for."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            with file.open("rb") as stream:
                size = int.from_bytes(stream.read(8), "little")
                if size > file.stat().st_size:
                    raise ValueError("its header is longer than the file")
                entries: dict[str, dict[str, Any]] = json.loads(stream.read(size))
            entries.pop("__metadata__", None)
            self._data = np.memmap(file, np.uint8, "r", 8 + size)
            if any(entry["data_offsets"][1] > len(self._data) for entry in entries.values()):
                raise ValueError("its end is missing")
            self._known = entries
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise WeightsError(
                f"{file} cannot be read: {error}.", "Name a folder saved with safetensors, or copy it again."
            ) from error

    def __getitem__(self, name: str) -> np.ndarray:
        entry = self._known[name]
        if entry["dtype"] not in _DTYPES:
            raise WeightsError(
                f"{name} in {self._file} is of the kind {entry['dtype']}.",
                f"Use one of {', '.join(_DTYPES)}.",
            )
        start, end = entry["data_offsets"]
        values = self._data[start:end].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
        if entry["dtype"] == "BF16":  # the upper half of a float32, which numpy has no name for
            return (values.astype(np.uint32) << 16).view(np.float32)
        return values.astype(np.float32)


class Lazy(_Named):
    """Weights by name, each read by a function when it is asked for."""

    def __init__(self, readers: Mapping[str, Callable[[], np.ndarray]]) -> None:
        self._known = readers

    def __getitem__(self, name: str) -> np.ndarray:
        return np.asarray(self._known[name]())


def shards(folder: Path) -> Lazy:
    """The tensors of a folder whose weights are in several files."""
    files = shard_names(folder)
    tensors = {file: Tensors(folder / file) for file in set(files.values())}
    return Lazy({name: partial(tensors[file].__getitem__, name) for name, file in files.items()})


def shard_names(folder: Path) -> dict[str, str]:
    """The file of each weight by the index of a folder whose weights are in several files."""
    try:
        return dict(json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WeightsError(f"{folder / INDEX} cannot be read: {error}.", "Copy the model again.") from error


class Changed(_Named):
    """Weights of a model, some of them changed by a subclass in the moment they are asked for."""

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        self._known = self._weights = weights

    def __getitem__(self, name: str) -> np.ndarray:
        return self._weights[name]


class Adapted(Changed):
    """A model's weights with a LoRA adapter of peft: W + (alpha / rank) B A (Hu et al. 2022, eq. 3)."""

    def __init__(self, weights: Mapping[str, np.ndarray], folder: Path) -> None:
        super().__init__(weights)
        self._tensors = Tensors(folder / ADAPTER)
        self._scale = lora_scale(folder / ADAPTER_CONFIG, self._tensors)
        self._downs = {_adapted(name): name for name in self._tensors if ".lora_A." in name}
        if lost := sorted(set(self._downs) - set(weights)):
            raise CheckpointError(
                f"The adapter {folder} changes weights that the model lacks: {lost[0]} and "
                f"{len(lost) - 1} more.",
                "Use the base model that it was trained on.",
            )

    def __getitem__(self, name: str) -> np.ndarray:
        weight = self._weights[name]
        if (down := self._downs.get(name)) is None:
            return weight
        up = self._tensors[down.replace(".lora_A.", ".lora_B.")]
        merged: np.ndarray = weight + self._scale * (up @ self._tensors[down])
        return merged


class Extended(Changed):
    """A model's weights whose tables have a row for each token, new ones last.

    Some models' tables have unused rows behind their vocabulary, some lack its last row.
    """

    def __init__(self, weights: Mapping[str, np.ndarray], rows: Mapping[str, np.ndarray], known: int) -> None:
        super().__init__(weights)
        self._rows, self._count = rows, known

    def __getitem__(self, name: str) -> np.ndarray:
        table = self._weights[name]
        if name not in self._rows:
            return table
        new = np.asarray(self._rows[name], np.float32)
        if new.ndim != 2 or new.shape[1] != table.shape[1]:
            raise CheckpointError(
                f"The rows of new tokens have the shape {new.shape}; the model is {table.shape[1]} wide.",
                "Use the base model that they were trained with.",
            )
        lacking = np.zeros((max(0, self._count - len(table)), table.shape[1]), np.float32)
        parts = [table[: self._count], lacking, new]
        return np.concatenate(parts) if any(map(len, parts[1:])) else parts[0]


class ShiftedGains(Changed):
    """The weights of a family whose files hold the norms' gains less 1."""

    def __getitem__(self, name: str) -> np.ndarray:
        weight = self._weights[name]
        return weight + 1 if name.endswith("norm.weight") else weight


def text_part(weights: Mapping[str, np.ndarray]) -> Lazy:
    """The language model's weights of a model that also reads images."""
    prefixes = ("model.language_model.", "language_model.model.")
    return Lazy(
        {
            "model." + name.removeprefix(prefix): partial(weights.__getitem__, name)
            for name in weights
            for prefix in prefixes
            if name.startswith(prefix)
        }
    )


def lora_scale(config: Path, names: Iterable[str]) -> float:
    """alpha / rank of an adapter in peft's format; one that means more than plain LoRA is refused."""
    try:
        settings = json.loads(config.read_text(encoding="utf-8"))
        scale = float(settings["lora_alpha"] / settings["r"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{config} cannot be read: {error}.", "Copy the adapter again.") from error
    is_plain = all(".lora_A." in name or ".lora_B." in name for name in names)
    if not is_plain or any(map(settings.get, _MORE)):
        raise CheckpointError(f"{config} describes more than plain LoRA.", "Merge it with peft.")
    return scale


def _adapted(name: str) -> str:
    """The weight that a tensor of an adapter is about."""
    return name.removeprefix("base_model.model.").split(".lora_A.")[0] + ".weight"
