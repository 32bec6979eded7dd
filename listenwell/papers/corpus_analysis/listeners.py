"""How alike two listeners' replies are, beside two random sets of replies (Zhong et al. 2020, Figure 1).

PEC's introduction finds that for 28 of the 32 emotions of EmpatheticDialogues the replies of two people are
less alike than random ones: who listens shows in what is said. The paper does not tell how it chose the two
people, how large the random sets are, or how it weighed the words. Here the two are those with the most
replies to the emotion, the random sets are disjoint, as large as theirs and drawn from all replies to it, and
each set is one document whose words are weighed by TF-IDF as learned from all replies.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

from listenwell.corpora.empathetic_dialogues import LISTENER_WORKER
from listenwell.corpora.synthetic_persona_chat import USERS
from listenwell.dialogue import LISTENER, SPEAKER, Example
from listenwell.errors import InputError
from listenwell.labels import EMOTIONS
from listenwell.metrics.libraries import library
from listenwell.papers.corpus_analysis.factor_words import spoken

RUNS = 5
"""Draws of two random sets, as in the paper."""
LEAST = 5
"""Replies that each of the two listeners must have: a set of one or two says little of a person."""
ROLES = frozenset({SPEAKER, LISTENER, *USERS})
"""Names that corpora give to a part in the talk, whoever plays it."""
ALL = "all replies"
"""The one group of a corpus without emotions."""
BY = {
    "emotion": "the conversation's emotion, as the corpus gives it",
    "heard": "the emotion that the annotators heard before the reply: a guess",
    "together": "all replies in one, since the corpus has no emotions",
}
"""What the groups of replies are made by, in words."""


@dataclass(frozen=True, slots=True)
class Said:
    """One reply and who said it."""

    text: str
    listener: str | None
    """The person's name or number; None where the corpus tells the role only."""
    dialogue: str
    emotion: str | None = None
    """Of the conversation, as the corpus gives it."""
    heard: str | None = None
    """As annotators read it before the reply."""


def said(example: Example) -> Said:
    """What the comparison needs of a reply; a corpus's note of the listener goes before the name."""
    context, reply = example.context, example.reply
    name = context.note(LISTENER_WORKER)
    if name is None and reply.speaker not in ROLES:
        name = reply.speaker
    heard = reply.factors.emotion if reply.factors is not None else None
    return Said(reply.text, name, context.id or context.turns[0].text, context.emotion, heard)


@dataclass(frozen=True)
class Pair:
    """Two listeners' replies to one emotion, and the random sets beside them."""

    emotion: str
    listeners: tuple[str, str]
    """The two with the most replies; of equals those who came first."""
    replies: tuple[int, int]
    dialogues: tuple[int, int]
    """How many conversations their replies come from."""
    pool: int
    """All replies to the emotion, from which the random sets are drawn."""
    similarity: float
    """Of the two listeners' replies, from 0 to 1."""
    random: tuple[float, ...]
    """Of two random sets, one for each run."""

    @property
    def mean(self) -> float:
        """Of the random sets."""
        return fmean(self.random)

    @property
    def spread(self) -> float:
        """The standard deviation of the random sets (n − 1)."""
        return stdev(self.random)

    @property
    def is_lower(self) -> bool:
        """Whether the two people are less alike than random sets are on average: the paper's finding."""
        return self.similarity < self.mean

    @property
    def is_lowest(self) -> bool:
        """Whether they are less alike than the random sets of every run."""
        return self.similarity < min(self.random)

    def to_dict(self) -> dict[str, Any]:
        """For JSON, with mean and spread."""
        return {**asdict(self), "mean": self.mean, "spread": self.spread}


@dataclass(frozen=True)
class Comparison:
    """All emotions of a corpus."""

    by: str
    """What the groups are made by: a key of BY."""
    pairs: tuple[Pair, ...]
    left_out: tuple[tuple[str, str], ...]
    """Emotions without two listeners who said enough, and why."""
    replies: int
    """How many were read."""
    unnamed: int
    """How many of them name no listener."""
    unlabelled: int
    """How many of the others have no emotion, where the groups are made by it."""
    listeners: int
    """How many people the rest come from."""

    @property
    def lower(self) -> int:
        """For how many emotions two listeners are less alike than random sets."""
        return sum(pair.is_lower for pair in self.pairs)

    @property
    def lowest(self) -> int:
        """For how many of them in every run; chance alone makes about half of the emotions lower."""
        return sum(pair.is_lowest for pair in self.pairs)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "by": self.by,
            "lower": self.lower,
            "lowest": self.lowest,
            "of": len(self.pairs),
            "replies": self.replies,
            "unnamed": self.unnamed,
            "unlabelled": self.unlabelled,
            "listeners": self.listeners,
            "pairs": [pair.to_dict() for pair in self.pairs],
            "left_out": dict(self.left_out),
        }


def need_scikit_learn() -> None:
    """Raise the error that names the install command where scikit-learn is missing."""
    _features()


def compare(
    replies: Iterable[Said],
    runs: int = RUNS,
    least: int = LEAST,
    seed: int = 0,
    advance: Callable[[int], None] = lambda count: None,
) -> Comparison:
    """Compare the two busiest listeners of each emotion, and random sets as large as theirs.

    Args:
        replies: of one corpus, each once.
        runs: how often two random sets are drawn; 2 or more.
        least: an emotion is left out where one of its two listeners has fewer replies.
        seed: of numpy's `default_rng`, which draws the sets, emotion after emotion.
        advance: called with the number of emotions just done.
    """
    if runs < 2 or least < 1:
        raise InputError(f"There are {runs} runs and at least {least} replies.", "Give 2 and 1, or more.")
    import numpy as np

    everything = list(replies)
    named = [reply for reply in everything if reply.listener is not None]
    by, emotion_of = _grouping(named)
    known = [(emotion, reply) for reply in named if (emotion := emotion_of(reply)) is not None]
    groups: dict[str, list[int]] = {emotion: [] for emotion in (*EMOTIONS, ALL)}  # in the label set's order
    for place, (emotion, _) in enumerate(known):
        groups[emotion].append(place)
    kept = [reply for _, reply in known]
    pairs, left_out = [], []
    if kept:
        probability = _Probability(
            Similarity([reply.text for reply in kept]), np.random.default_rng(seed), runs
        )
    for emotion, places in groups.items():
        if not places:
            continue
        spoken_by = _by_listener(kept, places)
        if fault := _too_little(spoken_by, least):
            left_out.append((emotion, fault))
        else:
            pairs.append(_pair(emotion, kept, spoken_by, probability))
        advance(1)
    return Comparison(
        by,
        tuple(pairs),
        tuple(left_out),
        len(everything),
        len(everything) - len(named),
        len(named) - len(known),
        len({reply.listener for reply in kept}),
    )


class Similarity:
    """The cosine of two sets of texts as TF-IDF vectors, each set one document.

    A word weighs its count times ln((1 + n) / (1 + df)) + 1, where df of the n texts hold it: scikit-learn's
    TfidfTransformer. Words are those of all our word metrics, without punctuation marks.

    Args:
        texts: what the weights are learned from, each text one document; sets are made of their places.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        features = _features()
        try:
            self._counts = features.CountVectorizer(analyzer=spoken).fit_transform(texts)  # (texts, words)
        except ValueError:  # no text has a word
            raise InputError(
                "The replies hold no words.", "Give replies with letters or digits in them."
            ) from None
        self._weigh = features.TfidfTransformer().fit(self._counts).transform

    def __call__(self, first: Sequence[int], second: Sequence[int]) -> float:
        """From 0, no word in common, to 1; a set without any word is like none."""
        import numpy as np

        sets = np.stack([np.asarray(self._counts[list(places)].sum(axis=0))[0] for places in (first, second)])
        one, other = self._weigh(sets).toarray()  # of length 1
        return min(float(one @ other), 1.0)


def _features() -> Any:  # noqa: ANN401 - a module
    return library("sklearn.feature_extraction.text", "scikit-learn", "Comparing listeners by TF-IDF")


def _grouping(replies: Sequence[Said]) -> tuple[str, Callable[[Said], str | None]]:
    """The corpus's own emotions where there are any, else those that were heard, else one group."""
    if any(reply.emotion is not None for reply in replies):
        return "emotion", lambda reply: reply.emotion
    if any(reply.heard is not None for reply in replies):
        return "heard", lambda reply: reply.heard
    return "together", lambda reply: ALL


def _by_listener(replies: Sequence[Said], places: Iterable[int]) -> dict[str, list[int]]:
    """The places of each listener's replies; who said most first, of equals who came first."""
    found: dict[str, list[int]] = {}
    for place in places:
        found.setdefault(replies[place].listener or "", []).append(place)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def _too_little(spoken_by: Mapping[str, Sequence[int]], least: int) -> str:
    """Why a group cannot be compared; empty where it can."""
    if len(spoken_by) < 2:
        return "one listener"
    second = [len(places) for places in spoken_by.values()][1]
    return f"the second listener has {second} of {least} replies" if second < least else ""


@dataclass(frozen=True)
class _Probability:
    """Draws two random sets again and again."""

    similarity: Similarity
    generator: Any
    """numpy's; each draw moves it on."""
    runs: int

    def __call__(self, pool: Sequence[int], first: int, second: int) -> tuple[float, ...]:
        """How alike disjoint sets of two sizes are, for each run."""
        drawn = (self.generator.choice(pool, first + second, replace=False) for _ in range(self.runs))
        return tuple(self.similarity(chosen[:first], chosen[first:]) for chosen in drawn)


def _pair(
    emotion: str, replies: Sequence[Said], spoken_by: Mapping[str, Sequence[int]], probability: _Probability
) -> Pair:
    (one, first), (other, second) = list(spoken_by.items())[:2]
    pool = sorted(place for places in spoken_by.values() for place in places)
    talks = [len({replies[place].dialogue for place in places}) for places in (first, second)]
    return Pair(
        emotion,
        (one, other),
        (len(first), len(second)),
        (talks[0], talks[1]),
        len(pool),
        probability.similarity(first, second),
        probability(pool, len(first), len(second)),
    )
