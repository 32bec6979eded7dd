"""A trained ranker that is asked about dialogues: text in, scores out."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from listenwell.checkpoint import MANIFEST, open_checkpoint
from listenwell.dialogue import Dialogue
from listenwell.errors import CheckpointError
from listenwell.files import hash_files
from listenwell.rankers.config import KIND, PRECISION, RankerConfig
from listenwell.rankers.inputs import Inputs
from listenwell.rankers.onnx_ranker import OnnxRanker, load_onnx_ranker, runs_on_onnx_ranker
from listenwell.runtime.engines import ONNX, TORCH, choose_engine
from listenwell.runtime.weights import HUB_FILES, find_weights
from listenwell.serialization import build

if TYPE_CHECKING:
    from listenwell.rankers.base import RankingModel


class Scorer(Protocol):
    """Scores replies: a ranker, an ensemble or a generator."""

    name: str
    key: str
    """sha256 over weights, settings and the engine where it is not torch; a GPU and a CPU share a key."""

    def score(self, contexts: Sequence[Dialogue], replies: Sequence[str]) -> np.ndarray:
        """Every reply for every context: (contexts, replies) float32, the higher the better."""
        ...


class RankerScorer:
    """One trained ranker of `rankers.RANKERS`, with its inputs; `key` names its weights and settings."""

    def __init__(self, ranker: "RankingModel | OnnxRanker", inputs: Inputs, name: str, key: str) -> None:
        self.ranker, self.inputs, self.name, self.key = ranker, inputs, name, key

    @classmethod
    def load(
        cls, folder: Path, weights: Path | None = None, engine: str = TORCH, precision: str = PRECISION
    ) -> "RankerScorer":
        """From its checkpoint, as `Ranker.from_pretrained` says; with torch on a GPU where there is one."""
        config = build(RankerConfig, open_checkpoint(folder, KIND).config())
        key = checkpoint_key(folder)
        if weights is not None:  # the checkpoint's own sums say nothing of another encoder
            encoder = find_weights(config.base, weights)
            key = sha256(f"{key} {hash_files(encoder / name for name in HUB_FILES)}".encode()).hexdigest()
        fits = engine != TORCH and runs_on_onnx_ranker(config, weights)
        ranker: RankingModel | OnnxRanker
        if choose_engine(engine, f"The ranker {config.model}", fits) == ONNX:
            ranker, inputs = load_onnx_ranker(folder, weights, precision)
            key = sha256(f"{key} {ONNX} {precision}".encode()).hexdigest()
        else:
            import torch

            from listenwell.rankers.model import load_ranker

            ranker, inputs = load_ranker(folder, weights)
            ranker = ranker.cuda() if torch.cuda.is_available() else ranker
        return cls(ranker, inputs, config.model, key)

    @property
    def gives_vectors(self) -> bool:
        """Whether replies can be searched by inner product."""
        return bool(self.ranker.gives_vectors)

    @property
    def width(self) -> int:
        """Of the vectors."""
        return int(self.ranker.vector_width)

    def score(self, contexts: Sequence[Dialogue], replies: Sequence[str]) -> np.ndarray:
        """(contexts, replies) float32"""
        inputs = self.inputs
        return self.ranker.score_texts(
            inputs.contexts(contexts), inputs.personas(contexts), inputs.replies(replies)
        )

    def reply_vectors(
        self, replies: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """(replies, width) float32; their inner products with `context_vectors` are first scores."""
        self._need_vectors()
        return self.ranker.reply_vectors(self.inputs.replies(replies), advance)

    def context_vectors(self, contexts: Sequence[Dialogue]) -> np.ndarray:
        """(contexts, width) float32"""
        self._need_vectors()
        return self.ranker.context_vectors(self.inputs.contexts(contexts), self.inputs.personas(contexts))

    def _need_vectors(self) -> None:
        if not self.gives_vectors:
            raise CheckpointError(
                f"The ranker {self.name} gives no vectors for large pools.",
                "Use a bi-encoder, or CoBERT trained with cobert.vectors.",
            )


def checkpoint_key(folder: Path) -> str:
    """A name for a checkpoint's contents: its manifest holds the sum of every file."""
    open_checkpoint(folder)
    return hash_files([folder / MANIFEST])
