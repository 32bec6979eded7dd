"""A checkpoint's encoder on onnxruntime, and the weights beside it as arrays: no torch.

An adapter is merged when the graph is built. A checkpoint that holds all weights has its encoder's written
out in Hugging Face's layout once, into the cache, for the graph to be built from.
"""

import json
import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.errors import CheckpointError, WeightsError
from listenwell.files import cache_folder, one_at_a_time, recover
from listenwell.runtime.names import HEAD_FILE, WHOLE
from listenwell.runtime.weights import find_weights

if TYPE_CHECKING:
    from listenwell.runtime.onnx.encoder import OnnxEncoder

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


def load_checkpoint_encoder(
    saved: Checkpoint,
    base: Path,
    precision: str,
    prefix: str,
    shape: Mapping[str, Any] | None = None,
) -> tuple["OnnxEncoder", Arrays]:
    """The encoder of a checkpoint, and the weights of it that are not the encoder's, in float32.

    Args:
        saved: holds an adapter and heads, or all weights.
        base: the base model's folder.
        precision: "int8", or "fp32" for the same numbers as torch.
        prefix: what the encoder's weights begin with among all, such as "encoder.".
        shape: the encoder's config.json, where it is not the base model's.
    """
    from listenwell.runtime.onnx.encoder import OnnxEncoder

    if WHOLE not in saved.sums:
        return OnnxEncoder.load(base, saved.folder, precision), load_arrays(saved, HEAD_FILE)
    config = (base / CONFIG).read_bytes() if shape is None else json.dumps(dict(shape)).encode()
    weights = load_arrays(saved, WHOLE)
    theirs = {name: value for name, value in weights.items() if name.startswith(prefix)}
    own = {name: value for name, value in weights.items() if name not in theirs}
    folder = _written_out(saved, base, prefix, config, theirs)
    return OnnxEncoder.load(folder, precision=precision), own


def load_arrays(saved: Checkpoint, name: str) -> Arrays:
    """The tensors of one of a checkpoint's files in float32."""
    from safetensors.numpy import load_file

    return {tensor: value.astype(np.float32) for tensor, value in load_file(saved.path(name)).items()}


def check_shapes(saved: Checkpoint, found: Arrays, wanted: Mapping[str, tuple[int, ...]]) -> None:
    """An error if weights are missing, strange, or of another shape."""
    shapes = {name: value.shape for name, value in found.items()}
    if strange := sorted({name for name, _ in shapes.items() ^ dict(wanted).items()}):
        raise CheckpointError(
            f"{saved.folder} lacks or adds the weights {', '.join(strange)}.", "Make it anew."
        )


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
