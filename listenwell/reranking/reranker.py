"""The pipeline stage *rerank*: a weighted sum of features orders the candidates.

total = Σ w_j z_j + Σ w_j m_j − Σ w_j f_j over standardized features z, merits m and faults f (config.py).
Every feature's value stays on the candidate, so that an order can be explained.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from listenwell.dialogue import Candidate, Dialogue, Factors
from listenwell.pipeline import Rerank
from listenwell.reranking.config import ANNOTATED, FAULTS, MERITS, STANDARDIZED, TOTAL, RerankerConfig
from listenwell.reranking.features import (
    brevity,
    copied_persona,
    generic_question,
    generic_response,
    mechanism_levels,
    plan_adherence,
    predict_candidates,
    repetition,
    unfinished,
)
from listenwell.reranking.self_disclosure.unsupported import unsupported_disclosure
from listenwell.serialization import dumps
from listenwell.words import normalized

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator

Features = dict[str, Sequence[float | None]]
"""Feature to its value for each candidate; None where it is unknown."""


@dataclass
class Reranker(Rerank):
    """Orders candidates, the best first.

    A feature that cannot be computed is left out: those of the annotators where there are none, `reward` and
    `likelihood` where the generator put no such score on the candidates.
    """

    config: RerankerConfig = field(default_factory=RerankerConfig)
    annotator: "Annotator | None" = None
    name: str = "features"

    @classmethod
    def load(cls, config: RerankerConfig | None = None, annotator: "Annotator | None" = None) -> "Reranker":
        """With the shipped annotators where a feature needs them and none is handed in."""
        config = config or RerankerConfig()
        if annotator is None and any(map(config.weight, ANNOTATED)):
            from listenwell.annotators.annotator import Annotator
            from listenwell.annotators.heads import REPLY_HEADS

            annotator = Annotator.load(heads=REPLY_HEADS)
        return cls(config, annotator)

    @property
    def key(self) -> str:
        """A hash of the weights and the annotators: equal keys give equal orders."""
        return sha256(dumps(self.conditions()).encode()).hexdigest()

    def conditions(self) -> dict[str, str]:
        """Every setting that can change an order, for result files."""
        config = self.config
        weights = {name: config.weight(name) for name in config.active()}
        return {
            "reranking features": ", ".join(f"{name} {weight:g}" for name, weight in weights.items())
            or "none",
            "reranking features of a steered reply": f"plan_adherence {config.steered:g}, of the target's "
            f"least likely part; reward {config.steered_reward:g} at most; no merits; faults times "
            f"{config.steered_faults:g}; a second try where plan_adherence is below {config.done:g}",
            "reranking features left out": ", ".join(config.without) or "none",
            "annotator": f"key {self.annotator.key}" if self.annotator else "none",
        }

    def rerank(
        self, dialogue: Dialogue, candidates: Sequence[Candidate], target: Factors | None = None
    ) -> tuple[Candidate, ...]:
        """The candidates with the value of every feature and the total, the best first.

        Of candidates with the same words the first is kept; equal totals keep their order. With a target,
        `plan_adherence` has a larger weight.
        """
        steered = _steers(target)
        config = self.config.for_steering() if steered else self.config
        kept = list({normalized(reply.text): reply for reply in reversed(candidates)}.values())[::-1]
        if not kept:
            return ()
        features: Features = {
            feature: [candidate.scores.get(feature) for candidate in kept]
            for feature in ("reward", "likelihood")
            if config.weight(feature)
        }
        features |= self._annotated(dialogue, kept, config, target if steered else None)
        features |= _faults(dialogue, kept, config)
        total = _total(features, config, len(kept))
        scored = [_with_scores(candidate, features, total, row) for row, candidate in enumerate(kept)]
        return tuple(scored[row] for row in np.argsort(-total, kind="stable"))

    def misses_target(self, ranked: Sequence[Candidate], target: Factors | None) -> bool:
        """Whether the first of the reranked candidates probably does not do what the caller asked for."""
        return _steers(target) and ranked[0].scores.get("plan_adherence", 1.0) < self.config.done

    def _annotated(
        self,
        dialogue: Dialogue,
        candidates: Sequence[Candidate],
        config: RerankerConfig,
        target: Factors | None,
    ) -> Features:
        """The features that come from the annotators, which see all candidates in one batch."""
        active = [feature for feature in ANNOTATED if config.weight(feature)]
        if self.annotator is None or not active:
            return {}
        predictions = predict_candidates(self.annotator, dialogue, candidates)
        return {
            feature: mechanism_levels(predictions, feature)
            if feature in MERITS
            else plan_adherence(predictions, candidates, target)
            for feature in active
        }


def standardized(scores: Sequence[float | None]) -> np.ndarray:
    """Scores with mean 0 and deviation 1; a missing or infinite one is set to the mean.

    All 0 where they do not differ.
    """
    values = np.array([np.nan if score is None else score for score in scores], np.float64)
    known = np.isfinite(values)
    result = np.zeros(len(values))
    if known.any():
        deviation = values[known].std()
        # Scores of one text in batches of different shapes differ in the last digits.
        if deviation > 1e-6 * max(1.0, float(np.abs(values[known]).max())):
            result[known] = (values[known] - values[known].mean()) / deviation
    return result


def _faults(dialogue: Dialogue, candidates: Sequence[Candidate], config: RerankerConfig) -> Features:
    """The faults of each candidate."""
    persona = dialogue.persona_of(dialogue.listener)
    lines = persona.lines if persona else ()
    functions: Mapping[str, Callable[[str], float]] = {
        "generic_response": generic_response,
        "repetition": lambda text: repetition(text, dialogue),
        "copied_persona": lambda text: copied_persona(text, lines),
        "unsupported_disclosure": lambda text: float(len(unsupported_disclosure(text, lines))),
        "unfinished": lambda text: float(unfinished(text)),
        "generic_question": lambda text: float(generic_question(text)),
        "brevity": brevity,
    }
    return {
        feature: [functions[feature](candidate.text) for candidate in candidates]
        for feature in FAULTS
        if config.weight(feature)
    }


def _total(features: Features, config: RerankerConfig, count: int) -> np.ndarray:
    """The weighted sum of all features: (candidates,)."""
    total = np.zeros(count)
    for feature, values in features.items():
        if feature in STANDARDIZED:
            total += config.weight(feature) * standardized(values)
        else:
            points = config.weight(feature) * np.array([value or 0.0 for value in values])
            total += points if feature in MERITS else -points
    return total


def _steers(target: Factors | None) -> bool:
    """Whether a target says what the reply should do; the user's emotion alone does not."""
    return target is not None and any(
        part is not None for part in (target.mechanisms, target.act, target.expressed_emotion)
    )


def _with_scores(candidate: Candidate, features: Features, total: np.ndarray, row: int) -> Candidate:
    values = {feature: scores[row] for feature, scores in features.items()} | {TOTAL: float(total[row])}
    rounded = {feature: round(value, 4) for feature, value in values.items() if value is not None}
    return replace(candidate, scores={**candidate.scores, **rounded})
