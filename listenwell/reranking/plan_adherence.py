"""Features from the annotators: how far replies follow their plans, and their levels of each mechanism."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from listenwell.annotators.replies import read_replies
from listenwell.dialogue import Candidate, Dialogue, Factors
from listenwell.labels import LEVELS, MECHANISMS

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator

Probabilities = Mapping[str, Mapping[str, float]]
"""Head to label to probability, the likeliest label first."""


def predict_candidates(
    annotator: "Annotator", dialogue: Dialogue, candidates: Sequence[Candidate]
) -> list[Probabilities | None]:
    """The annotators' probabilities of all candidates, in one batch; None for one without plan or text."""
    planned = [index for index, reply in enumerate(candidates) if reply.plan and reply.text.strip()]
    predictions: list[Probabilities | None] = [None] * len(candidates)
    if planned:
        texts = [candidates[index].text for index in planned]
        for index, turn in zip(planned, read_replies(annotator, dialogue, texts), strict=True):
            predictions[index] = {
                reading.head: {score.label: score.probability for score in reading.scores}
                for reading in turn.readings
            }
    return predictions


def plan_adherence(
    predictions: Sequence[Probabilities | None],
    candidates: Sequence[Candidate],
    target: Factors | None = None,
) -> list[float | None]:
    """The probability that each candidate does what its plan says, 0 to 1; None where there is no plan.

    A target counts instead of the plan, by its least likely part.
    """
    return [
        None
        if prediction is None or candidate.plan is None
        else mean_probability(candidate.plan, prediction)
        if target is None
        else least_probability(target, prediction)
        for prediction, candidate in zip(predictions, candidates, strict=True)
    ]


def mechanism_levels(predictions: Sequence[Probabilities | None], mechanism: str) -> list[float | None]:
    """EPITOME's level of a mechanism in each candidate, 0 to 2: the likeliest one."""
    return [
        float(LEVELS.index(next(iter(prediction[mechanism]))))
        if prediction and mechanism in prediction
        else None
        for prediction in predictions
    ]


def mean_probability(plan: Factors, prediction: Probabilities) -> float | None:
    """The mean probability of the plan's factors; None where none of them was predicted.

    Mechanisms are one factor: the mean over ER, IP and EX of the planned yes or no, where weak and strong are
    yes (CoMAE §4.2). The user's emotion is no part of what a reply does.
    """
    mechanisms = _mechanisms(plan, prediction)
    parts = [
        *([sum(mechanisms) / len(mechanisms)] if mechanisms else []),
        *_act_and_expressed_emotion(plan, prediction),
    ]
    return sum(parts) / len(parts) if parts else None


def least_probability(target: Factors, prediction: Probabilities) -> float | None:
    """The least probability of a target's parts, each mechanism being one of them."""
    return min(
        [*_mechanisms(target, prediction), *_act_and_expressed_emotion(target, prediction)], default=None
    )


def _mechanisms(plan: Factors, prediction: Probabilities) -> list[float]:
    """For each mechanism that was predicted, the probability that it is present or absent as planned."""
    if plan.mechanisms is None:
        return []
    absent = {name: prediction[name].get(LEVELS[0], 0.0) for name in MECHANISMS if name in prediction}
    return [1 - value if name in plan.mechanisms else value for name, value in absent.items()]


def _act_and_expressed_emotion(plan: Factors, prediction: Probabilities) -> list[float]:
    """The probabilities of the planned act and expressed emotion, as far as they were predicted."""
    planned = (("act", plan.act), ("expressed_emotion", plan.expressed_emotion))
    return [prediction[head].get(label, 0.0) for head, label in planned if label and head in prediction]
