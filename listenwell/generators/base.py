"""What every generator has: its settings, its capabilities, and what evaluation asks of it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from listenwell.dialogue import Dialogue, Example, Factors
from listenwell.metrics import Perplexity
from listenwell.pipeline import Generate, Plan
from listenwell.runtime.base import State


@dataclass(frozen=True)
class Capabilities:
    """What a kind of generator can do."""

    ranked: bool = False
    """Its candidates are already in their final order, so that no reranker is needed."""
    parts: tuple[tuple[str, str], ...] = ()
    """Parts that can be switched off, each with the setting that does it."""


class Generator(Generate):
    """Base class of the generators: one that also plans inherits from `Plan` too."""

    Config: ClassVar[Any]
    """The dataclass of its settings."""
    capabilities: ClassVar[Capabilities] = Capabilities()
    config: Any
    name: str

    @classmethod
    def load(cls, config: Any, weights: Path | None = None) -> Self:  # noqa: ANN401
        """A generator ready to use; `weights` is the user's own folder."""
        raise NotImplementedError

    @classmethod
    def can_plan(cls) -> bool:
        """Whether it also fills the stage *plan*."""
        return issubclass(cls, Plan)

    def conditions(self) -> dict[str, str]:
        """Settings in words, for result files; they replace those of `config` with the same names."""
        return {}

    def files(self) -> Iterator[Path]:
        """The files of its checkpoint, for their hash; none where it has no checkpoint."""
        return iter(())


@runtime_checkable
class HasPerplexity(Protocol):
    """A generator that can tell how likely human replies are."""

    def perplexity(self, examples: Iterable[Example]) -> Perplexity:
        """Perplexity by token, word and byte."""


@runtime_checkable
class PredictsFactors(Protocol):
    """A generator that predicts the factors of the next reply."""

    def factor_probabilities(self, dialogue: Dialogue, known: Factors) -> dict[str, np.ndarray]:
        """Factor to the probabilities of its labels, for factors that `known` leaves open."""


@dataclass(frozen=True)
class Prompt:
    """Tokens ready for an engine."""

    tokens: tuple[int, ...]
    stop: frozenset[int]
    """Tokens that end the reply."""
    notices: tuple[str, ...] = ()
    """What the user should know, such as that a long text was cut."""


@dataclass(frozen=True)
class Prefix:
    """The engine's state before the first token of each reply."""

    state: State
    """A row for each reply."""
    stop: frozenset[int]
    """Tokens that end a reply; none begins with one."""
    room: int
    """How many more tokens the engine's context holds."""
    keeps_hidden_states: bool = False
    """Whether the replies' hidden states are kept (`Runtime.hidden_states`), which costs no time."""
