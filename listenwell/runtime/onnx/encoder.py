"""An encoder on onnxruntime: tokens in, states, vectors and head scores out. Imports no torch."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from listenwell.runtime.onnx.cache import Ingredients, graph_folder
from listenwell.runtime.onnx.heads import POOLED, PooledHeads
from listenwell.runtime.onnx.session import OnnxModel
from listenwell.runtime.text import CPU_TOKENS, TokenBatch, TokenizedText, like_lengths

STATES = "states"
"""The output with the states of the last layer: (rows, length, width)."""
PADDED = 0.25
"""Share of padding above which a batch is packed into one row; below, attention over rows is faster."""


class OnnxEncoder(OnnxModel):
    """A BERT, or word vectors alone, with pooling and heads in its graph. Threads may share it."""

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        super().__init__(folder, threads)
        self.width = int(self._notes["width"])
        self.positions = int(self._notes["positions"])
        """The most tokens a text may have."""
        self._by_token = {output.name for output in self._session.get_outputs() if output.shape[0] == "rows"}

    @classmethod
    def load(
        cls,
        weights: Path,
        adapter: Path | None = None,
        precision: str = "int8",
        threads: int | None = None,
        heads: PooledHeads | None = None,
    ) -> Self:
        """Load an encoder; its graph is built where the cache has none. By default it has mean pooling."""
        return cls(graph_folder(Ingredients(weights, precision, adapter, heads or PooledHeads())), threads)

    def run(self, batch: TokenBatch, outputs: Sequence[str]) -> list[np.ndarray]:
        """Run one batch, its texts numbered from 1 without gaps; outputs are STATES, POOLED or a head's name.

        For each output float32: (texts, n), or by token (rows, length, n), meaningless in padding.
        """
        mask = batch.mask
        if mask.mean() > 1 - PADDED:
            return self._run(batch, outputs)
        unpacked = []
        for name, values in zip(outputs, self._run(batch.packed(), outputs), strict=True):
            if name not in self._by_token:
                unpacked.append(values)
                continue
            rows = np.zeros((*mask.shape, values.shape[2]), np.float32)
            rows[mask] = values[0]
            unpacked.append(rows)
        return unpacked

    def batches(
        self,
        texts: Sequence[TokenizedText],
        outputs: Sequence[str],
        advance: Callable[[int], None] | None = None,
    ) -> Iterator[tuple[list[int], list[np.ndarray]]]:
        """Run any number of texts, none of them empty, in batches of at most CPU_TOKENS tokens.

        Yields the indices of a batch's texts, and its outputs.
        """
        for indices in like_lengths([len(text) for text in texts], CPU_TOKENS):
            yield indices, self.run(TokenBatch.padded([texts[index] for index in indices]), outputs)
            if advance:
                advance(len(indices))

    def pooled(
        self,
        texts: Sequence[TokenizedText],
        output: str = POOLED,
        advance: Callable[[int], None] | None = None,
    ) -> np.ndarray:
        """One output by text for all texts, in their order: (texts, n) float32; zeros for an empty text."""
        filled = [index for index, text in enumerate(texts) if len(text)]
        pooled: np.ndarray | None = None
        for indices, (values,) in self.batches([texts[index] for index in filled], [output], advance):
            if pooled is None:
                pooled = np.zeros((len(texts), values.shape[1]), np.float32)
            pooled[[filled[index] for index in indices]] = values
        return np.zeros((len(texts), self.width), np.float32) if pooled is None else pooled

    def token_states(self, texts: Sequence[TokenizedText]) -> Iterator[tuple[int, np.ndarray]]:
        """Indices of texts, each with the states of its tokens (tokens, width), in any order."""
        for indices, (states,) in self.batches(texts, [STATES]):
            for index, rows in zip(indices, states, strict=True):
                yield index, rows[: len(texts[index])]

    def _run(self, batch: TokenBatch, outputs: Sequence[str]) -> list[np.ndarray]:
        arrays = {
            "tokens": batch.tokens,
            "types": batch.types,
            "positions": batch.positions,
            "segments": batch.segments,
        }
        feeds = {name: np.ascontiguousarray(array, np.int64) for name, array in arrays.items()}
        values: list[np.ndarray] = self._session.run(list(outputs), feeds)
        return values
