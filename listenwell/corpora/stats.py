"""The statistics that papers give of a corpus: sizes, lengths and label distributions, in one pass."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from listenwell.corpora.base import Item
from listenwell.dialogue import LabelledText
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

    def label(kind: str, *values: str | None) -> None:
        for value in values:
            if value is not None:
                labels.setdefault(kind, Counter())[value] += 1

    for item in items:
        if isinstance(item, LabelledText):
            counts.update(texts=1, words=len(item.text.split()))
            label("label", *item.labels)
            continue
        counts.update(conversations=1, utterances=len(item.turns))
        counts["replies"] += sum(turn.speaker == item.listener for turn in item.turns[1:])
        counts["persona"] += sum(len(persona.lines) for persona in item.personas)
        label("emotion", item.emotion)
        for turn in item.turns:
            counts["words"] += len(turn.text.split())
            speakers.add(turn.speaker)
            if factors := turn.factors:
                for kind in ("intent", "act", "expressed_emotion", "strategy"):
                    label(kind, getattr(factors, kind))
                label("mechanism", *(factors.mechanisms or ()))
    return Statistics(
        conversations=counts["conversations"],
        texts=counts["texts"],
        utterances=counts["utterances"],
        replies=counts["replies"],
        speakers=len(speakers),
        persona_sentences=counts["persona"],
        words_per_utterance=round(counts["words"] / max(1, counts["utterances"] + counts["texts"]), 2),
        utterances_per_conversation=round(counts["utterances"] / max(1, counts["conversations"]), 2),
        labels=tuple((kind, tuple(values.most_common())) for kind, values in labels.items()),
    )
