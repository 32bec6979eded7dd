"""Several rankers as one: scorers whose errors differ are better in combination.

P(y|x) ∝ exp(Σ_k w_k s_k(x, y)): the weights are those under which the true replies of the validation pools
are likeliest, which is a convex problem with as many unknowns as scorers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from listenwell.checkpoint import MANIFEST, find_checkpoint, open_checkpoint
from listenwell.dialogue import Dialogue
from listenwell.errors import InputError
from listenwell.rankers import GENERATOR_SCORERS
from listenwell.rankers.config import PRECISION
from listenwell.rankers.scorer import RankerScorer, Scorer
from listenwell.runtime.engines import TORCH
from listenwell.serialization import Record, build

KIND = "ensemble"


@dataclass(frozen=True)
class EnsembleConfig(Record):
    """The members and their weights."""

    members: tuple[tuple[str, float], ...]
    """Folders inside the checkpoint, each a checkpoint itself, and their weights."""


class Ensemble:
    """A weighted sum of scorers' scores."""

    name = "ensemble"

    def __init__(self, scorers: Sequence[Scorer], weights: Sequence[float]) -> None:
        if not scorers or len(scorers) != len(weights):
            raise InputError(f"{len(scorers)} scorers and {len(weights)} weights.", "Give one for each.")
        self.scorers, self.weights = tuple(scorers), tuple(map(float, weights))
        parts = (f"{scorer.key} {weight!r}" for scorer, weight in zip(scorers, self.weights, strict=True))
        self.key = sha256("\n".join(parts).encode()).hexdigest()

    def score(self, contexts: Sequence[Dialogue], replies: Sequence[str]) -> np.ndarray:
        """(contexts, replies) float32"""
        total = np.zeros((len(contexts), len(replies)), np.float32)
        for scorer, weight in zip(self.scorers, self.weights, strict=True):
            total += np.float32(weight) * scorer.score(contexts, replies)
        return total


def load_scorer(
    folder: Path, weights: Path | None = None, engine: str = TORCH, precision: str = PRECISION
) -> Scorer:
    """Whatever a checkpoint holds: an ensemble, a ranker, or a generator that ranks by likelihood.

    The arguments are those of `Ranker.from_pretrained`; results are measured with torch.
    """
    saved = open_checkpoint(find_checkpoint(folder))
    if saved.kind == KIND:
        config = build(EnsembleConfig, saved.config())
        # Only what the checkpoint lists is a member: a name never leads out of its folder.
        folders = [saved.path(f"{name}/{MANIFEST}").parent for name, _ in config.members]
        members = [load_scorer(member, weights, engine, precision) for member in folders]
        return Ensemble(members, [weight for _, weight in config.members])
    if saved.kind in GENERATOR_SCORERS:
        likelihood: Scorer = GENERATOR_SCORERS.load(saved.kind).load(saved.folder)  # type: ignore[attr-defined]
        return likelihood
    return RankerScorer.load(saved.folder, weights, engine, precision)


def fit_weights(scores: Sequence[np.ndarray], ridge: float = 1e-3, most: int = 50) -> np.ndarray:
    """Weights (scorers,) under which the true replies are likeliest, by at most so many steps of Newton's.

    `scores` holds for each scorer (contexts, candidates), the true reply in column 0. The ridge is a small
    pull towards zero on standardized scores, so that scorers that agree share it.
    """
    scaled = np.stack([np.asarray(part, np.float64) for part in scores])  # (scorers, contexts, candidates)
    scaled = scaled - scaled.mean(axis=2, keepdims=True)  # a softmax does not see what is added to all
    spread = scaled.std(axis=(1, 2))
    if not np.isfinite(scaled).all() or (spread == 0).any():
        raise InputError("A scorer gives every reply the same score, or none.", "Leave it out.")
    scaled /= spread[:, None, None]
    weights = np.zeros(len(scaled))
    likelihood = _likelihood(scaled, weights, ridge)
    for _ in range(most):
        probabilities = _probabilities(scaled, weights)
        means = np.einsum("nc,knc->kn", probabilities, scaled)
        slope = (scaled[:, :, 0] - means).mean(axis=1) - ridge * weights
        products = np.einsum("nc,knc,lnc->kl", probabilities, scaled, scaled) / scaled.shape[1]
        curve = products - means @ means.T / scaled.shape[1] + ridge * np.eye(len(scaled))
        step = np.linalg.solve(curve, slope)
        # Far from the top a whole step leaps over it, and ever farther: it is halved until it climbs.
        while (reached := _likelihood(scaled, weights + step, ridge)) < likelihood:
            step /= 2
            if np.abs(step).max() <= 1e-8:
                break
        if np.abs(step).max() <= 1e-8:
            break
        weights, likelihood = weights + step, reached
    return np.asarray(weights / spread)


def _probabilities(scaled: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The softmax over candidates: (contexts, candidates)."""
    logits = np.einsum("k,knc->nc", weights, scaled)
    probabilities: np.ndarray = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return probabilities


def _likelihood(scaled: np.ndarray, weights: np.ndarray, ridge: float) -> float:
    """What is climbed: the true replies' mean log-likelihood, less the ridge."""
    logits = np.einsum("k,knc->nc", weights, scaled)
    highest = logits.max(axis=1)
    sums = highest + np.log(np.exp(logits - highest[:, None]).sum(axis=1))
    return float((logits[:, 0] - sums).mean() - ridge * (weights @ weights) / 2)
