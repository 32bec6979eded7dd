"""Whether a message speaks of a crisis: patterns and a trained head together.

A strong pattern is a crisis unless its circumstances say otherwise (denied, long past, a song, a joke); a
weak one needs the head to agree; the head alone needs to be very sure. What is past, denied or half said is a
*concern*: the talk goes on, and help is shown softly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from listenwell.dialogue import Dialogue
from listenwell.safety import context_modifiers
from listenwell.safety.context_modifiers import CONCERN, CRISIS, LEVELS, NONE
from listenwell.safety.head import PAST, Head
from listenwell.safety.normalizer import Normalized, normalize
from listenwell.safety.patterns.base import KINDS, STRONG, patterns

SURE = 0.9
"""From which probability on the head alone makes a crisis."""
AGREES = 0.3
"""From which probability on it confirms a weak pattern."""
UNEASY = 0.6
"""From which probability on the head alone makes a concern."""
SHORT = 16
"""A sentence with fewer letters tells the head too little."""
FRAGMENT = 5
"""A message with fewer words and no mark at its end goes on in the next one."""
LAST_CHARACTERS = 20_000
"""Of a longer text the end is read; a listener reads no more either (`listener.MAX_CHARACTERS`)."""


@dataclass(frozen=True)
class Sign:
    """Something in a message that speaks of a crisis."""

    kind: str
    """One of `KINDS`."""
    level: str
    start: int
    """Where it begins in the message."""
    end: int
    by: str
    """What found it: a strong or weak pattern, or the head."""


@dataclass(frozen=True)
class Finding:
    """What a message holds."""

    level: str
    kind: str | None
    """Of the gravest sign; None where there is none."""
    score: float
    """How likely the head finds a crisis in its gravest sentence, from 0 to 1."""
    signs: tuple[Sign, ...]
    """In the order of the message."""


class Detector:
    """Finds crises. `Detector.load()` has the shipped head."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self._crises = [head.config.labels.index(kind) for kind in KINDS]
        self._patterns = patterns()

    @classmethod
    def load(cls, folder: Path | None = None) -> "Detector":
        """With the shipped head, or one from a folder."""
        return cls(Head.load(folder))

    def find(self, text: str) -> Finding:
        """What a message holds; the same message always gives the same."""
        offset = max(0, len(text) - LAST_CHARACTERS)
        read = normalize(text[offset:])
        sentences = _sentences(read.text)
        sentence_probabilities = self._probabilities(read.text, sentences)
        signs, settled = self._by_patterns(read, sentences, sentence_probabilities)
        signs += self._by_head(read, sentences, sentence_probabilities, settled)
        placed = {
            Sign(sign.kind, sign.level, sign.start + offset, sign.end + offset, sign.by): None
            for sign in signs
        }
        found = tuple(sorted(placed, key=lambda sign: (sign.start, sign.end)))
        gravest = max(found, key=_gravity, default=None)
        score = (
            float(sentence_probabilities[:, self._crises].sum(axis=1).max())
            if len(sentence_probabilities)
            else 0.0
        )
        return Finding(
            gravest.level if gravest else NONE, gravest.kind if gravest else None, round(score, 4), found
        )

    def _probabilities(self, text: str, sentences: Sequence[tuple[int, int]]) -> np.ndarray:
        """The head's probabilities (sentences, labels)."""
        return self.head.probabilities([text[start:end] for start, end in sentences])

    def _by_patterns(
        self, read: Normalized, sentences: Sequence[tuple[int, int]], sentence_probabilities: np.ndarray
    ) -> tuple[list[Sign], set[int]]:
        """What they find, and the sentences whose circumstances say that it is none."""
        signs, settled = list[Sign](), set[int]()
        for pattern in self._patterns:
            for match in pattern.matches(read.text):
                row = _row(sentences, match.start() + 1)
                kind, level = context_modifiers.judged(
                    pattern, read.text, match.start(), match.end(), sentences[row]
                )
                if level != CRISIS:
                    settled.add(row)
                if level != NONE and pattern.strength != STRONG:
                    sure = float(sentence_probabilities[row][self._crises].sum())
                    level = level if sure >= AGREES else NONE
                if level != NONE:
                    start, end = read.place(match.start(), match.end())
                    signs.append(Sign(kind, level, start, end, pattern.strength))
        return signs, settled

    def _by_head(
        self,
        read: Normalized,
        sentences: Sequence[tuple[int, int]],
        sentence_probabilities: np.ndarray,
        settled: set[int],
    ) -> list[Sign]:
        """What it finds by itself; a sentence that is settled is a concern at most."""
        signs = list[Sign]()
        labels = self.head.config.labels
        for number, ((start, end), row) in enumerate(zip(sentences, sentence_probabilities, strict=True)):
            crisis, past = float(row[self._crises].sum()), float(row[labels.index(PAST)])
            sure = crisis >= SURE
            if end - start < SHORT or not context_modifiers.speaks_of_harm(read.text[start:end]):
                continue
            if sure or crisis >= UNEASY or past >= SURE:
                kind = KINDS[int(row[self._crises].argmax())]
                first, last = read.place(start, end)
                soft = not sure or number in settled or context_modifiers.softened(read.text, start, end)
                level = CONCERN if soft else CRISIS
                signs.append(Sign(kind, level, first, last, "head"))
        return signs


def _gravity(sign: Sign) -> tuple[int, int, int]:
    """The level first, patterns before the head, then the kind that wants the quickest answer."""
    return LEVELS.index(sign.level), sign.by == STRONG, -_ORDER.index(sign.kind)


_ORDER = ("emergency", "suicide", "harm_to_others", "abuse", "self_harm", "someone_else")


def _sentences(text: str) -> list[tuple[int, int]]:
    """Where each sentence begins and ends in normal text; at least one."""
    found, start = list[tuple[int, int]](), 0
    for place, letter in enumerate(text):
        if letter in ".?" and text[place - 1 : place + 2].isspace() is False and text[place - 1] == " ":
            if place - 1 > start:
                found.append((start, place + 1))
            start = place + 1
    if len(text) - 1 > start:
        found.append((start, len(text)))
    return found or [(0, len(text))]


def _row(sentences: Sequence[tuple[int, int]], place: int) -> int:
    """The number of the sentence that holds a place."""
    return next((row for row, (_, end) in enumerate(sentences) if place < end), len(sentences) - 1)


def said_last(dialogue: Dialogue) -> str:
    """What the other person said since the listener spoke: people send one thought in several messages."""
    said = list[str]()
    for turn in reversed(dialogue.turns):
        if turn.speaker == dialogue.listener:
            break
        said.append(turn.text)
    text = ""
    for part in reversed(said):
        text += (" " if _unfinished(text) else "\n") + part if text else part
    return text


def _unfinished(text: str) -> bool:
    """Whether the last line is the beginning of a sentence: a few words, and no mark that ends it."""
    last = text.rsplit("\n", 1)[-1].strip()
    return len(last.split()) < FRAGMENT and last[-1:].isalnum()
