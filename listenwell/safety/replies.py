"""The reply filter: patterns for eight kinds of replies that must not be shown.

They cover insults, contempt for groups of people, encouragement of harm, medical and legal instructions,
claims to be human, promises of actions, and requests for personal data. "See a doctor" and "call the police"
pass.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from listenwell.metrics.checks import check_some
from listenwell.safety.normalizer import normalize
from listenwell.safety.patterns.base import read

INSULT, CONTEMPT, HARM, MEDICAL, LEGAL, HUMAN, PROMISE, PERSONAL = REASONS = (
    "insult",
    "contempt",
    "harm",
    "medical",
    "legal",
    "human",
    "promise",
    "personal",
)
FILE = Path(__file__).parent / "patterns" / "replies.txt"
CHEERING, ADVICE = CARELESS = ("cheering", "advice")
"""What a reply to a person who may be at risk leaves out."""
_CARELESS_FILE = FILE.with_name("careless.txt")
_DENIED = re.compile(r" (?:not|never|no|without)(?: (?!but|so|,)\S+){0,3} $")
_ASKED = re.compile(
    r" (?:do|did|does|would|are|have|has|can|could|were|was|is) (?:you|they|he|she|we) (?:\S+ ){0,4}$"
)
"""Before a match: "did they press charges?" is a question, no instruction."""
_WISHED = re.compile(r" (?:wish|wished|if only|if i were|hope|imagine) ")
_THOUGHT = re.compile(
    r" (?:that|thinking|think|thinks|thought|like|if|believe|feel|feeling|told|tell|tells|say|says|said|me)"
    r"(?: that| you)* $"
)
"""Before an insult: somebody else thinks or said so."""
_EXCUSES: Mapping[str, tuple[re.Pattern[str], ...]] = MappingProxyType(
    {
        INSULT: (_DENIED, _THOUGHT),
        CONTEMPT: (_DENIED, _ASKED, _THOUGHT),
        HARM: (_DENIED, _ASKED),
        MEDICAL: (_DENIED, _ASKED),
        LEGAL: (_DENIED, _ASKED),
        PROMISE: (_WISHED,),
    }
)
"""For each reason, what excuses a match if it stands before it in the same clause."""


@dataclass(frozen=True)
class Fault:
    """A part of a reply that must not be shown."""

    reason: str
    """One of `REASONS`."""
    text: str
    """The matched text."""
    start: int
    """Its start in the reply."""
    end: int


def faults(reply: str) -> tuple[Fault, ...]:
    """The faults of a reply, in order; of overlapping ones with the same reason the first."""
    normal, matches = normalize(reply), list[Fault]()
    for reason, regex in _patterns():
        for match in regex.finditer(normal.text):
            clause = max(normal.text.rfind(mark, 0, match.start() + 1) for mark in (" . ", " ? ", " , "))
            before = normal.text[max(clause, 0) : match.start() + 1]
            if not any(excuse.search(before) for excuse in _EXCUSES.get(reason, ())):
                start, end = normal.span(match.start(), match.end())
                matches.append(Fault(reason, reply[start:end], start, end))
    return _first_of_each(sorted(matches, key=lambda fault: (fault.start, -fault.end)))


def careless(reply: str) -> tuple[str, ...]:
    """Which of CARELESS a reply holds: it must not cheer or advise a person who may be at risk."""
    text = normalize(reply).text
    patterns = _careless_patterns()
    return tuple(dict.fromkeys(reason for reason, regex in patterns if regex.search(text)))


def fault_rates(replies: Sequence[str]) -> dict[str, float]:
    """The percentage of replies with each fault, and with any."""
    check_some(replies, "replies")
    reasons = [{fault.reason for fault in faults(reply)} for reply in replies]
    rates = {reason: 100 * sum(reason in own for own in reasons) / len(replies) for reason in REASONS}
    return rates | {"any": 100 * sum(map(bool, reasons)) / len(replies)}


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(read(FILE.read_text(encoding="utf-8"), REASONS, FILE.name))


@cache
def _careless_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(read(_CARELESS_FILE.read_text(encoding="utf-8"), CARELESS, _CARELESS_FILE.name))


def _first_of_each(ordered: Sequence[Fault]) -> tuple[Fault, ...]:
    ends: dict[str, int] = {}
    kept = list[Fault]()
    for fault in ordered:
        if fault.start >= ends.get(fault.reason, 0):
            kept.append(fault)
            ends[fault.reason] = fault.end
    return tuple(kept)
