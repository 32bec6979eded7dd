"""The crisis classifier: softmax regression over hashed word and character n-grams, in numpy.

The features of a normalized sentence are its word n-grams (1 to 3) and the character n-grams of its words
(3 to 5), hashed to a fixed number of weights (Weinberger et al. 2009). It finds what no pattern covers, and
confirms weak patterns.
"""

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from listenwell.checkpoint import open_checkpoint
from listenwell.errors import CheckpointError, InputError
from listenwell.safety.patterns.base import KINDS
from listenwell.serialization import Record, dumps

SHIPPED = Path(__file__).parents[1] / "pretrained" / "crisis"
KIND = "crisis"
"""The kind of its checkpoints."""
CONFIG, WEIGHTS = "config.json", "model.safetensors"
NONE, PAST = "none", "past"
LABELS = (NONE, PAST, *KINDS)
"""No crisis, one that is past or denied, and each kind of crisis."""


@dataclass(frozen=True)
class HeadConfig(Record):
    """Labels and features of the classifier."""

    labels: tuple[str, ...] = LABELS
    buckets: int = 1 << 13
    words: int = 3
    """The longest word n-gram."""
    letters: tuple[int, int] = (3, 5)
    """The shortest and the longest character n-gram."""


class Features:
    """Maps sentences to indices of weights."""

    def __init__(self, config: HeadConfig) -> None:
        self._config = config
        self._of_word = lru_cache(maxsize=20_000)(self._letters)

    def of(self, sentence: str) -> np.ndarray:
        """The distinct feature indices of a normalized sentence, sorted."""
        words, indices = sentence.split(), set[int]()
        for start in range(len(words)):
            indices.update(self._of_word(words[start]))
            for length in range(1, min(self._config.words, len(words) - start) + 1):
                indices.add(self._index(" ".join(words[start : start + length])))
        return np.array(sorted(indices), np.int64)

    def _letters(self, word: str) -> tuple[int, ...]:
        low, high = self._config.letters
        marked = f"<{word}>"
        return tuple(
            self._index(f"#{marked[start : start + length]}")
            for length in range(low, high + 1)
            for start in range(len(marked) - length + 1)
        )

    def _index(self, feature: str) -> int:
        """A hash that is the same in every process, unlike Python's own."""
        return zlib.crc32(feature.encode("utf-8", "surrogatepass")) % self._config.buckets


class Head:
    """Predicts the probability of each label for a sentence.

    Args:
        config: labels and features.
        weights: (buckets + 1, labels); the last row is the bias.
    """

    def __init__(self, config: HeadConfig, weights: np.ndarray) -> None:
        if weights.shape != (expected := (config.buckets + 1, len(config.labels))):
            problem = f"The weights have the shape {weights.shape} instead of {expected}."
            raise CheckpointError(problem, "Name a folder that listenwell wrote.")
        self.config, self.features = config, Features(config)
        # safetensors would save a non-contiguous view in the wrong order.
        self.stored = np.ascontiguousarray(weights, np.float16)
        """In 16 bits, as saved; computations use them in 32 bits, so that saving changes no prediction."""
        self._weights = self.stored.astype(np.float32)

    @classmethod
    def load(cls, folder: Path | None = None) -> "Head":
        """Open a checkpoint with verified checksums; the shipped one by default."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        saved = open_checkpoint(folder or SHIPPED, KIND)
        try:
            return cls(HeadConfig.from_dict(saved.config()), load_file(saved.path(WEIGHTS))["weights"])
        except (OSError, KeyError, ValueError, SafetensorError, InputError) as error:
            problem = f"{saved.folder} holds no readable crisis classifier: {error}."
            raise CheckpointError(problem, "Name a folder that listenwell wrote.") from error

    def save(self, folder: Path) -> None:
        """Write config.json and model.safetensors into a checkpoint's folder."""
        from safetensors.numpy import save_file

        # All fields, also defaults: a later default must not change a saved model.
        (folder / CONFIG).write_text(dumps(asdict(self.config)) + "\n", encoding="utf-8")
        save_file({"weights": self.stored}, folder / WEIGHTS)

    def probabilities(self, sentences: Sequence[str]) -> np.ndarray:
        """Probabilities (sentences, labels) of normalized sentences."""
        logits = (
            np.stack([self._logits(sentence) for sentence in sentences]) if sentences else np.zeros((0, 1))
        )
        return softmax(logits)

    def _logits(self, sentence: str) -> np.ndarray:
        indices = self.features.of(sentence)
        length = np.sqrt(np.float32(max(1, len(indices))))
        total: np.ndarray = self._weights[indices].sum(axis=0) / length + self._weights[-1]
        return total


def softmax(logits: np.ndarray) -> np.ndarray:
    """Over the last axis."""
    shares: np.ndarray = np.exp(logits - logits.max(axis=-1, keepdims=True)) if logits.size else logits
    return shares / shares.sum(axis=-1, keepdims=True) if logits.size else logits
