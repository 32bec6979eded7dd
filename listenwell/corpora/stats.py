"""The statistics that papers give of a corpus: sizes, lengths and label distributions, in one pass."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from listenwell.corpora.base import Item
from listenwell.dialogue import Dialogue, LabelledText
from listenwell.serialization import Record

Counts = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Statistics(Record):
    """Figures of one split; a word is what stands between white space."""

    conversations: int
    texts: int
    """Labelled texts, in corpora that have no conversations."""
    utterances: int
    replies: int
    """Turns of the listener that have something before them."""
    speakers: int
    """Distinct names; 2 where the corpus has roles only."""
    persona_sentences: int
    words_per_utterance: float
    utterances_per_conversation: float
    labels: tuple[tuple[str, Counts], ...]
    """For each kind of label (emotion, intent, …) how often each occurs, the most frequent first."""

    def to_dict(self) -> dict[str, object]:
        """All figures, zeros included."""
        figures = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "labels"}
        return figures | {"labels": {kind: dict(counts) for kind, counts in self.labels}}


def measure(items: Iterable[Item]) -> Statistics:
    """Read through once and count."""
    counts: Counter[str] = Counter()
    speakers: set[str] = set()
    labels: dict[str, Counter[str]] = {}

    def label(kind: str, value: str | None) -> None:
        if value is not None:
            labels.setdefault(kind, Counter())[value] += 1

    for item in items:
        if isinstance(item, LabelledText):
            counts["texts"] += 1
            counts["words"] += len(item.text.split())
            for value in item.labels:
                label("label", value)
            continue
        _count_dialogue(item, counts, speakers)
        label("emotion", item.emotion)
        for turn in item.turns:
            if factors := turn.factors:
                for kind in ("intent", "act", "tone", "strategy"):
                    label(kind, getattr(factors, kind))
                for name in factors.mechanisms or ():
                    label("mechanism", name)
    return Statistics(
        conversations=counts["conversations"],
        texts=counts["texts"],
        utterances=counts["utterances"],
        replies=counts["replies"],
        speakers=len(speakers),
        persona_sentences=counts["persona"],
        words_per_utterance=_ratio(counts["words"], counts["utterances"] + counts["texts"]),
        utterances_per_conversation=_ratio(counts["utterances"], counts["conversations"]),
        labels=tuple((kind, tuple(counts.most_common())) for kind, counts in labels.items()),
    )


def _count_dialogue(dialogue: Dialogue, counts: Counter[str], speakers: set[str]) -> None:
    counts["conversations"] += 1
    counts["utterances"] += len(dialogue.turns)
    counts["replies"] += sum(turn.speaker == dialogue.listener for turn in dialogue.turns[1:])
    counts["persona"] += sum(len(persona.lines) for persona in dialogue.personas)
    for turn in dialogue.turns:
        counts["words"] += len(turn.text.split())
        speakers.add(turn.speaker)


def _ratio(part: int, whole: int) -> float:
    return round(part / whole, 2) if whole else 0.0
