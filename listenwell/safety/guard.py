"""The pipeline stage *guard*: fixed answers in a crisis, honesty about being a program, and a reply filter.

`assess` runs once per reply, before generation; `select` after reranking. Neither stores anything, and their
notes hold no words of the user. After a crisis the conversation stays a concern for some messages, whatever
they say: a denial does not undo it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from listenwell.dialogue import Candidate, Dialogue
from listenwell.pipeline import Verdict
from listenwell.safety.answers import answer, answered_kind, fallback, given_before
from listenwell.safety.classifier import CONCERN, CRISIS, NONE
from listenwell.safety.crisis import Detector, Finding, last_message
from listenwell.safety.everyday import everyday_answer
from listenwell.safety.help import Help, help_for
from listenwell.safety.identity import asks_who, who
from listenwell.safety.replies import careless, faults

AFTERCARE = 10
"""For so many of its own turns after the answer to a crisis, the listener stays careful."""

NOTES = {
    "level": "none, concern or crisis: what the last message holds",
    "kind": "of crisis, unless the level is none",
    "answer": "fixed for a fixed answer, fallback if every candidate was dropped, otherwise candidate",
    "dropped": "how many candidates were dropped, if any",
    "reasons": "why they were dropped, the most frequent first",
    "help": "help lines as name: number, unless the level is none",
    "directory": "where to find help, unless the level is none",
    "emergency": "the number to call, unless the level is none",
}
"""The names in a verdict's notes, and what they mean."""


@dataclass(frozen=True)
class Assessment:
    """The result of crisis detection on the last message."""

    finding: Finding
    verdict: Verdict | None = None
    """The fixed answer, if nothing should be generated."""

    @property
    def careful(self) -> bool:
        """Whether the reply must not cheer or advise: the person may be at risk."""
        return self.finding.level == CONCERN


@dataclass(frozen=True)
class Guard:
    """Detects crises and filters replies. `Guard.load()` gives the default one."""

    detector: Detector
    help: Help = field(default_factory=help_for)

    @classmethod
    def load(cls, country: str | None = None) -> "Guard":
        """With the shipped classifier.

        Args:
            country: two letters, for the help lines; by default a worldwide directory is named.
        """
        return cls(Detector.load(), help_for(country))

    def assess(self, dialogue: Dialogue) -> Assessment:
        """Detect a crisis in the last message, a question about who is there, or an everyday turn.

        Several messages of the user in a row are read as one.
        """
        text, own = last_message(dialogue), _own_turns(dialogue)
        finding = _after_crisis(self.detector.assess(dialogue), own)
        if finding.level == CRISIS and finding.kind is not None:
            fixed = answer(finding.kind, self.help, given_before(finding.kind, own))
        elif asks_who(text):
            fixed = who(own)
        elif finding.level == NONE and (usual := everyday_answer(text, own)):
            fixed = usual
        else:
            return Assessment(finding)
        return Assessment(finding, Verdict(fixed, _frozen(self._notes(finding) | {"answer": "fixed"})))

    def select(self, dialogue: Dialogue, candidates: Sequence[Candidate], assessment: Assessment) -> Verdict:
        """The first candidate without a fault, or a safe fallback; the fixed answer of the assessment if any.

        Args:
            dialogue: ends with the message to reply to.
            candidates: the best first.
            assessment: of this dialogue.
        """
        if assessment.verdict is not None:
            return assessment.verdict
        notes, reasons = self._notes(assessment.finding), Counter[str]()
        for dropped, candidate in enumerate(candidates):
            own_reasons = {fault.reason for fault in faults(candidate.text)}
            if assessment.careful:
                own_reasons.update(careless(candidate.text))
            if not own_reasons and candidate.text.strip():
                notes |= _dropped(dropped, reasons) | {"answer": "candidate"}
                return Verdict(candidate.text, _frozen(notes), candidate)
            reasons.update(own_reasons or {"empty"})
        notes |= _dropped(len(candidates), reasons) | {"answer": "fallback"}
        return Verdict(fallback(_own_turns(dialogue)), notes)

    def allows(self, text: str, assessment: Assessment) -> bool:
        """Whether the beginning of a reply has no fault, so that it may be shown while the rest is made."""
        return not (faults(text) or (assessment.careful and careless(text)))

    def _notes(self, finding: Finding) -> dict[str, str]:
        if finding.level == NONE or finding.kind is None:
            return {"level": NONE}
        lines = ", ".join(f"{line.name}: {line.number}" for line in self.help.lines_for(finding.kind))
        notes = {"level": finding.level, "kind": finding.kind, "directory": self.help.directory}
        return notes | {"emergency": self.help.emergency} | ({"help": lines} if lines else {})


def _after_crisis(finding: Finding, own_turns: Sequence[str]) -> Finding:
    """At least a concern where one of the last answers was to a crisis."""
    kind = next(filter(None, map(answered_kind, reversed(own_turns[-AFTERCARE:]))), None)
    if finding.level != NONE or kind is None:
        return finding
    return replace(finding, level=CONCERN, kind=kind)


def _own_turns(dialogue: Dialogue) -> list[str]:
    return [turn.text for turn in dialogue.turns if turn.speaker == dialogue.listener]


def _dropped(count: int, reasons: Counter[str]) -> dict[str, str]:
    names = ", ".join(reason for reason, _ in reasons.most_common())
    return {"dropped": str(count), "reasons": names} if count else {}


def _frozen(notes: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(notes.items()))
