"""What goes into an engine and what comes out of a generator."""

from dataclasses import dataclass

from listenwell.dialogue import Candidate


@dataclass(frozen=True)
class Prompt:
    """Tokens ready for an engine."""

    tokens: tuple[int, ...]
    stop: frozenset[int]
    """Tokens that end the reply."""
    notices: tuple[str, ...] = ()
    """What the user should know, such as that a long text was cut."""


@dataclass(frozen=True)
class Speech:
    """The replies a generator proposes, and what the user should know about them."""

    candidates: tuple[Candidate, ...]
    notices: tuple[str, ...] = ()
