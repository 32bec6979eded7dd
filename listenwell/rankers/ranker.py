"""Ranking replies to a dialogue, with the shipped ranker or one of your own.

from listenwell.rankers.ranker import Ranker
Ranker.from_pretrained().rank("My dog died.", ["I am so sorry.", "Congratulations!"])
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from listenwell.dialogue import SPEAKER, Candidate, Dialogue, Factors, Turn
from listenwell.errors import CheckpointError
from listenwell.rankers.config import PRECISION
from listenwell.rankers.ensemble import Ensemble, load_scorer
from listenwell.rankers.scorer import RankerScorer, Scorer
from listenwell.runtime.engines import AUTO

SHIPPED = Path(__file__).parents[1] / "pretrained" / "ranker"


@dataclass(frozen=True)
class RankedReply:
    """A reply with its score."""

    index: int
    """Its index among the replies that were ranked."""
    score: float
    """The higher the better."""
    text: str


class Ranker:
    """Ranks replies to a dialogue.

    Args:
        scorer: a ranker, an ensemble of them, or a generator.
    """

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self.name, self.key = scorer.name, scorer.key

    @classmethod
    def from_pretrained(
        cls,
        name_or_folder: str | Path | None = None,
        weights: Path | None = None,
        engine: str = AUTO,
        precision: str = PRECISION,
    ) -> "Ranker":
        """Load the shipped ranker, or one of your own.

        Args:
            name_or_folder: a checkpoint, or a training run that holds one as `best`; the shipped one if not
                given.
            weights: the encoder's own folder, where it is not the installed one.
            engine: "onnx", "torch", or "auto": onnxruntime where it is installed and supports the ranker.
            precision: of onnx, "fp32" or "int8", which is smaller; torch always runs in float32.
        """
        folder = SHIPPED if name_or_folder is None else Path(name_or_folder)
        return cls(load_scorer(folder, weights, engine, precision))

    load = from_pretrained
    """The former name of `from_pretrained`."""

    @property
    def width(self) -> int:
        """Of the vectors for large pools."""
        return self._searcher().width

    def rank(
        self, context: str | Dialogue, replies: Sequence[str], top: int | None = None
    ) -> list[RankedReply]:
        """Replies with their scores, the best first, as sentence-transformers' `CrossEncoder.rank`.

        Args:
            context: the dialogue to be answered, or a speaker's utterance.
            replies: the candidates.
            top: how many to return; all if not given.
        """
        dialogue = Dialogue((Turn(SPEAKER, context),)) if isinstance(context, str) else context
        scores = self.scores(dialogue, replies)
        order = np.argsort(-scores, kind="stable")[:top].tolist()
        return [RankedReply(index, float(scores[index]), replies[index]) for index in order]

    def scores(self, dialogue: Dialogue, replies: Sequence[str]) -> np.ndarray:
        """How well each reply fits, the higher the better: (replies,) float32."""
        if not replies:
            return np.zeros(0, np.float32)
        return np.asarray(self.scorer.score([dialogue], replies)[0])

    def rerank(
        self, dialogue: Dialogue, candidates: Sequence[Candidate], target: Factors | None = None
    ) -> tuple[Candidate, ...]:
        """The candidates with this ranker's score beside those they have, the best first."""
        ranked = self.rank(dialogue, [candidate.text for candidate in candidates])
        return tuple(
            replace(
                candidates[reply.index],
                scores={**candidates[reply.index].scores, self.name: round(reply.score, 4)},
            )
            for reply in ranked
        )

    def reply_vectors(
        self, replies: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """(replies, width) float32, for a first search in a large pool."""
        return self._searcher().reply_vectors(replies, advance)

    def context_vector(self, dialogue: Dialogue) -> np.ndarray:
        """(width,) float32; its inner product with a reply's vector is a first score."""
        return np.asarray(self._searcher().context_vectors([dialogue])[0])

    def _searcher(self) -> RankerScorer:
        """The scorer whose vectors are searched."""
        members = self.scorer.scorers if isinstance(self.scorer, Ensemble) else (self.scorer,)
        for member in members:
            if isinstance(member, RankerScorer) and member.gives_vectors:
                return member
        raise CheckpointError(
            f"The ranker {self.name} gives no vectors for large pools.",
            "Use the shipped one, a bi-encoder, or CoBERT trained with cobert.vectors.",
        )
