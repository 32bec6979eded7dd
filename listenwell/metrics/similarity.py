"""Embedding greedy matching and sentence similarity: closeness in meaning, not in words.

Pure arithmetic on vectors; the encoder (MiniLM here) is named in the conditions of a result.
"""

from collections.abc import Sequence

import numpy as np

from listenwell.errors import InputError
from listenwell.metrics.checks import check_pairs


def greedy_matching(hypotheses: Sequence[np.ndarray], references: Sequence[np.ndarray]) -> float:
    """Mean greedy matching score, from −1 to 1 (Rus & Lintean 2012, as in Liu et al. 2016).

    Each token takes the cosine of its nearest token on the other side; the means of both directions are
    averaged. A zero vector has cosine 0 to all, and a side without tokens scores 0. Each text is an array
    (tokens, dim).
    """
    check_pairs(hypotheses, references, "replies and references")
    return float(np.mean([_greedy(*pair) for pair in zip(hypotheses, references, strict=True)]))


def sentence_similarity(hypotheses: np.ndarray, references: np.ndarray) -> float:
    """Mean cosine of sentence embeddings (n, dim), from −1 to 1 (MEED2's SES, Xie & Pu 2021).

    A zero vector has cosine 0.
    """
    hypotheses, references = np.asarray(hypotheses), np.asarray(references)
    check_pairs(hypotheses, references, "replies and references")
    _check_dimensions(hypotheses, references)
    return float(np.mean(np.sum(_unit(hypotheses) * _unit(references), axis=1)))


def _greedy(hypothesis: np.ndarray, reference: np.ndarray) -> float:
    if not len(hypothesis) or not len(reference):
        return 0.0
    _check_dimensions(hypothesis, reference)
    cosines = _unit(hypothesis) @ _unit(reference).T
    return float(cosines.max(axis=1).mean() + cosines.max(axis=0).mean()) / 2


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1; a row of zeros stays one."""
    vectors = np.asarray(vectors, dtype=np.float64)
    largest = np.abs(vectors).max(axis=1, keepdims=True)  # first to 1, or squares of tiny numbers vanish
    vectors = vectors / np.where(largest > 0, largest, 1)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1)


def _check_dimensions(first: np.ndarray, second: np.ndarray) -> None:
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
        raise InputError(
            f"Vectors of the shapes {first.shape} and {second.shape} cannot be compared.",
            "Embed both sides with one model, one row for each token or sentence.",
        )
