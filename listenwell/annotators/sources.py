"""What the heads learn from and are measured on: labelled views out of the corpora.

A question is one head on one source: the rows of the results. Labels beyond a corpus's own are said here.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import numpy as np

from listenwell.annotators.heads import HEADS, RISK_HEADS
from listenwell.annotators.views import View, context_view, recent_view
from listenwell.corpora import CORPORA, CorpusLoader, Item
from listenwell.corpora.epitome import SPLIT_RULE
from listenwell.corpora.risk import KIND, LEVEL
from listenwell.dialogue import Dialogue, LabelledText
from listenwell.labels import LEVELS, MECHANISMS, act_of, expressed_emotion_of


@dataclass(frozen=True)
class Labelled:
    """A view and what is known of it."""

    view: View
    labels: Mapping[str, tuple[str, ...]]
    """By head; several only where the head takes several."""
    group: str
    """Views of one dialogue are never parted when data is."""
    words: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """By head: which letters of the last turn show the label (EPITOME's rationales)."""

    def target(self, head: str) -> np.ndarray:
        """The wanted probabilities of a head's labels: (labels,) float32, 1 at the true ones."""
        names = HEADS[head].labels
        target = np.zeros(len(names), np.float32)
        target[[names.index(label) for label in self.labels[head]]] = 1
        return target


@dataclass(frozen=True)
class Source:
    """Where labelled views come from."""

    name: str
    corpus: str
    heads: tuple[str, ...]
    views: Callable[[Item], Iterable[Labelled]]
    labels: str
    """How the labels came about, for results."""
    prefix: str = ""
    """Before the split's name in the corpus, such as "lexical_"."""
    faulty: Callable[[Item], bool] | None = None
    """Items whose label is known to be wrong: they are not learned, but measured like all others."""

    def read(self, split: str, path: Path | None = None) -> Iterator[Labelled]:
        """Every labelled view of a split; of train, without the faulty ones."""
        for item in self.reader(path).read(f"{self.prefix}{split}"):
            if not (split == "train" and self.faulty and self.faulty(item)):
                yield from self.views(item)

    def reader(self, path: Path | None = None) -> CorpusLoader:
        """The corpus's reader."""
        return CORPORA.load(self.corpus)(path)

    def files(self, split: str, path: Path | None = None) -> tuple[Path, ...]:
        """The files a split is read from; missing ones are an error that says how to get them."""
        reader = self.reader(path)
        reader.check(f"{self.prefix}{split}")
        paths = reader.files(f"{self.prefix}{split}")
        folders = [file for path in paths if path.is_dir() for file in sorted(path.glob("*.csv"))]
        return (*(path for path in paths if path.is_file()), *folders)


def _situations(item: Item) -> Iterator[Labelled]:
    if isinstance(item, Dialogue) and item.situation and item.emotion:
        yield Labelled(((item.situation, False),), {"emotion": (item.emotion,)}, item.id)


def _contexts(item: Item) -> Iterator[Labelled]:
    """Each dialogue up to each reply: what the speaker feels, and what the reply turned out to be.

    The reply's label is the EmpatheticIntents authors' machine label, as in MEED2 §4.2.
    """
    if not isinstance(item, Dialogue):
        return
    for example in item.examples():
        labels = {"emotion": (item.emotion,)} if item.emotion else {}
        if example.reply.factors and example.reply.factors.intent:
            labels["response"] = (example.reply.factors.intent,)
        yield Labelled(context_view(example.context), labels, item.id)


def _texts(head: str, name: Callable[[str], str]) -> Callable[[Item], Iterator[Labelled]]:
    def views(item: Item) -> Iterator[Labelled]:
        if isinstance(item, LabelledText):
            yield Labelled(((item.text, False),), {head: (name(item.labels[0]),)}, item.id)

    return views


def _comments(item: Item) -> Iterator[Labelled]:
    """GoEmotions as it is, and as CoMAE's expressed emotions where a comment's labels map to a single one."""
    if isinstance(item, LabelledText):
        labels = {"goemotions": item.labels}
        if len(expressed_emotions := {expressed_emotion_of(label) for label in item.labels}) == 1:
            labels["expressed_emotion"] = (expressed_emotions.pop(),)
        yield Labelled(((item.text, False),), labels, item.id)


def _replies(item: Item) -> Iterator[Labelled]:
    """EPITOME's levels and rationales; a rationale that is not in the reply letter by letter is left out."""
    if not isinstance(item, Dialogue) or not (reply := item.turns[-1]).factors or not reply.factors.levels:
        return
    labels = {name: (LEVELS[level],) for name, level in zip(MECHANISMS, reply.factors.levels, strict=True)}
    words = {}
    for name in MECHANISMS:
        parts = [part.strip() for part in (reply.note(f"rationale.{name}") or "").split("|") if part.strip()]
        spans = [(reply.text.find(part), len(part)) for part in parts]
        words[name] = tuple((first, first + length) for first, length in spans if first >= 0)
    yield Labelled(context_view(item), labels, item.turns[0].text, words)


def _risks(item: Item) -> Iterator[Labelled]:
    """Every turn with a level of risk, with the turns before it."""
    if not isinstance(item, Dialogue):
        return
    for number, turn in enumerate(item.turns):
        if (level := turn.note(LEVEL)) and (kind := turn.note(KIND)):
            view = recent_view(item.turns[: number + 1], item.listener)
            yield Labelled(view, {"risk_level": (level,), "risk_kind": (kind,)}, item.id)


_NO_QUESTION = re.compile(
    r"do ?n'?t\b(?! (?:you|they|we|people)\b)"  # don't worry
    r"|have (?:fun|a|an|some|faith)\b"  # have fun
    r"|what (?:an?|great|good|nice|sweet|lovely|wonderful|awful|horrible|terrible|lousy|bad)\b"  # what a pity
    r"|how (?!come|much|many|long|old|far|so\b)(?:\w+ )?\w+(?: (?:for|of|to) \w+)?[.!]*$"  # how sad!
    r"|(?:dog|done|dona|doub|when|whenever\b|whatever\b|however\b|whoever\b)"  # "do" in a word
)
"""Beginnings of texts that are no question, whatever n-grams they hold."""
_WORD_ORDER = re.compile(
    r"(?:how|what|when) (?:\w+ )?(?:do|does|did|is|are|was|were|have|has|can|could|would|will)\b"
)


def is_no_question(item: Item) -> bool:
    """Whether a text counts as questioning by its n-grams alone: "don't worry." and "how sad!" do.

    A few in a hundred of these texts; only what is surely no question, the rest stays.
    """
    if not isinstance(item, LabelledText) or item.labels[0] != "questioning" or "?" in item.text:
        return False
    text = item.text.casefold().strip()
    return bool(_NO_QUESTION.match(text)) and not _WORD_ORDER.match(text)


_SOURCES = (
    Source("situations", "empathetic_dialogues", ("emotion",), _situations, "the speaker's own emotion"),
    Source(
        "contexts",
        "empathetic_dialogues_labels",
        ("emotion", "response"),
        _contexts,
        "emotion: the speaker's own; response: another classifier's label of the reply that came",
    ),
    Source(
        "intents",
        "empathetic_intents",
        ("intent",),
        _texts("intent", str),
        "emotions: the speaker's own, of situations; intents: found by n-grams",
        faulty=is_no_question,
    ),
    Source(
        "acts",
        "empathetic_intents",
        ("act",),
        _texts("act", act_of),
        "found by n-grams, easy by construction; neutral is others",
        "lexical_",
        is_no_question,
    ),
    Source(
        "comments",
        "goemotions",
        ("expressed_emotion", "goemotions"),
        _comments,
        "raters'; an expressed emotion only where a comment's labels map to a single one",
    ),
    Source("replies", "epitome", tuple(MECHANISMS), _replies, f"raters'; split by {SPLIT_RULE}"),
    Source("risk", "risk_messages", RISK_HEADS, _risks, "two language models'; split by writer"),
    Source("everyday", "everyday_messages", RISK_HEADS, _risks, "none, or a language model's"),
)
SOURCES: Mapping[str, Source] = MappingProxyType({source.name: source for source in _SOURCES})
"""By name; all have the splits train, valid and test."""


@dataclass(frozen=True)
class Question:
    """One head on one source: a row of the results."""

    name: str
    head: str
    source: str


_QUESTIONS = (
    Question("situation emotion", "emotion", "situations"),
    Question("dialogue emotion", "emotion", "contexts"),
    Question("response intent", "response", "contexts"),
    Question("utterance intent", "intent", "intents"),
    Question("dialogue act", "act", "acts"),
    Question("expressed emotion", "expressed_emotion", "comments"),
    Question("expressed emotions, 28", "goemotions", "comments"),
    *(Question(name.replace("_", " "), name, "replies") for name in MECHANISMS),
    Question("risk level", "risk_level", "risk"),
    Question("kind of risk", "risk_kind", "risk"),
)
QUESTIONS: Mapping[str, Question] = MappingProxyType({question.name: question for question in _QUESTIONS})


def questions_of(heads: Iterable[str]) -> tuple[Question, ...]:
    """What can be asked of some heads."""
    chosen = {HEADS[name].name for name in heads}
    return tuple(question for question in QUESTIONS.values() if question.head in chosen)
