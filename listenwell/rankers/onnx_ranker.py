"""Rankers without torch: the body on onnxruntime, matching in numpy; the same scores as `bi` and `cobert`.

Nothing depends on padding, so a text's states are an array of their own: (words, width), without words (0,
width). Replies are matched in groups of like length.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from listenwell.annotators.inference import CPU_TOKENS, like_lengths
from listenwell.checkpoint import open_checkpoint
from listenwell.rankers.config import KIND, PARTS, PRECISION, RankerConfig
from listenwell.rankers.inputs import Inputs, Text
from listenwell.rankers.onnx_backbones import Backbone, load_backbone
from listenwell.rankers.onnx_cross import OnnxCrossEncoder
from listenwell.runtime.onnx.checkpoint_encoder import Arrays, base_folder, check_shapes, runs_on_onnx
from listenwell.runtime.products import product
from listenwell.runtime.text import Vocabulary
from listenwell.serialization import build

States = list[np.ndarray]
"""For each text (words, width) float32."""
_REPLY_TOKENS = 1024
"""Words of replies, padding included, that are matched at once; some ten MB with a long context."""


class OnnxRanker(ABC):
    """A body that makes states of words, and a way to match them; several threads may use it at once.

    Args:
        config: what it is made of.
        body: makes states.
        weights: the ranker's own, by the names of a checkpoint.
    """

    reads_pairs = False
    """Whether persona, context and reply are read as one text."""

    def __init__(self, config: RankerConfig, body: Backbone, weights: Arrays) -> None:
        self.config, self.body, self.weights = config, body, weights
        self.vector_width = body.width

    @property
    @abstractmethod
    def gives_vectors(self) -> bool:
        """Whether `vectors` and `asked` are trained: then replies can be searched by inner product."""

    @classmethod
    @abstractmethod
    def shapes(cls, config: RankerConfig, width: int) -> dict[str, tuple[int, ...]]:
        """The weights that such a ranker has beside its body's."""

    @abstractmethod
    def match(self, context: States, persona: States | None, replies: States) -> np.ndarray:
        """Scores of every reply for every context: (contexts, replies) float32.

        Args:
            context: a text each.
            persona: of who replies, as many as contexts; None where nobody has one.
            replies: a text each.
        """

    @abstractmethod
    def vectors(self, replies: States) -> np.ndarray:
        """(replies, width); their inner product with `asked` is a first score."""

    @abstractmethod
    def asked(self, context: States, persona: States | None) -> np.ndarray:
        """(contexts, width)"""

    def states(self, texts: Sequence[Text], advance: Callable[[int], None] | None = None) -> States:
        """What the body makes of texts, in the order given; equal texts are read once.

        Args:
            texts: contexts, personas or replies.
            advance: is told how many texts were done, batch by batch.
        """
        keys = [text.tokens.tobytes() + text.types.tobytes() for text in texts]
        different = {key: text for key, text in zip(keys, texts, strict=True) if len(text)}
        found = dict.fromkeys(keys, np.zeros((0, self.body.width), np.float32))
        names = list(different)
        for batch in like_lengths([len(text) for text in different.values()], CPU_TOKENS):
            some = [different[names[number]] for number in batch]
            for number, text, values in zip(batch, some, self.body(some), strict=True):
                found[names[number]] = values[: len(text)]
            if advance:
                advance(len(batch))
        if advance:
            advance(len(texts) - len(different))
        return [found[key] for key in keys]

    def score_texts(
        self, contexts: Sequence[Text], personas: Sequence[Text], replies: Sequence[Text]
    ) -> np.ndarray:
        """Every reply for every context: (contexts, replies) float32."""
        whose = personas if any(map(len, personas)) else ()
        every = self.states([*contexts, *whose, *replies])  # all in one go
        first, last = len(contexts), len(contexts) + len(whose)
        return self.match(every[:first], every[first:last] if whose else None, every[last:])

    def reply_vectors(
        self, replies: Sequence[Text], advance: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """(replies, width) float32"""
        return self.vectors(self.states(replies, advance))

    def context_vectors(self, contexts: Sequence[Text], personas: Sequence[Text]) -> np.ndarray:
        """(contexts, width) float32"""
        return self.asked(self.states(contexts), self._personas(personas))

    def _personas(self, personas: Sequence[Text]) -> States | None:
        return self.states(personas) if any(map(len, personas)) else None

    def _means(self, states: States) -> np.ndarray:
        """The mean of each text's words, zeros without any: (texts, width)."""
        found = np.zeros((len(states), self.body.width), np.float32)
        for row, values in enumerate(states):
            if len(values):
                found[row] = values.mean(axis=0)
        return found

    def _both(self, context: States, persona: States | None) -> np.ndarray:
        """The average of context and persona (PEC §5.1's Tri-encoder); the context alone without one."""
        found = self._means(context)
        if persona is None:
            return found
        has = np.array([len(values) > 0 for values in persona], bool)[:, None]
        return np.where(has, (found + self._means(persona)) / 2, found)


class OnnxBiEncoder(OnnxRanker):
    """`bi.BiEncoder`: one vector each for what was said and for the reply."""

    gives_vectors = True

    @classmethod
    def shapes(cls, config: RankerConfig, width: int) -> dict[str, tuple[int, ...]]:
        """The scale of cosines."""
        return {"scale": ()} if config.bi.cosine else {}

    def match(self, context: States, persona: States | None, replies: States) -> np.ndarray:
        """(contexts, replies)"""
        found: np.ndarray = self.asked(context, persona) @ self.vectors(replies).T
        return found

    def vectors(self, replies: States) -> np.ndarray:
        """(replies, width); of length 1 where directions are compared."""
        found = self._means(replies)
        return _of_length_one(found) if self.config.bi.cosine else found

    def asked(self, context: States, persona: States | None) -> np.ndarray:
        """(contexts, width); the learned scale is in it."""
        found = self._both(context, persona)
        return _of_length_one(found) * np.exp(self.weights["scale"]) if self.config.bi.cosine else found


class OnnxCoBERT(OnnxRanker):
    """`cobert.CoBERT`: co-attention between context and reply, persona and reply (PEC §4)."""

    @property
    def gives_vectors(self) -> bool:
        """Whether a bi-encoder's loss was part of its training."""
        return self.config.cobert.vectors > 0

    @classmethod
    def shapes(cls, config: RankerConfig, width: int) -> dict[str, tuple[int, ...]]:
        """A weight for each part, of context and of persona, and the attention's sharpness."""
        return {"weights": (2, len(PARTS)), "sharpness": ()} if config.cobert.weighted else {}

    def match(self, context: States, persona: States | None, replies: States) -> np.ndarray:
        """(contexts, replies)"""
        scores = np.zeros((len(context), len(replies)), np.float32)
        texts = [(0, context)] if persona is None else [(0, context), (1, persona)]
        for numbers in like_lengths([len(values) for values in replies], _REPLY_TOKENS):
            y, mask = _rows([replies[number] for number in numbers])
            for who, given in texts:
                weights = self.weights["weights"][who] if self.config.cobert.weighted else np.ones(len(PARTS))
                for row, values in enumerate(given):
                    if len(values):
                        parts = self._products(values, y, mask)
                        total = sum(weights[PARTS.index(part)] * value for part, value in parts.items())
                        scores[row, numbers] += total
        if self.config.cobert.joint:
            weight = self.weights["weights"][0][PARTS.index("hop 0")] if self.config.cobert.weighted else 1.0
            scores += weight * (self.asked(context, persona) @ self.vectors(replies).T)
        return scores

    def vectors(self, replies: States) -> np.ndarray:
        """(replies, width), of length 1."""
        return _of_length_one(self._means(replies))

    def asked(self, context: States, persona: States | None) -> np.ndarray:
        """(contexts, width), of length 1."""
        return _of_length_one(self._both(context, persona))

    def _products(self, x: np.ndarray, y: np.ndarray, mask: np.ndarray) -> Arrays:
        """The inner product of each part of eq. 6's two concatenations, by its name: (replies,) each.

        Args:
            x: (m, width), the words of a context or a persona.
            y: (replies, n, width), padding as in `_rows`.
            mask: (replies, n) bool: where words are.
        """
        settings, counts = self.config.cobert, mask.sum(axis=1)
        affinity = product(x, y.reshape(-1, y.shape[2]).T).reshape(len(x), *mask.shape)  # eq. 1
        if settings.weighted:
            affinity *= self.weights["sharpness"]
        to_reply = _softmax(np.where(mask, affinity, -np.inf), axis=2)  # eq. 2, over the reply's words
        to_text = _softmax(affinity, axis=0)  # eq. 3
        found: Arrays = {}
        if 0 in settings.hops and not settings.joint:
            mean_y = np.einsum("rn,rnd->rd", mask.astype(np.float32), y) / counts[:, None]
            found["hop 0"] = _of_length_one(mean_y) @ _of_length_one(x.mean(axis=0, keepdims=True))[0]
        if 1 in settings.hops:
            attended_x = product(to_reply.transpose(1, 0, 2), y)  # (replies, m, width)
            attended_y = product(to_text.reshape(len(x), -1).T, x).reshape(y.shape)
            if settings.pooling in ("max", "both"):  # padding holds a word twice, which moves no maximum
                found["max"] = _inner(attended_x.max(axis=1), attended_y.max(axis=1))
            if settings.pooling in ("mean", "both"):
                sums = np.einsum("rn,rnd->rd", mask.astype(np.float32), attended_y)
                found["mean"] = _inner(attended_x.mean(axis=1), sums / counts[:, None])
        over_reply = to_reply.mean(axis=0)  # (replies, n)
        over_text = (to_text * mask).sum(axis=2) / counts  # (m, replies)
        for hop in range(2, max(settings.hops) + 1):
            # Hop 2 is eq. 4 and 5; hop 3 sends its results through the matrices once more.
            over_text, over_reply = (
                np.einsum("rn,mrn->mr", over_reply, to_text),
                np.einsum("mr,mrn->rn", over_text, to_reply),
            )
            if hop in settings.hops:
                found[f"hop {hop}"] = _inner(product(over_text.T, x), np.einsum("rn,rnd->rd", over_reply, y))
        return found


LIGHT: dict[str, type[OnnxBiEncoder] | type[OnnxCoBERT] | type[OnnxCrossEncoder]] = {
    "bi": OnnxBiEncoder,
    "cobert": OnnxCoBERT,
    "cross": OnnxCrossEncoder,
}
"""By the names of `rankers.RANKERS`; all others need torch."""


def runs_on_onnx_ranker(config: RankerConfig, weights: Path | None = None) -> bool:
    """Whether a ranker can do without torch.

    Args:
        config: what it is made of.
        weights: the base model's own folder, where it is not the installed one.
    """
    if config.model not in LIGHT:
        return False
    return config.body != "pretrained" or runs_on_onnx(base_folder(config.base, weights))


def load_onnx_ranker(
    folder: Path, weights: Path | None = None, precision: str = PRECISION
) -> tuple[OnnxRanker | OnnxCrossEncoder, Inputs]:
    """A ranker from its checkpoint, and what makes its inputs.

    Args:
        folder: a checkpoint that `model.save_ranker` filled.
        weights: the base model's own folder, where it is not the installed one.
        precision: "fp32" for the same numbers as torch, or "int8", which is smaller.
    """
    saved = open_checkpoint(folder, KIND)
    config = build(RankerConfig, saved.config())
    base = base_folder(config.base, weights)
    kind = LIGHT[config.model]
    body, own = load_backbone(saved, config, base, precision, kind.reads_pairs)
    check_shapes(saved, own, kind.shapes(config, body.width))
    return kind(config, body, own), Inputs(Vocabulary.from_folder(base), config)


def _rows(states: States) -> tuple[np.ndarray, np.ndarray]:
    """Texts as rows, filled up with their own first word: (texts, longest, width), and where words are."""
    lengths = np.array([len(values) for values in states])
    places = np.arange(lengths.max())
    found = np.stack([values[np.where(places < len(values), places, 0)] for values in states])
    return found, places < lengths[:, None]


def _softmax(scores: np.ndarray, axis: int) -> np.ndarray:
    weights: np.ndarray = np.exp(scores - scores.max(axis=axis, keepdims=True))
    weights /= weights.sum(axis=axis, keepdims=True)
    return weights


def _inner(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The inner products of rows."""
    return np.asarray(np.einsum("rd,rd->r", first, second))


def _of_length_one(vectors: np.ndarray) -> np.ndarray:
    """Each row divided by its length; zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12))
