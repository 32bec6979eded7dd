"""The trained half of crisis detection: softmax regression over hashed words and letters, in numpy alone.

A sentence, as `normal` writes it, becomes the runs of one to three of its words and of three to five letters
of each word; a hash sends each to one of a fixed number of weights (Weinberger et al. 2009). It hears what no
pattern spells out, and is asked to confirm what patterns only suspect.
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
"""Nothing, something overcome or denied, and each kind of crisis."""


@dataclass(frozen=True)
class HeadConfig(Record):
    """What the head is made of."""

    labels: tuple[str, ...] = LABELS
    buckets: int = 1 << 13
    words: int = 3
    """The longest run of words."""
    letters: tuple[int, int] = (3, 5)
    """The shortest and the longest run of letters in a word."""


class Features:
    """Sentences to numbers of weights."""

    def __init__(self, config: HeadConfig) -> None:
        self._config = config
        self._of_word = lru_cache(maxsize=20_000)(self._letters)

    def of(self, sentence: str) -> np.ndarray:
        """Each feature's number once, sorted; of text as `normal` writes it."""
        words, found = sentence.split(), set[int]()
        for place in range(len(words)):
            found.update(self._of_word(words[place]))
            for length in range(1, min(self._config.words, len(words) - place) + 1):
                found.add(self._number(" ".join(words[place : place + length])))
        return np.array(sorted(found), np.int64)

    def _letters(self, word: str) -> tuple[int, ...]:
        low, high = self._config.letters
        marked = f"<{word}>"
        return tuple(
            self._number(f"#{marked[start : start + length]}")
            for length in range(low, high + 1)
            for start in range(len(marked) - length + 1)
        )

    def _number(self, feature: str) -> int:
        """The same on every machine; Python's own hash differs by process."""
        return zlib.crc32(feature.encode("utf-8", "surrogatepass")) % self._config.buckets


class Head:
    """Says how likely a sentence is of each label.

    Args:
        config: labels and features.
        weights: (buckets + 1, labels); the last row is the bias.
    """

    def __init__(self, config: HeadConfig, weights: np.ndarray) -> None:
        if weights.shape != (wanted := (config.buckets + 1, len(config.labels))):
            problem = f"Weights of the shape {weights.shape} are not those of a head, {wanted}."
            raise CheckpointError(problem, "Name a folder that listenwell wrote.")
        self.config, self.features = config, Features(config)
        # A view whose rows do not lie one after the other would be saved as if they did.
        self.stored = np.ascontiguousarray(weights, np.float16)
        """In 16 bits, as they are saved; computed with in 32, so that saving changes no answer."""
        self._weights = self.stored.astype(np.float32)

    @classmethod
    def load(cls, folder: Path | None = None) -> "Head":
        """Open a checkpoint, every file of it checked against its sum; without one, the shipped one."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        saved = open_checkpoint(folder or SHIPPED, KIND)
        try:
            return cls(HeadConfig.from_dict(saved.config()), load_file(saved.path(WEIGHTS))["weights"])
        except (OSError, KeyError, ValueError, SafetensorError, InputError) as error:
            problem = f"{saved.folder} holds no crisis head that can be read: {error}."
            raise CheckpointError(problem, "Name a folder that listenwell wrote.") from error

    def save(self, folder: Path) -> None:
        """Write config.json and model.safetensors into a checkpoint's folder."""
        from safetensors.numpy import save_file

        # All fields, also those at their defaults: a later default must not change a saved head.
        (folder / CONFIG).write_text(dumps(asdict(self.config)) + "\n", encoding="utf-8")
        save_file({"weights": self.stored}, folder / WEIGHTS)

    def probabilities(self, sentences: Sequence[str]) -> np.ndarray:
        """(sentences, labels), each row summing to 1; of text as `normal` writes it."""
        logits = (
            np.stack([self._logits(sentence) for sentence in sentences]) if sentences else np.zeros((0, 1))
        )
        return softmax(logits)

    def _logits(self, sentence: str) -> np.ndarray:
        found = self.features.of(sentence)
        length = np.sqrt(np.float32(max(1, len(found))))
        total: np.ndarray = self._weights[found].sum(axis=0) / length + self._weights[-1]
        return total


def softmax(logits: np.ndarray) -> np.ndarray:
    """Over the last axis."""
    shares: np.ndarray = np.exp(logits - logits.max(axis=-1, keepdims=True)) if logits.size else logits
    return shares / shares.sum(axis=-1, keepdims=True) if logits.size else logits
