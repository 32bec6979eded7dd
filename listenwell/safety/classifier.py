"""The crisis classifier: level and kind of risk in the last turns, by an encoder with an adapter of its own.

all-MiniLM-L6-v2 reads what the person wrote last together with the turns before it, so that an answer is
understood by its question. Its probabilities are calibrated (Guo et al. 2017); the thresholds that make a
level of them are fitted on validation for a stated rate of false alarms (`thresholds.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from listenwell.annotators.annotator import load_backend
from listenwell.annotators.config import probabilities
from listenwell.annotators.heads import RISK_HEADS
from listenwell.annotators.inference import ClassifierBackend, classify
from listenwell.annotators.views import Input, View, encode_views, marks
from listenwell.errors import CheckpointError, InputError
from listenwell.labels import RISK_KINDS, RISK_LEVELS
from listenwell.runtime.text import Vocabulary
from listenwell.serialization import Record

SHIPPED = Path(__file__).parents[1] / "pretrained" / "crisis"
THRESHOLDS = "thresholds.json"
WINDOW = 96
"""Tokens of a long message that are read at a time."""
NONE, CONCERN, CRISIS = RISK_LEVELS.labels


@dataclass(frozen=True)
class Thresholds(Record):
    """From which probability on a message has a level."""

    crisis: float = 0.5
    """Of crisis."""
    concern: float = 0.5
    """Of crisis and concern together: what is not sure enough for a crisis is at least a concern."""
    fitted: str = ""
    """For which rates on which messages, in words."""


@dataclass(frozen=True)
class Risk:
    """The classifier's prediction for a message."""

    level: str
    """One of `labels.RISK_LEVELS`."""
    kind: str
    """The likeliest kind but none."""
    crisis: float
    """The probability of a crisis."""
    concern: float
    """The probability of a concern."""


class CrisisClassifier:
    """Predicts level and kind of risk. Threads may share it."""

    def __init__(self, backend: ClassifierBackend, vocabulary: Vocabulary, thresholds: Thresholds) -> None:
        if missing := set(RISK_HEADS) - set(backend.config.heads):
            problem = f"The classifier has no head {', '.join(sorted(missing))}."
            raise CheckpointError(problem, "Train one with recipes/safety/crisis.yaml.")
        self.backend, self.vocabulary, self.thresholds = backend, vocabulary, thresholds

    @classmethod
    def load(cls, folder: Path | None = None, engine: str = "auto") -> "CrisisClassifier":
        """The shipped classifier, or one that `listenwell train` wrote, whose thresholds are then 0.5."""
        folder = folder or SHIPPED
        backend, vocabulary, _ = load_backend(folder, None, engine, "int8")
        try:
            text = (folder / THRESHOLDS).read_text(encoding="utf-8")
            thresholds = Thresholds.from_json(text)
        except FileNotFoundError:
            thresholds = Thresholds()
        except (OSError, ValueError, InputError) as error:
            problem = f"{folder / THRESHOLDS} cannot be read: {error}."
            raise CheckpointError(problem, "Fit them with `listenwell safety thresholds`.") from error
        return cls(backend, vocabulary, thresholds)

    def predict(self, view: View) -> Risk:
        """The prediction for the last turn of a view."""
        return self.predict_batch([view])[0]

    def predict_batch(self, views: Sequence[View]) -> list[Risk]:
        """`predict` for several views."""
        levels, kinds = self.probabilities(views)
        return [self._risk(level, kind) for level, kind in zip(levels, kinds, strict=True)]

    def probabilities(self, views: Sequence[View]) -> tuple[np.ndarray, np.ndarray]:
        """Calibrated probabilities of levels (views, 3) and of kinds (views, 7).

        A message longer than WINDOW tokens is read in overlapping parts; the gravest part counts.
        """
        parts = [self._parts(view) for view in views]
        inputs = [part for own in parts for part in own]
        output = classify(self.backend, inputs)
        levels, kinds = (
            probabilities(output.logits(head), head, self.backend.config.temperature(head))
            for head in RISK_HEADS
        )
        rows, first = list[int](), 0
        for own in parts:
            rows.append(max(range(first, first + len(own)), key=lambda row: float(levels[row, -1])))
            first += len(own)
        return levels[rows], kinds[rows]

    def _parts(self, view: View) -> list[Input]:
        limit = self.backend.config.limit
        tokens, size = self.vocabulary.encode_many([view[-1][0]])[0], min(WINDOW, limit - 2)
        if len(tokens) <= size:
            return encode_views(self.vocabulary, [view], limit)
        begin, end = marks(self.vocabulary)
        parts = []
        for start in range(0, len(tokens) - size // 2, size // 2):
            window = tokens[start : start + size]
            ids = np.array([begin, *window, end], np.int32)
            parts.append(Input(ids, np.zeros(len(ids), np.int8), (1, len(ids) - 1)))
        return parts

    def _risk(self, levels: np.ndarray, kinds: np.ndarray) -> Risk:
        _, concern, crisis = (float(value) for value in levels)
        level = NONE
        if crisis >= self.thresholds.crisis:
            level = CRISIS
        elif crisis + concern >= self.thresholds.concern:
            level = CONCERN
        kind = RISK_KINDS[1 + int(kinds[1:].argmax())]
        return Risk(level, kind, round(crisis, 4), round(concern, 4))
