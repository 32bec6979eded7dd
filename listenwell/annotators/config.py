"""The settings of a multi-task classifier, and what its scores mean. Imports no torch."""

from dataclasses import dataclass

import numpy as np

from listenwell.annotators.heads import HEADS
from listenwell.errors import InputError, unknown_name
from listenwell.labels import current_factor
from listenwell.recipe import check_one_of
from listenwell.serialization import Record

KIND = "classifier"
POOLINGS = ("mean", "first", "last")


@dataclass(frozen=True)
class ClassifierConfig(Record):
    """The settings of a multi-task classifier."""

    base: str
    """The encoder, a name of `weights.BASE_MODELS`."""
    heads: tuple[str, ...]
    """Names of `heads.HEADS`."""
    pooling: str = "mean"
    """mean over all states, or the first or last of them."""
    limit: int = 256
    """Tokens it reads at most."""
    marks_words: bool = False
    """Whether heads of levels also mark the words that show them."""
    temperatures: tuple[tuple[str, float], ...] = ()
    """By head; logits are divided by it before the softmax (Guo et al. 2017)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "heads", tuple(map(current_factor, self.heads)))
        renamed = tuple((current_factor(head), value) for head, value in self.temperatures)
        object.__setattr__(self, "temperatures", renamed)
        for name in self.heads:
            if name not in HEADS:
                raise unknown_name("head", name, HEADS)
        check_one_of("pooling", self.pooling, POOLINGS)

    def temperature(self, head: str) -> float:
        """The head's temperature; 1 where none was fitted."""
        return dict(self.temperatures).get(head, 1.0)

    @property
    def marked(self) -> tuple[str, ...]:
        """Heads that mark words, in order."""
        return tuple(name for name in self.heads if HEADS[name].view == "reply") if self.marks_words else ()

    def check_room(self, positions: int) -> None:
        """Raise an error if the encoder reads fewer tokens than the classifier."""
        if self.limit > positions:
            raise InputError(
                f"The classifier's limit is {self.limit} tokens, but its encoder reads {positions}.",
                "Lower the limit.",
            )


def no_marks() -> InputError:
    """The error of a classifier without heads that mark words."""
    return InputError("This classifier marks no words.", "Train one with marks_words.")


def probabilities(logits: np.ndarray, head: str, temperature: float) -> np.ndarray:
    """Calibrated probabilities of a head's labels: (texts, labels)."""
    scaled = logits / temperature
    if HEADS[head].several:
        return np.asarray(np.exp(-np.logaddexp(0.0, -scaled)))  # 1 / (1 + exp(−x)), which overflows
    shifted = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
