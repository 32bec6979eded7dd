"""What every generator has: its settings, its capabilities and the prompts it continues."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from listenwell.checkpoint import open_checkpoint
from listenwell.pipeline import Generate, Plan
from listenwell.runtime.base import State

NEXT_SEED = 1_000_003
"""The distance between the seeds of one reply's candidates."""


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
    _folder: Path | None = None
    """Of its checkpoint."""

    @classmethod
    def load(cls, config: Any, weights: Path | None = None) -> Self:  # noqa: ANN401
        """A generator ready to use; `weights` is the user's own folder."""
        raise NotImplementedError

    @classmethod
    def can_plan(cls) -> bool:
        """Whether it also fills the stage *plan*."""
        return issubclass(cls, Plan)

    def files(self) -> Iterator[Path]:
        """The files of its checkpoint, for their hash; none where it has no checkpoint."""
        if self._folder is not None:
            checkpoint = open_checkpoint(self._folder)
            yield from map(checkpoint.path, checkpoint.sums)


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
    starts: tuple[Hashable, ...] = ()
    """For each row what it continues. In beam search, rows with the same start share one search and get
    different replies, the best first; without this, every row has a search of its own."""
