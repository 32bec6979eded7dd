"""Texts to vectors: a BERT-like sentence encoder such as all-MiniLM-L6-v2 (Reimers & Gurevych 2019).

encoder = SentenceEncoder.load()
encoder.encode(["My dog died.", "I lost my puppy."])
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from listenwell.runtime.engines import ONNX, choose_engine
from listenwell.runtime.onnx.checkpoint_encoder import base_folder, runs_on_onnx
from listenwell.runtime.text import CPU_TOKENS, TokenBatch, TokenizedText, Vocabulary, like_lengths

if TYPE_CHECKING:
    from listenwell.runtime.onnx.encoder import OnnxEncoder

ENCODER = "all-minilm-l6-v2"


@dataclass(frozen=True)
class Tokens:
    """A text as tokens, all of one type."""

    tokens: np.ndarray

    @property
    def types(self) -> np.ndarray:
        """Zeros."""
        return np.zeros_like(self.tokens)

    def __len__(self) -> int:
        return len(self.tokens)


class SentenceEncoder:
    """Encodes texts on the CPU, in batches of similar length with a token budget. Threads may share it.

    What a text has beyond `limit` tokens is cut off.
    """

    def __init__(self, backend: "OnnxEncoder | _TorchBackend", vocabulary: Vocabulary, limit: int) -> None:
        self._backend, self._vocabulary = backend, vocabulary
        self._limit = min(limit, backend.positions)
        self._begin, self._end = vocabulary.special("[CLS]"), vocabulary.special("[SEP]")
        self.width = backend.width

    @classmethod
    def load(
        cls,
        base: str = ENCODER,
        folder: Path | None = None,
        engine: str = "auto",
        precision: str = "int8",
        limit: int = 128,
    ) -> "SentenceEncoder":
        """Load an encoder.

        Args:
            base: a name of `weights.BASE_MODELS`.
            folder: the encoder's own folder, where it is not the installed one.
            engine: "onnx", "torch", or "auto": onnxruntime where it is installed.
            precision: of onnx, "int8" or "fp32"; torch always runs in float32.
            limit: the most tokens of a text.
        """
        weights = base_folder(base, folder)
        chosen = choose_engine(engine, f"The encoder {base}", runs_on_onnx(weights))
        if chosen == ONNX:
            from listenwell.runtime.onnx.encoder import OnnxEncoder

            encoder = OnnxEncoder.load(weights, precision=precision)
            return cls(encoder, encoder.vocabulary, limit)
        return cls(_TorchBackend(base, weights), Vocabulary.from_folder(weights), limit)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """The mean over a text's token states, normalized to length 1: (texts, width) float32."""
        means = self._backend.pooled([self._tokens(ids) for ids in self._vocabulary.encode_many(texts)])
        return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True))

    def encode_words(
        self, texts: Sequence[Sequence[str]], advance: Callable[[int], None] = lambda count: None
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Encode texts that are split into words.

        Returns the texts' vectors as in `encode`, and for each text the mean state of each word.
        """
        encodings = self._vocabulary.encode_words(texts)
        inputs = [self._tokens(ids) for ids, _ in encodings]
        sentences = np.zeros((len(texts), self.width), np.float32)
        words: list[np.ndarray] = [np.zeros((0, self.width), np.float32)] * len(texts)
        for index, states in self._backend.token_states(inputs):
            mean = states.mean(axis=0)
            sentences[index] = mean / (float(np.linalg.norm(mean)) or 1.0)
            owners = np.array(encodings[index][1][: len(states) - 2], np.int64)
            inner = states[1:-1]
            if len(owners):
                words[index] = np.stack([inner[owners == owner].mean(axis=0) for owner in np.unique(owners)])
            advance(1)
        return sentences, words

    def _tokens(self, ids: Sequence[int]) -> Tokens:
        return Tokens(np.array([self._begin, *ids[: self._limit - 2], self._end], np.int64))


class _TorchBackend:
    """What `OnnxEncoder` does, on torch."""

    def __init__(self, base: str, folder: Path) -> None:
        from listenwell.runtime.encoder import load_encoder

        model, _ = load_encoder(base, folder)
        self._model = model.eval()
        self.width = int(model.config.hidden_size)
        self.positions = int(model.config.max_position_embeddings)

    def pooled(self, texts: Sequence[TokenizedText]) -> np.ndarray:
        means = np.zeros((len(texts), self.width), np.float32)
        for index, states in self.token_states(texts):
            means[index] = states.mean(axis=0)
        return means

    def token_states(self, texts: Sequence[TokenizedText]) -> Iterator[tuple[int, np.ndarray]]:
        import torch

        for indices in like_lengths([len(text) for text in texts], CPU_TOKENS):
            batch = TokenBatch.padded([texts[index] for index in indices])
            inputs = {"input_ids": batch.tokens, "attention_mask": batch.mask.astype(np.int64)}
            with torch.inference_mode():
                output = self._model(**{name: torch.from_numpy(array) for name, array in inputs.items()})
            for index, states in zip(indices, output.last_hidden_state.numpy(), strict=True):
                yield index, states[: len(texts[index])]
