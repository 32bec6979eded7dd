"""How likely replies were at the start of a run: worked out once, kept in its folder."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from listenwell.files import hash_files, written_whole
from listenwell.training.pair_batch import PairExample

REFERENCES = "references.safetensors"
_KEY = "key"


def references_key(weights: Iterable[Path], pairs: Iterable[PairExample], device: str) -> str:
    """A name for all that shapes the references: the weights, every token that is read, and what computes."""
    total = hashlib.sha256(f"{hash_files(weights)} {device}\n".encode())
    for pair in pairs:
        for sequence in (pair.chosen, pair.rejected):
            total.update(f"{len(sequence)} {len(sequence) - sequence.weight}\n".encode())
            total.update(sequence.tokens.tobytes())
    return total.hexdigest()


def load_references(file: Path, key: str) -> Mapping[str, np.ndarray] | None:
    """What `save_references` kept under this key; None where that is not there."""
    from safetensors import SafetensorError, safe_open

    if not file.is_file():
        return None
    try:
        with safe_open(str(file), framework="np") as kept:
            if (kept.metadata() or {}).get(_KEY) != key:
                return None
            return {name: kept.get_tensor(name) for name in kept.keys()}  # noqa: SIM118
    except (OSError, SafetensorError):  # damaged: it is made anew
        return None


def save_references(file: Path, key: str, references: Mapping[str, np.ndarray]) -> None:
    """Keep log-likelihoods, whole or not at all: each (pairs, 2) float32."""
    from safetensors.numpy import save

    with written_whole(file) as out:
        out.write(save(dict(references), {_KEY: key}))
