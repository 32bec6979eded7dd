"""The listener's place *guard*: no generated text in a crisis, the truth about who is there, and no reply
that must not be said.

`check` comes before anything is worded; `guard` after the choice. Neither keeps anything, and their notes
hold no word of what a person wrote.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from listenwell.dialogue import Candidate, Dialogue, Notes
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

    def check(self, dialogue: Dialogue) -> Verdict | None:
        """The fixed answer where the last message speaks of a crisis, or asks who is there; None where the
        talk may go on."""
        return self._answered(dialogue, self.find(dialogue))

    def guard(self, dialogue: Dialogue, candidates: Sequence[Candidate]) -> Verdict:
        """The first candidate that may be said, or a safe reply; a fixed answer where `check` has one.

        Args:
            dialogue: up to what is to be answered.
            candidates: what could be said, the best first.
        """
        finding = self.find(dialogue)
        if (fixed := self._answered(dialogue, finding)) is not None:
            return fixed  # also for those who did not ask `check` first
        notes = self._notes(finding)
        reasons: Counter[str] = Counter()
        for dropped, candidate in enumerate(candidates):
            found = {fault.reason for fault in faults(candidate.text)}
            if not found and candidate.text.strip():
                notes |= _dropped(dropped, reasons) | {"answer": "candidate"}
                return Verdict(candidate.text, _frozen(notes), candidate)
            reasons.update(found or {"empty"})
        notes |= _dropped(len(candidates), reasons) | {"answer": "fallback"}
        return Verdict(fallback(_own_turns(dialogue)), _frozen(notes))

    def _answered(self, dialogue: Dialogue, finding: Finding) -> Verdict | None:
        own = _own_turns(dialogue)
        if finding.level == CRISIS and finding.kind is not None:
            text = answer(finding.kind, self.help, given_before(finding.kind, own))
        elif asks_who(said_last(dialogue)):
            text = who(own)
        else:
            return None
        return Verdict(text, _frozen(self._notes(finding) | {"answer": "fixed"}))

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


def _frozen(notes: dict[str, str]) -> Notes:
    return tuple(sorted(notes.items()))
