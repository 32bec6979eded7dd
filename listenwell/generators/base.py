"""What a generator gives the listener."""

from dataclasses import dataclass

from listenwell.dialogue import Candidate


@dataclass(frozen=True)
class Speech:
    """The replies a generator proposes, and what the user should know (such as a text that was cut)."""

    candidates: tuple[Candidate, ...]
    notices: tuple[str, ...] = ()
