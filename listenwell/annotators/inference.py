"""Running an ear over many texts: batches of like length, each text once, whatever is asked of it.

Arrays go in and come out: which engine an ear runs on is its own affair. Imports no torch.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from listenwell.annotators.config import ClassifierConfig
from listenwell.annotators.views import Input

CPU_TOKENS, GPU_TOKENS = 512, 65_536
"""Tokens in a batch, padding included; on a CPU small batches stay in its caches: 512 was the fastest."""


@dataclass(frozen=True)
class Batch:
    """Texts as the rows of arrays, a text a row."""

    tokens: np.ndarray  # (rows, length) int64, like the next three
    types: np.ndarray  # 1 for the listener's words
    positions: np.ndarray  # the place inside the text
    segments: np.ndarray  # 1 where the text is, 0 in padding
    owners: np.ndarray  # (rows * length,) int64: the row of each place; padding's is the number of rows
    starts: np.ndarray  # (rows,) int64: the flat place of each text's first token
    marked: tuple[tuple[int, int, int], ...]
    """Rows whose words are to be marked, each with its first word and the place after its last."""


class ClassifierBackend(Protocol):
    """An ear on some engine: `model.MultiTaskClassifier` on torch, `light.OnnxClassifier` on onnxruntime."""

    config: ClassifierConfig

    @property
    def width(self) -> int:
        """Of its encoder's vectors."""
        ...

    @property
    def tokens_at_once(self) -> int:
        """How many tokens of a batch, padding included, it reads fastest."""
        ...

    def listen(self, batch: Batch) -> tuple[np.ndarray, list[np.ndarray]]:
        """The vector of each text (rows, width) float32; for each marked one how likely its words show each
        marked head's level (words, marked heads)."""
        ...

    def answers(self, pooled: np.ndarray, head: str) -> np.ndarray:
        """Scores of a head's labels for such vectors: (texts, labels) float32."""
        ...


class ClassifierOutput:
    """What an ear made of some texts; heads are asked afterwards, which costs next to nothing."""

    def __init__(
        self, classifier: ClassifierBackend, pooled: np.ndarray, words: dict[int, np.ndarray]
    ) -> None:
        self._classifier, self._words = classifier, words
        self.pooled = pooled
        """The encoder's vector of each text: (texts, width) float32."""

    def logits(self, head: str, places: Sequence[int] | None = None) -> np.ndarray:
        """Scores of a head's labels (places, labels), for some of the texts or all."""
        chosen = self.pooled if places is None else self.pooled[np.asarray(places, np.int64)]
        return self._classifier.answers(chosen, head)

    def words(self, place: int) -> np.ndarray:
        """How likely each word piece of the last turn shows each marked head's level: (pieces, heads)."""
        return self._words[place]


def hear(
    classifier: ClassifierBackend,
    inputs: Sequence[Input],
    marked: Collection[int] = (),
    advance: Callable[[int], None] | None = None,
) -> ClassifierOutput:
    """Run the encoder over every input.

    Args:
        ear: the encoder and its heads, in eval mode, wherever its weights are.
        inputs: texts as tokens.
        marked: numbers of the inputs whose words are to be marked.
        advance: is told how many inputs were done, batch by batch.
    """
    pooled = np.zeros((len(inputs), classifier.width), np.float32)
    words: dict[int, np.ndarray] = {}
    for places in like_lengths([len(given) for given in inputs], classifier.tokens_at_once):
        rows = [row for row, place in enumerate(places) if place in marked]
        pooled[places], found = classifier.listen(_laid_out([inputs[place] for place in places], rows))
        words |= {places[row]: probabilities for row, probabilities in zip(rows, found, strict=True)}
        if advance:
            advance(len(places))
    return ClassifierOutput(classifier, pooled, words)


def like_lengths(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Numbers of texts of like length, at most `tokens` tokens with padding; the longest come first.

    The longest first, so that memory that does not suffice is seen at once.
    """
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _laid_out(inputs: Sequence[Input], marked: Sequence[int]) -> Batch:
    """Texts as rows, filled up to the longest."""
    rows, width = len(inputs), max(map(len, inputs))
    tokens, types = np.zeros((rows, width), np.int64), np.zeros((rows, width), np.int64)
    segments, owners = np.zeros((rows, width), np.int64), np.full((rows, width), rows, np.int64)
    for row, given in enumerate(inputs):
        tokens[row, : len(given)], types[row, : len(given)] = given.tokens, given.types
        segments[row, : len(given)], owners[row, : len(given)] = 1, row
    return Batch(
        tokens,
        types,
        np.broadcast_to(np.arange(width), (rows, width)).copy(),
        segments,
        owners.reshape(-1),
        np.arange(rows) * width,
        tuple((row, *inputs[row].last) for row in marked),
    )
