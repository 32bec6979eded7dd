"""What an annotated corpus shows: how factors hang together, how often each label occurs, and its words.

Pure functions of dialogues with factors on their turns; what is not annotated is not counted.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from listenwell.dialogue import Dialogue, Factors, Turn
from listenwell.labels import (
    ACTS,
    EMOTIONS,
    EMOTIONS_AND_INTENTS,
    LEVELS,
    MECHANISMS,
    TONES,
    LabelSet,
)
from listenwell.papers.corpus_analysis.factor_pairs import (
    DRAWS,
    PAIRINGS,
    SETS,
    CrossTable,
    cross_table,
    together,
)
from listenwell.papers.corpus_analysis.factor_words import LabelWords, label_words, spoken
from listenwell.serialization import Record

DISTRIBUTIONS: dict[str, tuple[str, LabelSet]] = {
    "emotion": ("emotion of the conversation, as the corpus gives it", EMOTIONS),
    "emotion_heard": ("emotion heard before a reply", EMOTIONS),
    "intent_speaker": ("emotion or intent of the speaker's turns", EMOTIONS_AND_INTENTS),
    "intent_listener": ("emotion or intent of the listener's turns", EMOTIONS_AND_INTENTS),
    "intent_last": ("emotion or intent of the last turn", EMOTIONS_AND_INTENTS),
    "act": ("dialogue act of replies", ACTS),
    "tone": ("expressed emotion of replies", TONES),
    "mechanism": ("mechanisms of replies, which can use several", MECHANISMS),
    "mechanisms": ("mechanisms of replies together", SETS),
    **{f"level_{name}": (f"level of {name.replace('_', ' ')} in replies", LEVELS) for name in MECHANISMS},
}
"""By name: what it counts, and the labels. Everyone who is not the listener is a speaker. The emotions of
conversations are EmpatheticDialogues' Figure 3, the last turns MEED2's Figure 2, acts and tones CoMAE's
Figure 5."""

WORDS: dict[str, tuple[str, LabelSet]] = {
    "emotion_speaker": ("the speaker's words by the conversation's emotion", EMOTIONS),
    "emotion_listener": ("the listener's words by the conversation's emotion", EMOTIONS),
    "heard_speaker": ("the speaker's words by the emotion heard", EMOTIONS),
    "heard_listener": ("the listener's words by the emotion heard", EMOTIONS),
    "act": ("words of replies by dialogue act", ACTS),
    "tone": ("words of replies by expressed emotion", TONES),
}


@dataclass(frozen=True)
class Distribution(Record):
    """How often each label occurs, the most frequent first; labels that never occur stand at the end."""

    name: str
    title: str
    total: int
    """How many items have a label; mechanisms can add up to more, as an item can have several."""
    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Analysis:
    """All that is counted in a corpus."""

    dialogues: int
    turns: int
    replies: int
    tables: tuple[CrossTable, ...]
    distributions: tuple[Distribution, ...]
    """Only those that have something to show."""
    words: tuple[tuple[str, tuple[LabelWords, ...]], ...]
    """By a name of WORDS."""

    def distribution(self, name: str) -> Distribution | None:
        """One of DISTRIBUTIONS, if the corpus has such labels."""
        return next((found for found in self.distributions if found.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            "dialogues": self.dialogues,
            "turns": self.turns,
            "replies": self.replies,
            "tables": [table.to_dict() for table in self.tables],
            "distributions": [found.to_dict() for found in self.distributions],
            "words": {name: [one.to_dict() for one in found] for name, found in self.words},
        }


@dataclass
class Tally:
    """Counts that grow dialogue by dialogue."""

    dialogues: int = 0
    turns: int = 0
    replies: list[tuple[int, Factors]] = field(default_factory=list)
    """The number of the dialogue and the factors, of every reply."""
    labels: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    totals: Counter[str] = field(default_factory=Counter)
    words: dict[str, dict[str, Counter[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Counter))
    )

    def add(self, dialogue: Dialogue) -> None:
        """Count one dialogue."""
        self._label("emotion", dialogue.emotion)
        answers = {place for place, _ in replies(dialogue)}
        for place, turn in enumerate(dialogue.turns):
            role = "listener" if turn.speaker == dialogue.listener else "speaker"
            tokens, intent = spoken(turn.text), _intent(turn)
            self._label(f"intent_{role}", intent)
            if place == len(dialogue.turns) - 1:
                self._label("intent_last", intent)
            self._words(f"emotion_{role}", dialogue.emotion, tokens)
            self._words(f"heard_{role}", _heard(turn, role), tokens)
            if place in answers:
                self._reply(turn.factors or Factors(), tokens)
        self.dialogues += 1
        self.turns += len(dialogue.turns)

    def _reply(self, factors: Factors, tokens: Sequence[str]) -> None:
        self.replies.append((self.dialogues, factors))
        self._label("emotion_heard", factors.emotion)
        for name in ("act", "tone"):
            label = getattr(factors, name)
            self._label(name, label)
            self._words(name, label, tokens)
        if factors.mechanisms is not None:
            self._label("mechanism", *factors.mechanisms)
            self._label("mechanisms", together(factors.mechanisms))
        if factors.levels is not None:
            for name, level in zip(MECHANISMS, factors.levels, strict=True):
                self._label(f"level_{name}", LEVELS[level])

    def _label(self, name: str, *labels: str | None) -> None:
        """Count an item and its labels; None means that it is not labelled."""
        if None not in labels:
            self.totals[name] += 1
            self.labels[name].update(label for label in labels if label is not None)

    def _words(self, name: str, label: str | None, tokens: Sequence[str]) -> None:
        if label is not None:
            self.words[name][label].update(tokens)


def replies(dialogue: Dialogue) -> Iterator[tuple[int, Turn]]:
    """The listener's turns that come right after another person's, each with its place."""
    for place, (before, turn) in enumerate(zip(dialogue.turns, dialogue.turns[1:], strict=False), start=1):
        if turn.speaker == dialogue.listener != before.speaker:
            yield place, turn


def count(dialogues: Iterable[Dialogue]) -> Tally:
    """Read through once and count."""
    tally = Tally()
    for dialogue in dialogues:
        tally.add(dialogue)
    return tally


def analyse(dialogues: Iterable[Dialogue], seed: int = 0, draws: int = DRAWS) -> Analysis:
    """Everything about an annotated corpus; what is not annotated is not counted.

    Args:
        dialogues: with factors on their turns.
        seed: of the bootstrap behind the intervals.
        draws: how many samples it takes.
    """
    tally = count(dialogues)
    found = [_distribution(tally, name) for name in DISTRIBUTIONS]
    # The emotion that was heard stands in where the corpus does not tell.
    left_out = ("heard_speaker", "heard_listener") if tally.totals["emotion"] else ()
    return Analysis(
        tally.dialogues,
        tally.turns,
        len(tally.replies),
        tuple(cross_table(tally.replies, pairing, seed, draws) for pairing in PAIRINGS),
        tuple(one for one in found if one.total),
        tuple(
            (name, shown)
            for name, (_, labels) in WORDS.items()
            if name not in left_out
            and (shown := label_words({label: tally.words[name][label] for label in labels}))
        ),
    )


def _distribution(tally: Tally, name: str) -> Distribution:
    title, labels = DISTRIBUTIONS[name]
    counts = tally.labels[name]
    ordered = sorted(labels, key=lambda label: -counts[label])  # equal ones in the order of the label set
    return Distribution(name, title, tally.totals[name], tuple((label, counts[label]) for label in ordered))


def _intent(turn: Turn) -> str | None:
    """The emotion or intent of a turn: its factor, or else the likeliest of its reading."""
    if turn.factors is not None and turn.factors.intent is not None:
        return turn.factors.intent
    return _likeliest(turn, "intent")


def _heard(turn: Turn, role: str) -> str | None:
    """The speaker's emotion at a turn: read from it, or, on a listener's turn, from those before it."""
    if role == "listener":
        return turn.factors.emotion if turn.factors is not None else None
    return _likeliest(turn, "emotion")


def _likeliest(turn: Turn, head: str) -> str | None:
    reading = turn.reading(head)
    return reading.scores[0].label if reading is not None and reading.scores else None
