"""The listener's place *guard*: no generated text in a crisis, the truth about who is there, and no reply
that must not be said.

`check` comes before anything is worded; `guard` after the choice. Neither keeps anything, and their notes
hold no word of what a person wrote.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from listenwell.dialogue import Candidate, Dialogue
from listenwell.pipeline import Verdict
from listenwell.safety.answers import answer, fallback, given_before
from listenwell.safety.context_modifiers import CRISIS, NONE
from listenwell.safety.crisis import Detector, Finding, said_last
from listenwell.safety.help import Help, help_for
from listenwell.safety.identity import asks_who, who
from listenwell.safety.replies import faults

NOTES = {
    "level": "none, concern or crisis: what the last message holds",
    "kind": "of crisis, where the level is not none",
    "answer": "fixed where the reply is one of the fixed answers, fallback where every candidate was "
    "dropped, else candidate",
    "dropped": "how many candidates were dropped, where some were",
    "reasons": "for which reasons, the most frequent first",
    "help": "help lines as name: number, where the level is not none",
    "directory": "where to find help, where the level is not none",
    "emergency": "the number to call, where the level is not none",
}
"""The names in a verdict's notes, and what they mean."""


@dataclass(frozen=True)
class CrisisAssessment:
    """The result of crisis detection on the last message."""

    finding: Finding
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Guard:
    """ClassifierBackend a crisis and filters replies. `Guard.load()` gives the default one."""

    detector: Detector
    help: Help = field(default_factory=help_for)

    @classmethod
    def load(cls, country: str | None = None) -> "Guard":
        """With the shipped head.

        Args:
            country: two letters, for the help lines; without, a directory of the whole world is named.
        """
        return cls(Detector.load(), help_for(country))

    def find(self, dialogue: Dialogue) -> Finding:
        """What the other person's last message holds; several in a row are read as one."""
        return self.detector.find(said_last(dialogue))

    def assess(self, dialogue: Dialogue) -> "CrisisAssessment":
        """What the last message holds, and the fixed answer to a crisis or to the question who is there."""
        finding = self.find(dialogue)
        return CrisisAssessment(finding, self._answered(dialogue, finding))

    def select(
        self, dialogue: Dialogue, candidates: Sequence[Candidate], assessment: CrisisAssessment
    ) -> Verdict:
        """The first candidate that may be given, or a safe reply; the fixed answer where there is one.

        Args:
            dialogue: up to the turn to be answered.
            candidates: possible replies, the best first.
            assessment: what `assess` returned for this dialogue.
        """
        if assessment.verdict is not None:
            return assessment.verdict
        finding = assessment.finding
        notes = self._notes(finding)
        reasons: Counter[str] = Counter()
        for dropped, candidate in enumerate(candidates):
            found = {fault.reason for fault in faults(candidate.text)}
            if not found and candidate.text.strip():
                notes |= _dropped(dropped, reasons) | {"answer": "candidate"}
                return Verdict(candidate.text, notes, candidate)
            reasons.update(found or {"empty"})
        notes |= _dropped(len(candidates), reasons) | {"answer": "fallback"}
        return Verdict(fallback(_own_turns(dialogue)), notes)

    def _answered(self, dialogue: Dialogue, finding: Finding) -> Verdict | None:
        own = _own_turns(dialogue)
        if finding.level == CRISIS and finding.kind is not None:
            text = answer(finding.kind, self.help, given_before(finding.kind, own))
        elif asks_who(said_last(dialogue)):
            text = who(own)
        else:
            return None
        return Verdict(text, self._notes(finding) | {"answer": "fixed"})

    def _notes(self, finding: Finding) -> dict[str, str]:
        if finding.level == NONE or finding.kind is None:
            return {"level": NONE}
        lines = ", ".join(f"{line.name}: {line.number}" for line in self.help.lines)
        found = {"level": finding.level, "kind": finding.kind, "directory": self.help.directory}
        return found | {"emergency": self.help.emergency} | ({"help": lines} if lines else {})


def _own_turns(dialogue: Dialogue) -> list[str]:
    return [turn.text for turn in dialogue.turns if turn.speaker == dialogue.listener]


def _dropped(count: int, reasons: Counter[str]) -> dict[str, str]:
    shown = ", ".join(reason for reason, _ in reasons.most_common())
    return {"dropped": str(count), "reasons": shown} if count else {}
