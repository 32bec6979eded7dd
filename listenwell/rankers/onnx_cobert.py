"""CoBERT's matching (Zhong et al. 2020, §4) of token states in numpy; `cobert.CoBERT` is the same in torch.

A text's states are an array of their own, (tokens, width), so that nothing depends on padding.
"""

from collections.abc import Sequence

import numpy as np

from listenwell.rankers.config import PARTS, CobertSettings
from listenwell.runtime.batches import like_lengths
from listenwell.runtime.onnx.checkpoint_encoder import Arrays
from listenwell.runtime.products import product

REPLY_TOKENS = 1024
"""Tokens of replies, padding included, that are matched at once; some ten MB with a long context."""


class Matching:
    """Scores replies for contexts and personas.

    Args:
        settings: which parts are compared.
        weights: `weights` and `sharpness`, where the settings have learned ones.
    """

    def __init__(self, settings: CobertSettings, weights: Arrays) -> None:
        self._settings, self._weights = settings, weights

    def weight(self, side: int, part: str) -> float:
        """The learned weight of a part for the context (side 0) or the persona (side 1), else 1."""
        return float(self._weights["weights"][side][PARTS.index(part)]) if self._settings.weighted else 1.0

    def scores(
        self, contexts: Sequence[np.ndarray], personas: Sequence[np.ndarray], replies: Sequence[np.ndarray]
    ) -> np.ndarray:
        """(contexts, replies) float32, without the joint part.

        Args:
            contexts: states of each.
            personas: one for each context; (0, width) without one.
            replies: states of each.
        """
        scores = np.zeros((len(contexts), len(replies)), np.float32)
        for numbers in like_lengths([len(states) for states in replies], REPLY_TOKENS):
            reply, mask = _padded([replies[number] for number in numbers])
            for side, texts in enumerate((contexts, personas)):
                for row, text in enumerate(texts):
                    if len(text):
                        parts = self._products(text, reply, mask)
                        total = sum(self.weight(side, part) * value for part, value in parts.items())
                        scores[row, numbers] += total
        return scores

    def _products(self, x: np.ndarray, y: np.ndarray, mask: np.ndarray) -> Arrays:
        """The inner product of each part of eq. 6's two concatenations, by its name: (replies,) each.

        Args:
            x: (m, width), the states of a context or a persona.
            y: (replies, n, width), padded as in `_padded`.
            mask: (replies, n) bool: False in padding.
        """
        settings, counts = self._settings, mask.sum(axis=1)
        affinity = product(x, y.reshape(-1, y.shape[2]).T).reshape(len(x), *mask.shape)  # eq. 1
        if settings.weighted:
            affinity *= self._weights["sharpness"]
        to_reply = _softmax(np.where(mask, affinity, -np.inf), axis=2)  # eq. 2, over the reply's tokens
        to_text = _softmax(affinity, axis=0)  # eq. 3
        products: Arrays = {}
        if 0 in settings.hops and not settings.joint:
            mean_x, mean_y = x.mean(axis=0), _masked_mean(y, mask)
            lengths = np.linalg.norm(mean_x) * np.linalg.norm(mean_y, axis=1)
            products["hop 0"] = mean_y @ mean_x / np.maximum(lengths, 1e-12)
        if 1 in settings.hops:
            attended_x = product(to_reply.transpose(1, 0, 2), y)  # (replies, m, width)
            attended_y = product(to_text.reshape(len(x), -1).T, x).reshape(y.shape)
            if settings.pooling in ("max", "both"):  # padding repeats a token, which moves no maximum
                products["max"] = _inner(attended_x.max(axis=1), attended_y.max(axis=1))
            if settings.pooling in ("mean", "both"):
                products["mean"] = _inner(attended_x.mean(axis=1), _masked_mean(attended_y, mask))
        over_reply = to_reply.mean(axis=0)  # (replies, n)
        over_text = (to_text * mask).sum(axis=2) / counts  # (m, replies)
        for hop in range(2, max(settings.hops) + 1):
            # Hop 2 is eq. 4 and 5; hop 3 applies the attention matrices once more.
            over_text, over_reply = (
                np.einsum("rn,mrn->mr", over_reply, to_text),
                np.einsum("mr,mrn->rn", over_text, to_reply),
            )
            if hop in settings.hops:
                second_y = np.einsum("rn,rnd->rd", over_reply, y)
                products[f"hop {hop}"] = _inner(product(over_text.T, x), second_y)
        return products


def _padded(texts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Texts as rows, padded with their own first token: (texts, longest, width), and where tokens are."""
    lengths = np.array([len(states) for states in texts])
    indices = np.arange(lengths.max())
    rows = np.stack([states[np.where(indices < len(states), indices, 0)] for states in texts])
    return rows, indices < lengths[:, None]


def _masked_mean(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """(replies, width)"""
    sums = np.einsum("rn,rnd->rd", mask.astype(np.float32), values)
    return np.asarray(sums / mask.sum(axis=1, keepdims=True))


def _softmax(scores: np.ndarray, axis: int) -> np.ndarray:
    weights: np.ndarray = np.exp(scores - scores.max(axis=axis, keepdims=True))
    weights /= weights.sum(axis=axis, keepdims=True)
    return weights


def _inner(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The inner products of rows."""
    return np.asarray(np.einsum("rd,rd->r", first, second))
