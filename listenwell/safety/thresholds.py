"""Thresholds of the crisis classifier, fitted on validation for stated rates of alarms.

The crisis threshold is the smallest with which the whole detector, patterns included, raises at most a stated
share of false alarms among look-alikes and among everyday messages; the concern threshold likewise.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from listenwell.annotators.config import KIND
from listenwell.checkpoint import open_checkpoint, writing
from listenwell.safety.classifier import CONCERN, CRISIS, NONE, THRESHOLDS, Thresholds
from listenwell.safety.crisis import CLASSIFIER, Detector
from listenwell.safety.measure import Case
from listenwell.serialization import Record, indented

GRID = tuple(round(0.02 + 0.005 * step, 3) for step in range(197))
"""The thresholds that are tried, from 0.02 to 1."""
NEVER = 1.01
"""The threshold where none of them keeps to the rates."""


@dataclass(frozen=True)
class Rates(Record):
    """The largest rates on validation, in percent."""

    lookalikes: float = 4.5
    """Look-alikes that are a crisis."""
    everyday_crisis: float = 0.4
    """Everyday messages that are a crisis."""
    everyday_concern: float = 2.2
    """Everyday messages that are a concern or a crisis."""
    lookalike_concern: float = 40.0
    """Look-alikes that are a concern or a crisis."""

    def words(self) -> str:
        """For the checkpoint and result files."""
        return (
            f"on validation at most {self.lookalikes:g} % of look-alikes and {self.everyday_crisis:g} % of "
            f"everyday messages a crisis, {self.lookalike_concern:g} % and {self.everyday_concern:g} % a "
            "concern or a crisis"
        )


def fit_thresholds(
    detector: Detector, risk: Sequence[Case], everyday: Sequence[Case], rates: Rates
) -> Thresholds:
    """Fit both thresholds; the detector's own do not matter.

    Args:
        detector: with the classifier.
        risk: validation messages at risk and look-alikes, as `measure.cases` gives them.
        everyday: validation messages of other corpora.
        rates: what is allowed.
    """
    lookalikes = _scores(detector, [case for case in risk if case.is_lookalike])
    harmless = _scores(detector, [case for case in everyday if case.level == NONE])
    crisis = _smallest(
        [(lookalikes, rates.lookalikes), (harmless, rates.everyday_crisis)], level=CRISIS, column=0
    )
    concern = _smallest(
        [(lookalikes, rates.lookalike_concern), (harmless, rates.everyday_concern)], level=CONCERN, column=1
    )
    return Thresholds(crisis, concern, rates.words())


@dataclass(frozen=True)
class _Scores:
    """What patterns and classifier say of some messages."""

    patterns: np.ndarray
    """(messages,): the number of the patterns' level."""
    classifier: np.ndarray
    """(messages, 2): the probability of a crisis, and of a crisis or concern."""


def _scores(detector: Detector, cases: Sequence[Case]) -> _Scores:
    order = (NONE, CONCERN, CRISIS)
    by_pattern = [
        max((order.index(sign.level) for sign in case.finding.signs if sign.by != CLASSIFIER), default=0)
        for case in cases
    ]
    levels, _ = detector.classifier.probabilities([detector.view(case.dialogue) for case in cases])
    return _Scores(np.array(by_pattern), np.stack([levels[:, 2], levels[:, 1] + levels[:, 2]], axis=1))


def _smallest(parts: Sequence[tuple[_Scores, float]], level: str, column: int) -> float:
    least = (NONE, CONCERN, CRISIS).index(level)
    for threshold in GRID:
        if all(
            100 * float(((own.patterns >= least) | (own.classifier[:, column] >= threshold)).mean()) <= rate
            for own, rate in parts
        ):
            return threshold
    return NEVER


def write_thresholds(source: Path, target: Path, thresholds: Thresholds) -> None:
    """Copy a classifier's checkpoint with its thresholds."""
    saved = open_checkpoint(source, KIND)
    with writing(target, KIND) as folder:
        for name in saved.sums:
            if name not in (THRESHOLDS, "README.md"):
                shutil.copyfile(saved.path(name), folder / name)
        (folder / THRESHOLDS).write_text(indented(thresholds.to_dict()), encoding="utf-8")


def with_thresholds(detector: Detector, thresholds: Thresholds) -> Detector:
    """The same detector with other thresholds."""
    classifier = detector.classifier
    return Detector(type(classifier)(classifier.backend, classifier.vocabulary, thresholds))
