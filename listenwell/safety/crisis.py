"""Crisis detection in a person's last messages: a classifier, and patterns as a floor.

The classifier reads the last turns together. A strong pattern is a crisis unless its context says otherwise
(negated, past, a song, a joke); a weak one needs the classifier to agree. Patterns only raise the
classifier's level. What is past, denied or not certain is a *concern*: the conversation continues with care,
and help is mentioned.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from listenwell.annotators.views import View, recent_view
from listenwell.dialogue import Dialogue
from listenwell.safety import context_modifiers
from listenwell.safety.answers import answered_kind
from listenwell.safety.classifier import CONCERN, CRISIS, NONE, CrisisClassifier
from listenwell.safety.normalizer import normalize
from listenwell.safety.patterns.base import STRONG, patterns

LEVELS = (NONE, CONCERN, CRISIS)
AGREES = 0.2
"""Probability of a crisis from which the classifier confirms a weak pattern."""
FRAGMENT = 5
"""A message with fewer words and no final punctuation continues in the next one."""
LAST_CHARACTERS = 20_000
"""Only the end of a longer text is read, as by the listener (`listener.MAX_CHARACTERS`)."""
CLASSIFIER = "classifier"


@dataclass(frozen=True)
class Sign:
    """A sign of a crisis in a message."""

    kind: str
    """One of `KINDS`."""
    level: str
    start: int
    """Its start in the message."""
    end: int
    by: str
    """What found it: strong or weak (a pattern), or classifier, whose sign is the whole message."""


@dataclass(frozen=True)
class Finding:
    """The result of crisis detection."""

    level: str
    kind: str | None
    """Of the most severe sign; None if there is none."""
    score: float
    """The classifier's probability of a crisis."""
    signs: tuple[Sign, ...]
    """In the order of the message."""


class Detector:
    """Detects crises. `Detector.load()` has the shipped classifier."""

    def __init__(self, classifier: CrisisClassifier) -> None:
        self.classifier = classifier
        self._patterns = patterns()

    @classmethod
    def load(cls, folder: Path | None = None) -> "Detector":
        """With the shipped classifier, or one from a folder."""
        return cls(CrisisClassifier.load(folder))

    def assess(self, dialogue: Dialogue) -> Finding:
        """Detect a crisis in a dialogue's last message; several messages in a row are read as one."""
        return self._find(last_message(dialogue), self.view(dialogue))

    def view(self, dialogue: Dialogue) -> View:
        """What the classifier reads: the last turns, after the last fixed answer to a crisis.

        What was answered is not detected again; the guard stays careful after it.
        """
        turns = dialogue.turns
        for number in range(len(turns) - 1, -1, -1):
            if turns[number].speaker == dialogue.listener and answered_kind(turns[number].text):
                turns = turns[number + 1 :]
                break
        return recent_view(turns, dialogue.listener)

    def find(self, text: str) -> Finding:
        """Detect a crisis in a message without a conversation before it."""
        return self._find(text, ((text[-LAST_CHARACTERS:], False),))

    def _find(self, text: str, view: View) -> Finding:
        risk = self.classifier.predict(view)
        signs = self._by_patterns(text, risk.crisis)
        if risk.level != NONE:
            signs.append(Sign(risk.kind, risk.level, 0, len(text), CLASSIFIER))
        ordered = tuple(sorted(dict.fromkeys(signs), key=lambda sign: (sign.start, sign.end)))
        gravest = max(ordered, key=_severity, default=None)
        if gravest is None:
            return Finding(NONE, None, risk.crisis, ())
        return Finding(gravest.level, gravest.kind, risk.crisis, ordered)

    def _by_patterns(self, text: str, probability: float) -> list[Sign]:
        """The signs found by patterns; `probability` is the classifier's of a crisis."""
        offset = max(0, len(text) - LAST_CHARACTERS)
        read = normalize(text[offset:])
        sentences, signs = _sentences(read.text), list[Sign]()
        for pattern in self._patterns:
            if pattern.strength != STRONG and probability < AGREES:
                continue
            for match in pattern.regex.finditer(read.text):
                sentence = _around(sentences, match.start() + 1)
                kind, level = context_modifiers.in_context(pattern, read.text, *match.span(), sentence)
                if level != NONE:
                    sign = Sign(kind, level, *read.span(*match.span()), pattern.strength)
                    signs.append(replace(sign, start=sign.start + offset, end=sign.end + offset))
        return signs


def _severity(sign: Sign) -> tuple[int, int, int]:
    """By level, then strong patterns before others, then by urgency of the kind."""
    return LEVELS.index(sign.level), sign.by == STRONG, -_ORDER.index(sign.kind)


_ORDER = ("emergency", "suicide", "harm_to_others", "abuse", "self_harm", "someone_else")


def _sentences(text: str) -> list[tuple[int, int]]:
    """The spans of the sentences of normalized text; at least one."""
    spans, start = list[tuple[int, int]](), 0
    for index, letter in enumerate(text):
        if letter in ".?" and text[index - 1] == " ":
            if index - 1 > start:
                spans.append((start, index + 1))
            start = index + 1
    if len(text) - 1 > start:
        spans.append((start, len(text)))
    return spans or [(0, len(text))]


def _around(sentences: Sequence[tuple[int, int]], position: int) -> tuple[int, int]:
    """The span of the sentence at a position."""
    return next((span for span in sentences if position < span[1]), sentences[-1])


def last_message(dialogue: Dialogue) -> str:
    """The user's turns since the last one of the listener, as one text: a thought may span several."""
    parts = list[str]()
    for turn in reversed(dialogue.turns):
        if turn.speaker == dialogue.listener:
            break
        parts.append(turn.text)
    text = ""
    for part in reversed(parts):
        text += (" " if _unfinished(text) else "\n") + part if text else part
    return text


def _unfinished(text: str) -> bool:
    """Whether the last line is the start of a sentence: a few words without final punctuation."""
    last = text.rsplit("\n", 1)[-1].strip()
    return len(last.split()) < FRAGMENT and last[-1:].isalnum()
