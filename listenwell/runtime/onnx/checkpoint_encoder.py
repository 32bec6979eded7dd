"""The encoder of a checkpoint for onnxruntime, and the weights beside it as arrays. Imports no torch.

An adapter is merged when the graph is built. If a checkpoint holds all weights, its encoder's are written to
the cache once, in Hugging Face's layout, for the graph to be built from.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.errors import CheckpointError, WeightsError
from listenwell.files import cache_folder, one_at_a_time, recover
from listenwell.runtime.names import HEAD_FILE, WHOLE, current_names
from listenwell.runtime.weights import find_weights

if TYPE_CHECKING:
    from listenwell.runtime.onnx.encoder import OnnxEncoder
    from listenwell.runtime.onnx.heads import PooledHeads

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
LAYOUT = 1
"""Part of the cache key: raise it when the same checkpoint is written out differently."""

Arrays = dict[str, np.ndarray]


def base_folder(base: str, weights: Path | None = None) -> Path:
    """The folder of a base model, or the user's own."""
    return find_weights(base, weights)


def runs_on_onnx(folder: Path) -> bool:
    """Whether a base model's folder holds a BERT that our graphs can be built for."""
    from listenwell.runtime.onnx.bert import BertShape

    try:
        BertShape.of(json.loads((folder / CONFIG).read_text(encoding="utf-8")))
    except (OSError, ValueError, WeightsError):
        return False
    return True


@dataclass(frozen=True)
class CheckpointEncoder:
    """A checkpoint's encoder, not yet loaded: the heads of its graph are made from the other weights."""

    saved: Checkpoint
    weights: Path
    """A folder in Hugging Face's layout."""
    adapter: Path | None
    own: Arrays
    """The checkpoint's weights that are not the encoder's, in float32."""
    width: int
    """Of the encoder's states."""
    positions: int
    """The most tokens that the encoder reads."""

    def load(self, precision: str, heads: "PooledHeads | None" = None) -> "OnnxEncoder":
        """Load the encoder with pooling and heads; mean pooling alone if none are given."""
        from listenwell.runtime.onnx.encoder import OnnxEncoder

        return OnnxEncoder.load(self.weights, self.adapter, precision, heads=heads)

    def linear(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Weight and bias of one of the own linear layers."""
        return self.own[f"{name}.weight"], self.own[f"{name}.bias"]

    def check_shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Raise an error if own weights are missing, unknown, or of another shape."""
        actual = {name: value.shape for name, value in self.own.items()}
        if differing := sorted({name for name, _ in actual.items() ^ dict(shapes).items()}):
            raise CheckpointError(
                f"{self.saved.folder} lacks or adds the weights {', '.join(differing)}.", "Make it anew."
            )


def open_encoder(
    saved: Checkpoint, base: Path, prefixes: tuple[str, ...], config: Mapping[str, Any] | None = None
) -> CheckpointEncoder:
    """Find the encoder of a checkpoint, and the weights beside it.

    `prefixes` are those that the names of the encoder's weights may have, such as "encoder."; `config` is the
    encoder's config.json where it is not the base model's.
    """
    text = (base / CONFIG).read_bytes() if config is None else json.dumps(dict(config)).encode()
    settings = json.loads(text)
    positions = int(settings["max_position_embeddings"])
    if WHOLE not in saved.sums:
        own, width = _arrays(saved, HEAD_FILE), int(settings["hidden_size"])
        return CheckpointEncoder(saved, base, saved.folder, current_names(own), width, positions)
    arrays = _arrays(saved, WHOLE)
    prefix = next((old for old in prefixes if any(name.startswith(old) for name in arrays)), prefixes[0])
    encoder = {name: value for name, value in arrays.items() if name.startswith(prefix)}
    own = {name: value for name, value in arrays.items() if name not in encoder}
    width = int(settings.get("hidden_size", next(iter(encoder.values())).shape[-1]))
    return CheckpointEncoder(
        saved, _written_out(saved, base, prefix, text, encoder), None, current_names(own), width, positions
    )


def _arrays(saved: Checkpoint, name: str) -> Arrays:
    """The tensors of one of a checkpoint's files in float32."""
    from safetensors.numpy import load_file

    return {tensor: value.astype(np.float32) for tensor, value in load_file(saved.path(name)).items()}


def _written_out(saved: Checkpoint, base: Path, prefix: str, config: bytes, weights: Arrays) -> Path:
    """A folder in Hugging Face's layout with a checkpoint's own encoder, from the cache where it is there."""
    from safetensors.numpy import save_file

    tokenizer = (base / TOKENIZER).read_bytes()
    sums = (saved.sums[WHOLE], sha256(config).hexdigest(), sha256(tokenizer).hexdigest())
    key = sha256(repr((LAYOUT, prefix, *sums)).encode()).hexdigest()
    folder = cache_folder() / "weights" / f"encoder-{key[:16]}"
    with one_at_a_time(folder):
        recover(folder)
        try:
            return checkpoint.open_checkpoint(folder, "encoder").folder
        except CheckpointError:
            shutil.rmtree(folder, ignore_errors=True)
        with checkpoint.writing(folder, "encoder") as aside:
            (aside / CONFIG).write_bytes(config)
            (aside / TOKENIZER).write_bytes(tokenizer)
            halves = {name.removeprefix(prefix): value.astype(np.float16) for name, value in weights.items()}
            save_file(halves, aside / WHOLE)
    return folder
