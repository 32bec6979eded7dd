"""The listener's places: what it asks of whoever understands, plans, speaks, chooses and guards.

Any object with the method fills a place. Where one can answer for several dialogues at once (`plan_many`,
`speak_many`, `understand_many`), a batch of them is asked so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from listenwell.dialogue import Candidate, Dialogue, Factors, Notes, Scored
from listenwell.generators.base import GeneratorOutput


class Understand(Protocol):
    """ClassifierBackend what the other person feels."""

    def understand(self, dialogue: Dialogue) -> tuple[Scored, ...]:
        """Emotions with probabilities, the most likely first."""
        ...


class Plan(Protocol):
    """Decides what replies should do before any is worded."""

    def plan(
        self, dialogue: Dialogue, emotion: tuple[Scored, ...] | None, want: Factors, seed: int
    ) -> tuple[Factors, ...]:
        """One plan or several to try, the likeliest first; all have the parts that are wanted."""
        ...


class Generate(Protocol):
    """Words replies."""

    name: str

    def generate(
        self,
        dialogue: Dialogue,
        plans: Sequence[Factors],
        seed: int,
        on_text: Callable[[str], None] | None = None,
    ) -> GeneratorOutput:
        """Replies under several plans, or under none; `on_text` hears the first of them as it is made."""
        ...


class Rerank(Protocol):
    """Picks among the replies that were proposed."""

    def rerank(
        self, dialogue: Dialogue, candidates: Sequence[Candidate], want: Factors | None = None
    ) -> tuple[Candidate, ...]:
        """The candidates with their scores, the best first; `want` is what a reply was asked to do."""
        ...


@dataclass(frozen=True)
class Verdict:
    """What a guard says: the text that may be said, and why."""

    text: str
    safety: Notes = ()
    """Names and values for page and API, never what a person wrote: `safety.guard.NOTES` lists them."""
    candidate: Candidate | None = None
    """The reply that may be said; None where none of them may, or where nothing should be generated."""


class Guard(Protocol):
    """Has the first word and the last: whether a reply should be made, and which may be said."""

    def check(self, dialogue: Dialogue) -> Verdict | None:
        """What to say instead of anything generated, such as in a crisis; None to go on."""
        ...

    def guard(self, dialogue: Dialogue, candidates: Sequence[Candidate]) -> Verdict:
        """The first of the replies that may be said, or another text in their place."""
        ...
