"""Graphs in the user's cache folder: built once, in seconds, under a key that names all that shaped them."""

import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from listenwell import checkpoint
from listenwell.errors import InputError, WeightsError
from listenwell.files import cache_folder, one_at_a_time, recover, sha256, written_whole
from listenwell.progress import progress
from listenwell.runtime.families import FAMILIES, text_config, unknown_family
from listenwell.runtime.gguf import UNPACKED_VERSION
from listenwell.runtime.model_files import ModelFiles, model_files
from listenwell.runtime.names import ADAPTER, ADAPTER_CONFIG, ADDED_TOKENS, SOFT_PROMPT
from listenwell.runtime.onnx import bert
from listenwell.runtime.onnx.bert import WORDS, BertShape, build_bert, build_words
from listenwell.runtime.onnx.decoder import EMBEDDING, OUTPUT, build_decoder
from listenwell.runtime.onnx.graph import BLOCK, GRAPH, PRECISIONS, WEIGHTS, Graph
from listenwell.runtime.onnx.heads import PooledHeads
from listenwell.runtime.onnx.shape import DecoderShape
from listenwell.runtime.onnx.smooth import SAMPLE, Smoothed, sample_tokens
from listenwell.runtime.onnx.tensors import Adapted, Extended, ShiftedGains, Tensors, text_part
from listenwell.runtime.text import Vocabulary

GRAPH_VERSION = 5
"""Part of the cache key: raise it when graphs of the same weights come out differently."""
KIND = "onnx"
_ADAPTER_FILES = (ADAPTER_CONFIG, ADAPTER, ADDED_TOKENS, SOFT_PROMPT, "tokenizer.json")

_SETTLED = 2 * 10**9
"""Nanoseconds. A file that was written just now can change again without a later time of change."""


@dataclass(frozen=True)
class Ingredients:
    """All that shapes a graph."""

    weights: Path
    """A folder in Hugging Face's layout, or a GGUF file."""
    precision: str = "int8"
    """One of PRECISIONS: int8, or fp32 for the same numbers as torch."""
    adapter: Path | None = None
    """A folder with a LoRA adapter in peft's format, and with new tokens and their tokenizer, if any."""
    heads: PooledHeads | None = None
    """Of an encoder: pooling and heads."""

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise InputError(
                f"The precision is {self.precision!r}.", f"Give one of: {', '.join(PRECISIONS)}."
            )

    @property
    def soft_prompt(self) -> Path | None:
        """The file with what can be read and not said, if there is one."""
        file = (self.adapter or self.weights) / SOFT_PROMPT
        return file if file.is_file() else None

    def key(self) -> str:
        """Names weights, adapter, settings and versions."""
        files = list(model_files(self.weights))
        files += [self.soft_prompt] if self.soft_prompt and self.adapter is None else []
        if self.adapter is not None:
            files += [file for name in _ADAPTER_FILES if (file := self.adapter / name).is_file()]
        for file in files:
            if not file.is_file():
                raise WeightsError(
                    f"There is no {file}.", "Name a folder saved with safetensors, or a .gguf file."
                )
        parts: list[Any] = [GRAPH_VERSION, UNPACKED_VERSION, self.precision, SAMPLE]
        parts += [version(package) for package in ("onnx", "onnxruntime")]
        parts += [(file.name, known_sha256(file)) for file in files]
        parts += [self.heads.key()] if self.heads else []
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def graph_folder(ingredients: Ingredients) -> Path:
    """The folder with a model's graph, weights and tokenizer, built now where it is not there or damaged."""
    name = ingredients.weights.stem if ingredients.weights.is_file() else ingredients.weights.name
    folder = cache_folder() / "graphs" / f"{name}-{ingredients.precision}-{ingredients.key()[:16]}"

    def fill(aside: Path) -> None:
        _build(ingredients, aside)

    return _cached(folder, fill)


def cached_graph(name: str, key: str, build: Callable[[Graph], None]) -> Path:
    """The folder with a graph of few weights in float32, built now if it is missing or damaged."""

    def fill(aside: Path) -> None:
        with Graph(aside, "fp32") as graph:
            build(graph)
            graph.save(name, {})

    versions = " ".join(version(package) for package in ("onnx", "onnxruntime"))
    whole_key = hashlib.sha256(f"{key} {versions}".encode()).hexdigest()
    return _cached(cache_folder() / "graphs" / f"{name}-{whole_key[:16]}", fill)


def _cached(folder: Path, fill: Callable[[Path], None]) -> Path:
    """The folder, filled first if it is missing or damaged."""
    if _is_whole(folder):
        return folder
    with one_at_a_time(folder):
        recover(folder)
        if _is_whole(folder):  # another process was quicker
            return folder
        if folder.exists():
            print(f"listenwell: {folder} is damaged. It is made again.", file=sys.stderr)
        with checkpoint.writing(folder, KIND) as aside:
            fill(aside)
    return folder


def _is_whole(folder: Path) -> bool:
    """Whether every file is what was written; one that was not touched since is not read again."""
    try:
        sums = json.loads((folder / checkpoint.MANIFEST).read_text(encoding="utf-8"))["sha256"]
        return {GRAPH, WEIGHTS} <= set(sums) and all(
            known_sha256(folder / name) == digest for name, digest in sums.items()
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _build(ingredients: Ingredients, folder: Path) -> None:
    """Fill a folder: graph, weights, tokenizer."""
    source = ModelFiles.read(ingredients.weights)
    kind = str(text_config(source.config)["model_type"])
    tokenizer = folder / "tokenizer.json"
    tokenizer.write_text(source.tokenizer, encoding="utf-8")
    known, adapter = len(Vocabulary.from_folder(folder)), ingredients.adapter
    if adapter is not None and (adapter / tokenizer.name).is_file():
        shutil.copyfile(adapter / tokenizer.name, tokenizer)
    with Graph(folder, ingredients.precision, bert.BLOCK if kind == "bert" else BLOCK) as graph:
        try:
            if kind in FAMILIES:
                notes = _decoder(graph, ingredients, source, known, Vocabulary.from_folder(folder))
            elif kind in ("bert", WORDS):
                weights = source.weights if adapter is None else Adapted(source.weights, adapter)
                notes = _encoder(graph, source.config, weights, ingredients.heads)
            else:
                raise unknown_family(ingredients.weights, kind)
        except KeyError as error:
            raise WeightsError(
                f"{ingredients.weights} lacks the weight {error}.", "Copy the model again."
            ) from error
        graph.save(kind, notes)


def _decoder(
    graph: Graph, ingredients: Ingredients, source: ModelFiles, known: int, vocabulary: Vocabulary
) -> dict[str, str]:
    shape, adapter = DecoderShape.of(source.config), ingredients.adapter
    weights = source.weights if source.config["model_type"] in FAMILIES else text_part(source.weights)
    rows = np.zeros((0, shape.width), np.float32)
    if adapter is not None:
        weights = Adapted(weights, adapter)
        if (adapter / ADDED_TOKENS).is_file():
            rows = Tensors(adapter / ADDED_TOKENS)["rows"]
    weights = Extended(weights, dict.fromkeys((EMBEDDING, OUTPUT), rows), known)
    if shape.family.shifted_gains:
        weights = ShiftedGains(weights)
    soft_prompt = Tensors(ingredients.soft_prompt)["rows"] if ingredients.soft_prompt else None
    rounded = graph.precision != "fp32"
    with progress("preparing the model", shape.layers * (1 + rounded) + 1, "parts") as advance:
        if rounded:
            weights = Smoothed(shape, weights, sample_tokens(vocabulary)[: shape.positions], advance)
            shape = weights.shape
        build_decoder(graph, shape, weights, advance, soft_prompt)
    return {**shape.notes(), "soft_prompt": str(0 if soft_prompt is None else len(soft_prompt))}


def _encoder(
    graph: Graph, config: Mapping[str, Any], weights: Mapping[str, np.ndarray], heads: PooledHeads | None
) -> dict[str, str]:
    if config["model_type"] == WORDS:
        notes = build_words(graph, weights)
    else:
        shape = BertShape.of(config)
        notes = shape.notes()
        with progress("preparing the encoder", shape.layers, "parts") as advance:
            build_bert(graph, shape, weights, advance)
    if heads is not None:
        heads.build(graph, int(notes["width"]))
    return notes


def known_sha256(path: Path) -> str:
    """The sha256 sum of a file; size, path and time of change say whether the one remembered still holds."""
    resolved = path.resolve()
    status = resolved.stat()
    stamp = [status.st_size, status.st_mtime_ns, status.st_ino]
    name = hashlib.sha256(str(resolved).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    memory = cache_folder() / "sums" / f"{name}.json"
    with suppress(OSError, ValueError):
        if (remembered := json.loads(memory.read_text(encoding="utf-8")))["stamp"] == stamp:
            return str(remembered["sha256"])
    digest = sha256(resolved)
    if time.time_ns() - status.st_mtime_ns > _SETTLED:
        with suppress(InputError), written_whole(memory) as file:  # a full disk is no reason to stop here
            file.write(json.dumps({"stamp": stamp, "sha256": digest}).encode())
    return digest
