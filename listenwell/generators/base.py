"""What goes into an engine and what comes out of a generator."""

from dataclasses import dataclass

from listenwell.dialogue import Candidate
from listenwell.runtime.base import State

INSTRUCTION_NOTE = "instruction"
"""The note of a dialogue with an instruction for generators that follow one (prompted, remote)."""


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
    """What stands before replies, as an engine has read it."""

    state: State
    """A row for each reply."""
    stop: frozenset[int]
    """Tokens that end a reply; none begins with one."""
    room: int
    """How many more tokens the engine's context holds."""
    heard: bool = False
    """Whether replies keep what the model makes of their words (`Runtime.hidden_states`), which takes no time."""


@dataclass(frozen=True)
class GeneratorOutput:
    """The replies a generator proposes, and what the user should know about them."""

    candidates: tuple[Candidate, ...]
    notices: tuple[str, ...] = ()
