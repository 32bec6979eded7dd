"""A small text classifier after fastText (Joulin et al. 2017): a bag of vectors, then a linear softmax.

A text is the mean of the vectors of its words and of its word pairs; pairs share a fixed number of vectors
(their buckets), to which a hash sends them. Reading needs numpy alone. Rashkin et al. (2019, §4.3) put such a
classifier's first label before the dialogue: an emotion in EmoPrepend-1, a topic in TopicPrepend-1.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from listenwell.checkpoint import open_checkpoint
from listenwell.dialogue import Scored
from listenwell.errors import CheckpointError, InputError
from listenwell.metrics import words
from listenwell.serialization import Record

SHIPPED = Path(__file__).parents[1] / "pretrained" / "fasttext_emotion"
KIND = "fasttext"
"""The kind of its checkpoints."""
CONFIG, WEIGHTS = "config.json", "model.safetensors"
END = 0
"""The feature that every text has, as fastText's end of line: no text is empty."""
_TEXTS_AT_ONCE = 256


@dataclass(frozen=True)
class FastTextConfig(Record):
    """Settings, labels and vocabulary of a classifier."""

    reads: str
    """What it predicts, such as "situation emotion"."""
    labels: tuple[str, ...]
    dimensions: int
    """Of a feature's vector."""
    buckets: int
    """Vectors that the word pairs share; 0 reads words alone."""
    words: tuple[str, ...]
    """The words that have vectors of their own, in the order of the vectors."""

    @property
    def features(self) -> int:
        """How many vectors there are: of the text's end, of the words, of the pairs."""
        return 1 + len(self.words) + self.buckets


def common_words(texts: Iterable[str], least: int) -> tuple[str, ...]:
    """Words that occur at least so often, the most frequent first, equals by their letters."""
    counts = Counter(word for text in texts for word in words(text))
    kept = [word for word, count in counts.items() if count >= least]
    return tuple(sorted(kept, key=lambda word: (-counts[word], word)))


class Features:
    """Turns texts into feature numbers."""

    def __init__(self, config: FastTextConfig) -> None:
        self._numbers = {word: number for number, word in enumerate(config.words, start=1)}
        self._buckets, self._first_bucket = config.buckets, 1 + len(config.words)

    def of(self, text: str) -> np.ndarray:
        """The end's number, then each known word's and its pair's with the known word before it; int32."""
        features, before = [END], ""
        for word in words(text):
            if number := self._numbers.get(word):
                features.append(number)
                if before and self._buckets:
                    # Not Python's own hash, which differs by process.
                    pair_hash = zlib.crc32(f"{before} {word}".encode("utf-8", "surrogatepass"))
                    features.append(self._first_bucket + pair_hash % self._buckets)
                before = word
        return np.array(features, np.int32)


class FastTextClassifier:
    """The classifier: vectors (features, dimensions), and the linear layer's matrix and bias by label."""

    def __init__(
        self, config: FastTextConfig, vectors: np.ndarray, matrix: np.ndarray, bias: np.ndarray
    ) -> None:
        shapes = [(config.features, config.dimensions), (len(config.labels), config.dimensions)]
        if [vectors.shape, matrix.shape, bias.shape] != [*shapes, (len(config.labels),)]:
            raise CheckpointError(
                f"Vectors of the shapes {vectors.shape}, {matrix.shape} and {bias.shape} are not those of "
                f"{config.features} features and {len(config.labels)} labels.",
                "Name a folder that listenwell wrote.",
            )
        self.config, self.features = config, Features(config)
        self.weights = {
            name: np.ascontiguousarray(array, np.float16)
            for name, array in (("vectors", vectors), ("matrix", matrix), ("bias", bias))
        }
        """In 16 bits, as they are stored; computed with in 32, so that saving changes no answer."""
        self._vectors, self._matrix, self._bias = (
            array.astype(np.float32) for array in self.weights.values()
        )

    @classmethod
    def load(cls, folder: Path | None = None) -> "FastTextClassifier":
        """Open a checkpoint, every file of it checked against its sum; without one, the shipped emotions."""
        return cls.read(open_checkpoint(folder or SHIPPED, KIND).folder)

    @classmethod
    def read(cls, folder: Path) -> "FastTextClassifier":
        """Read the two files that `save` wrote."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            config = FastTextConfig.from_json((folder / CONFIG).read_bytes())
            arrays = load_file(folder / WEIGHTS)
            return cls(config, arrays["vectors"], arrays["matrix"], arrays["bias"])
        except (OSError, KeyError, SafetensorError, InputError) as error:
            raise CheckpointError(
                f"{folder} holds no fastText classifier that can be read: {error}.",
                "Name a folder that listenwell wrote.",
            ) from error

    def save(self, folder: Path) -> None:
        """Write config.json and model.safetensors into a checkpoint's folder."""
        from safetensors.numpy import save_file

        (folder / CONFIG).write_text(self.config.to_json() + "\n", encoding="utf-8")
        save_file(self.weights, folder / WEIGHTS)

    def scores(self, texts: Sequence[str]) -> list[tuple[Scored, ...]]:
        """For each text every label with its probability, the most likely first."""
        probabilities = self.probabilities([self.features.of(text) for text in texts])
        orders = np.argsort(-probabilities, axis=1, kind="stable")
        labels = self.config.labels
        return [
            tuple(Scored(labels[number], float(row[number])) for number in order)
            for row, order in zip(probabilities, orders, strict=True)
        ]

    def label(self, text: str) -> str:
        """The most likely label of a text."""
        return self.scores([text])[0][0].label

    def probabilities(self, features: Sequence[np.ndarray]) -> np.ndarray:
        """The labels' probabilities (texts, labels), from the features of each text."""
        parts = [
            self._batch_probabilities(features[begin : begin + _TEXTS_AT_ONCE])
            for begin in range(0, len(features), _TEXTS_AT_ONCE)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.config.labels)), np.float32)

    def _batch_probabilities(self, features: Sequence[np.ndarray]) -> np.ndarray:
        """softmax(B A x), with x the mean over a text's features (Joulin et al. 2017, §2)."""
        lengths = np.array([len(text) for text in features])
        starts = np.cumsum(lengths) - lengths
        sums = np.add.reduceat(self._vectors[np.concatenate(features)], starts)  # every text has END
        logits = sums / lengths[:, None].astype(np.float32) @ self._matrix.T + self._bias
        shares: np.ndarray = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return shares
