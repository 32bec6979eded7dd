"""The stages of the pipeline: understand → plan → generate → rerank → guard.

Each stage is a Protocol. A class that inherits from it gets the batch methods, which call the single ones in
turn; a class that can do better overrides them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from listenwell.dialogue import CAREFUL, INSTRUCTION, Candidate, Dialogue, Factors, Notes, Scored

OnText = Callable[[str], None]
"""Is called with each chunk of a reply's text."""
Emotions = Sequence[Scored]
PlanRequest = tuple[Dialogue, Emotions | None, Factors, int]
"""Dialogue, its emotions (None where the stage understand is off), the target, the seed."""
GenerateRequest = tuple[Dialogue, Sequence[Factors], int]
"""Dialogue, its plans (none for a reply without one), the seed."""


CARE_INSTRUCTION = (
    "This person may be at risk. Be calm, warm and brief. Do not cheer, joke or give advice. Say what you "
    "understood, and ask gently how they are."
)
"""What generators that follow instructions are told where the guard sees a concern."""


def with_care(dialogue: Dialogue) -> Dialogue:
    """A dialogue whose reply must be careful: a note for planners, an instruction for other generators."""
    instruction = "\n".join(filter(None, (dialogue.note(INSTRUCTION), CARE_INSTRUCTION)))
    notes = dict(dialogue.notes) | {CAREFUL: "true", INSTRUCTION: instruction}
    return replace(dialogue, notes=tuple(notes.items()))


@dataclass(frozen=True)
class GeneratorOutput:
    """The candidates a generator proposes, and what the user should know about them."""

    candidates: tuple[Candidate, ...]
    notices: tuple[str, ...] = ()


class Understand(Protocol):
    """Predicts what the other person feels."""

    def understand(self, dialogue: Dialogue) -> tuple[Scored, ...]:
        """Emotions with probabilities, the most likely first."""

    def understand_batch(self, dialogues: Sequence[Dialogue]) -> list[tuple[Scored, ...]]:
        """`understand` for several dialogues."""
        return [self.understand(dialogue) for dialogue in dialogues]


@runtime_checkable
class Plan(Protocol):
    """Decides what a reply should do before its text is generated."""

    def plan(
        self, dialogue: Dialogue, emotion: Emotions | None, target: Factors, seed: int
    ) -> tuple[Factors, ...]:
        """One plan or several, the likeliest first; every plan holds the target."""

    def plan_batch(self, requests: Sequence[PlanRequest]) -> list[tuple[Factors, ...]]:
        """`plan` for several dialogues."""
        return [self.plan(*request) for request in requests]


class Generate(Protocol):
    """Generates the text of replies."""

    name: str
    config: Any = None
    """Its settings, a dataclass; None where it has none."""
    runtime: Any = None
    """The engine that runs its model, where it has one."""

    def generate(
        self, dialogue: Dialogue, plans: Sequence[Factors], seed: int, on_text: OnText | None = None
    ) -> GeneratorOutput:
        """Candidates under several plans, or without one; `on_text` gets the first of them in chunks."""

    def generate_batch(
        self, requests: Sequence[GenerateRequest], on_text: OnText | None = None
    ) -> list[GeneratorOutput]:
        """`generate` for several dialogues; `on_text` gets the first candidate of the first one."""
        return [
            self.generate(*request, None if number else on_text) for number, request in enumerate(requests)
        ]

    def retry_batch(self, requests: Sequence[GenerateRequest]) -> list[GeneratorOutput]:
        """More candidates, generated in another way, where the best ones miss their target; or none."""
        return [GeneratorOutput(()) for _ in requests]

    def use_gpu(self) -> None:
        """Move the weights to a GPU, where there is one and the engine can use it."""
        if self.runtime is not None:
            self.runtime.use_gpu()

    def conditions(self) -> dict[str, str]:
        """Settings in words, for result files; they replace those of `config` with the same names."""
        return {}

    def files(self) -> Iterable[Path]:
        """The files of its checkpoint, for their hash; none where it has no checkpoint."""
        return ()


class Rerank(Protocol):
    """Orders the candidates."""

    def rerank(
        self, dialogue: Dialogue, candidates: Sequence[Candidate], target: Factors | None = None
    ) -> tuple[Candidate, ...]:
        """The candidates with their scores, the best first; `target` is what the caller asked for."""

    def misses_target(self, ranked: Sequence[Candidate], target: Factors | None) -> bool:
        """Whether the first candidate does not do what the caller asked for, so that a retry is worth it."""
        return False

    def conditions(self) -> dict[str, str]:
        """Every setting that can change an order, in words, for result files."""
        return {"reranker": type(self).__name__}


@dataclass(frozen=True)
class Verdict:
    """The guard's decision: the text of the reply, and why."""

    text: str
    safety: Mapping[str, str] | Notes = ()
    """Notes for page and API, never what a person wrote: `safety.guard.NOTES` lists them."""
    candidate: Candidate | None = None
    """The candidate that was selected; None where the guard wrote the text itself."""


class Assessment(Protocol):
    """What a guard found in a dialogue before anything is generated; each guard has its own type."""

    @property
    def verdict(self) -> Verdict | None:
        """A fixed reply that makes generation unnecessary, such as in a crisis; None to go on."""

    @property
    def careful(self) -> bool:
        """Whether the reply must be careful (`dialogue.CAREFUL`): the person may be at risk."""


class Guard(Protocol):
    """Decides whether a reply is generated at all, and which candidate is given."""

    def assess(self, dialogue: Dialogue) -> Assessment:
        """What the dialogue holds; computed once a reply."""

    def select(
        self,
        dialogue: Dialogue,
        candidates: Sequence[Candidate],
        assessment: Any,  # noqa: ANN401 - the guard's own type, as `assess` returned it
    ) -> Verdict:
        """The first candidate that may be given, or another text instead."""

    def allows(self, text: str, assessment: Any) -> bool:  # noqa: ANN401 - as above
        """Whether the beginning of a reply may be shown before the reply is finished."""
        return False
