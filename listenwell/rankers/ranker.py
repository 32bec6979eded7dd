"""Choosing a reply: the shipped ranker, or one of your own, asked about one dialogue."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from listenwell.dialogue import Candidate, Dialogue, Factors
from listenwell.errors import CheckpointError
from listenwell.papers.rankers.ensemble import Ensemble, load_scorer
from listenwell.pipeline import Rerank
from listenwell.rankers.config import PRECISION
from listenwell.rankers.scorer import RankerScorer, Scorer
from listenwell.runtime.engines import AUTO

SHIPPED = Path(__file__).parents[1] / "pretrained" / "ranker"
READER = SHIPPED.parent / "reader"
"""The pairwise cross-encoder."""


class Ranker(Rerank):
    """Ranks replies to a dialogue; fills the listener's place *choose*.

    Args:
        witness: a ranker, an ensemble of them, or a generator.
    """

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self.name, self.key = scorer.name, scorer.key

    @classmethod
    def load(
        cls,
        folder: Path | None = None,
        weights: Path | None = None,
        engine: str = AUTO,
        precision: str = PRECISION,
    ) -> "Ranker":
        """The shipped ranker, or one of your own.

        Args:
            folder: a checkpoint, or a training run that holds one as `best`.
            weights: the encoder's own folder, where it is not the installed one.
            engine: "onnx", "torch", or "auto": onnxruntime where it is installed and can run the ranker.
            precision: of onnx, "fp32" or "int8", which is smaller; torch is always exact.
        """
        return cls(load_scorer(folder or SHIPPED, weights, engine, precision))

    @property
    def width(self) -> int:
        """Of the vectors for large pools."""
        return self._searcher().width

    def scores(self, dialogue: Dialogue, replies: Sequence[str]) -> np.ndarray:
        """How well each reply fits, the higher the better: (replies,) float32."""
        if not replies:
            return np.zeros(0, np.float32)
        found: np.ndarray = self.scorer.score([dialogue], replies)[0]
        return found

    def rerank(
        self, dialogue: Dialogue, candidates: Sequence[Candidate], target: Factors | None = None
    ) -> tuple[Candidate, ...]:
        """The candidates with this ranker's score beside those they have, the best first."""
        found = self.scores(dialogue, [candidate.text for candidate in candidates])
        scored = [
            replace(candidate, scores={**candidate.scores, self.name: round(float(score), 4)})
            for candidate, score in zip(candidates, found, strict=True)
        ]
        return tuple(scored[place] for place in np.argsort(-found, kind="stable"))

    def reply_vectors(
        self, replies: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """(replies, width) float32, for a first search in a large pool."""
        return self._searcher().reply_vectors(replies, advance)

    def context_vector(self, dialogue: Dialogue) -> np.ndarray:
        """(width,) float32; the inner product with a reply's vector is a first score."""
        found: np.ndarray = self._searcher().context_vectors([dialogue])[0]
        return found

    def _searcher(self) -> RankerScorer:
        """The witness whose vectors are searched."""
        members = self.scorer.scorers if isinstance(self.scorer, Ensemble) else (self.scorer,)
        for member in members:
            if isinstance(member, RankerScorer) and member.gives_vectors:
                return member
        raise CheckpointError(
            f"The ranker {self.name} gives no vectors for large pools.",
            "Use the shipped one, a bi-encoder, or CoBERT trained with cobert.vectors.",
        )
