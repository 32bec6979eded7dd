"""Crisis detection in a message, by patterns and a trained classifier.

A strong pattern is a crisis unless its context says otherwise (negated, past, a song, a joke); a weak one
needs the classifier to agree; the classifier alone needs a high probability. What is past, denied or only
hinted at is a *concern*: the conversation continues, and help is mentioned.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from listenwell.dialogue import Dialogue
from listenwell.safety import context_modifiers
from listenwell.safety.context_modifiers import CONCERN, CRISIS, LEVELS, NONE
from listenwell.safety.head import PAST, Head
from listenwell.safety.normalizer import Normalized, normalize
from listenwell.safety.patterns.base import KINDS, STRONG, patterns

SURE = 0.9
"""Probability from which the classifier alone makes a crisis."""
AGREES = 0.3
"""Probability from which it confirms a weak pattern."""
UNEASY = 0.6
"""Probability from which the classifier alone makes a concern."""
SHORT = 16
"""Minimum length of a sentence for the classifier alone."""
FRAGMENT = 5
"""A message with fewer words and no final punctuation continues in the next one."""
LAST_CHARACTERS = 20_000
"""Only the end of a longer text is read, as by the listener (`listener.MAX_CHARACTERS`)."""


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
    """What found it: strong or weak (a pattern), or head (the classifier)."""


@dataclass(frozen=True)
class Finding:
    """The result of crisis detection."""

    level: str
    kind: str | None
    """Of the most severe sign; None if there is none."""
    score: float
    """The classifier's probability of a crisis, the maximum over sentences."""
    signs: tuple[Sign, ...]
    """In the order of the message."""


class Detector:
    """Detects crises. `Detector.load()` has the shipped classifier."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self._crises = [head.config.labels.index(kind) for kind in KINDS]
        self._patterns = patterns()

    @classmethod
    def load(cls, folder: Path | None = None) -> "Detector":
        """With the shipped classifier, or one from a folder."""
        return cls(Head.load(folder))

    def find(self, text: str) -> Finding:
        """Detect the signs of a crisis in a message."""
        offset = max(0, len(text) - LAST_CHARACTERS)
        read = normalize(text[offset:])
        sentences = _sentences(read.text)
        probabilities = self.head.probabilities([read.text[start:end] for start, end in sentences])
        signs, settled = self._by_patterns(read, sentences, probabilities)
        signs += self._by_head(read, sentences, probabilities, settled)
        unique = {replace(sign, start=sign.start + offset, end=sign.end + offset): None for sign in signs}
        ordered = tuple(sorted(unique, key=lambda sign: (sign.start, sign.end)))
        most_severe = max(ordered, key=_severity, default=None)
        score = round(float(probabilities[:, self._crises].sum(axis=1).max()), 4)
        if most_severe is None:
            return Finding(NONE, None, score, ())
        return Finding(most_severe.level, most_severe.kind, score, ordered)

    def _by_patterns(
        self, read: Normalized, sentences: Sequence[tuple[int, int]], probabilities: np.ndarray
    ) -> tuple[list[Sign], set[int]]:
        """The signs found by patterns, and the sentences whose context says that there is no crisis."""
        signs, settled = list[Sign](), set[int]()
        for pattern in self._patterns:
            for match in pattern.regex.finditer(read.text):
                row = _row(sentences, match.start() + 1)
                kind, level = context_modifiers.in_context(pattern, read.text, *match.span(), sentences[row])
                if level != CRISIS:
                    settled.add(row)
                if level != NONE and pattern.strength != STRONG:
                    sure = float(probabilities[row][self._crises].sum())
                    level = level if sure >= AGREES else NONE
                if level != NONE:
                    signs.append(Sign(kind, level, *read.span(*match.span()), pattern.strength))
        return signs, settled

    def _by_head(
        self,
        read: Normalized,
        sentences: Sequence[tuple[int, int]],
        probabilities: np.ndarray,
        settled: set[int],
    ) -> list[Sign]:
        """The signs found by the classifier alone; a settled sentence is a concern at most."""
        signs = list[Sign]()
        labels = self.head.config.labels
        for number, ((start, end), row) in enumerate(zip(sentences, probabilities, strict=True)):
            crisis, past = float(row[self._crises].sum()), float(row[labels.index(PAST)])
            sure = crisis >= SURE
            if end - start < SHORT or not context_modifiers.speaks_of_harm(read.text[start:end]):
                continue
            if sure or crisis >= UNEASY or past >= SURE:
                kind = KINDS[int(row[self._crises].argmax())]
                soft = not sure or number in settled or context_modifiers.softened(read.text, start, end)
                signs.append(Sign(kind, CONCERN if soft else CRISIS, *read.span(start, end), "head"))
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


def _row(sentences: Sequence[tuple[int, int]], position: int) -> int:
    """The index of the sentence at a position."""
    return next((row for row, (_, end) in enumerate(sentences) if position < end), len(sentences) - 1)


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
