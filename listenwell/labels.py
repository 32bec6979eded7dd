"""Every label set of the field, once, with the mappings between them.

Orders are those of the published label files, so that a label's index is the publisher's number.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from listenwell.errors import InputError, unknown_name


@dataclass(frozen=True)
class LabelSet:
    """An ordered set of label names; the position of a label is its class number."""

    kind: str
    """What one of the labels is called in messages, such as "emotion"."""
    labels: tuple[str, ...]

    @classmethod
    def of(cls, kind: str, labels: str) -> "LabelSet":
        """A set from its names in one text, with white space between them."""
        return cls(kind, tuple(labels.split()))

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels)

    def __getitem__(self, number: int) -> str:
        return self.labels[number]

    def __contains__(self, label: object) -> bool:
        return label in self._numbers

    def index(self, label: str) -> int:
        """The class number of a label; an unknown label is an error that names the nearest ones."""
        return self._numbers[self.check(label)]

    def check(self, label: str) -> str:
        """The label itself if it is one of ours; otherwise an error that names the nearest ones."""
        if label not in self._numbers:
            raise unknown_name(self.kind, label, self.labels)
        return label

    def match(self, label: str) -> str:
        """The label a person meant: as `check`, but blind to case, spaces and hyphens."""
        return self.check(_plain(label))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {label: number for number, label in enumerate(self.labels)}


def _plain(label: str) -> str:
    """A label as we spell them: lower case, words joined by underscores."""
    return "_".join(label.casefold().replace("-", " ").replace("_", " ").split())


EMOTIONS = LabelSet.of(
    "emotion",
    "afraid angry annoyed anticipating anxious apprehensive ashamed caring confident content devastated "
    "disappointed disgusted embarrassed excited faithful furious grateful guilty hopeful impressed "
    "jealous joyful lonely nostalgic prepared proud sad sentimental surprised terrified trusting",
)
"""The 32 emotions of EmpatheticDialogues (Rashkin et al. 2019, Figure 2): what the speaker feels."""

PLEASANT = frozenset(
    LabelSet.of(
        "pleasant emotion",
        "anticipating caring confident content excited faithful grateful hopeful impressed joyful prepared "
        "proud trusting",
    )
)
"""Of the 32 emotions those that are good to feel."""
MIXED = frozenset({"nostalgic", "sentimental", "surprised"})
"""Those that can be either; all others are bad to feel."""

GROUP_MEMBERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "afraid": ("afraid", "terrified", "anxious", "apprehensive"),
        "angry": ("angry", "annoyed", "furious"),
        "guilty": ("guilty", "embarrassed", "ashamed"),
        "prepared": ("prepared", "anticipating"),
        "hopeful": ("hopeful", "confident"),
        "grateful": ("grateful", "content"),
        "excited": ("excited", "joyful"),
        "disappointed": ("disappointed", "disgusted"),
        "proud": ("proud", "impressed"),
        "sad": ("sad", "devastated"),
        "sentimental": ("sentimental", "nostalgic"),
        "trusting": ("trusting", "faithful"),
        "caring": ("caring",),
        "jealous": ("jealous",),
        "lonely": ("lonely",),
        "surprised": ("surprised",),
    }
)

EMOTION_GROUPS = LabelSet("emotion group", tuple(GROUP_MEMBERS))
"""16 groups of near emotions, each named after its first member."""

GROUP_OF_EMOTION: Mapping[str, str] = MappingProxyType(
    {emotion: group for group, members in GROUP_MEMBERS.items() for emotion in members}
)
"""32 emotions to 16 groups."""

INTENTS = LabelSet.of(
    "intent", "agreeing acknowledging encouraging consoling sympathizing suggesting questioning wishing"
)
"""The 8 empathetic response intents (Welivita & Pu 2020)."""

EMOTIONS_AND_INTENTS = LabelSet("emotion or intent", (*EMOTIONS, *INTENTS, "neutral"))
"""The 41 labels of the EmpatheticIntents classifier: 32 emotions, 8 intents, neutral."""

MANUAL_INTENTS = LabelSet.of(
    "hand-labelled intent",
    "acknowledging advising agreeing appreciating consoling disapproving encouraging "
    "expressing_care_concern expressing_relief questioning sharing_experience sharing_opinions "
    "suggesting sympathizing wishing",
)
"""The 15 intents the EmpatheticIntents authors began with, of which 8 were frequent enough to keep."""

ACTS = LabelSet.of(
    "dialogue act",
    "acknowledging agreeing consoling encouraging questioning suggesting sympathizing wishing others",
)
"""CoMAE's 9 dialogue acts (DA): the 8 intents and others."""

MECHANISMS = LabelSet("mechanism", ("emotional_reaction", "interpretation", "exploration"))
"""EPITOME's communication mechanisms (CM), in CoMAE's order ER, IP, EX."""

MECHANISM_ABBREVIATIONS: Mapping[str, str] = MappingProxyType(
    {"ER": "emotional_reaction", "IP": "interpretation", "EX": "exploration"}
)

LEVELS = LabelSet("level", ("no", "weak", "strong"))
"""EPITOME's level of a mechanism in a reply; its number in the publisher's files is its position here."""

GOEMOTIONS = LabelSet.of(
    "GoEmotions label",
    "admiration amusement anger annoyance approval caring confusion curiosity desire disappointment "
    "disapproval disgust embarrassment excitement fear gratitude grief joy love nervousness optimism "
    "pride realization relief remorse sadness surprise neutral",
)
"""The 27 emotions of GoEmotions and neutral (Demszky et al. 2020)."""

EXPRESSED_EMOTION_MEMBERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "admiration": ("admiration", "pride"),
        "anger": ("anger", "annoyance", "disgust", "disapproval"),
        "approval": ("approval", "realization"),
        "caring": ("caring", "desire", "optimism"),
        "fear": ("fear", "nervousness"),
        "gratitude": ("gratitude", "relief"),
        "joy": ("joy", "amusement", "excitement", "love"),
        "sadness": ("sadness", "disappointment", "embarrassment", "grief", "remorse"),
        "surprise": ("surprise", "confusion", "curiosity"),
        "neutral": ("neutral",),
    }
)

EXPRESSED_EMOTIONS = LabelSet("expressed emotion", tuple(EXPRESSED_EMOTION_MEMBERS))
"""CoMAE's 10 emotions a reply can express (EM)."""

GLAD_EMOTIONS = frozenset({"admiration", "approval", "gratitude", "joy"})
GRIM_EMOTIONS = frozenset({"anger", "fear", "sadness"})
"""Expressed emotions that take one side; caring, surprise and neutral take none."""

EXPRESSED_BY_GOEMOTION: Mapping[str, str] = MappingProxyType(
    {
        label: expressed_emotion
        for expressed_emotion, members in EXPRESSED_EMOTION_MEMBERS.items()
        for label in members
    }
)
"""28 GoEmotions labels to CoMAE's 10 (CoMAE, Table 6)."""

MANNERS = LabelSet.of("manner", "crowd plain rich")
"""How a corpus's listeners reply: as crowd workers do, in short usual sentences, or varied and concrete."""

RISK_LEVELS = LabelSet.of("risk level", "none concern crisis")
"""How grave a message is: nothing, something to keep in mind, something to answer now."""

RISK_KINDS = LabelSet.of("kind of risk", "none suicide self_harm harm_to_others abuse emergency someone_else")
"""What a message at risk is about; the last is a person other than the writer."""

STRATEGIES = LabelSet(
    "support strategy",
    (
        "questions",
        "restatement_or_paraphrasing",
        "reflection_of_feelings",
        "self_disclosure",
        "affirmation_and_reassurance",
        "providing_suggestions",
        "information",
        "other",
    ),
)
"""ESConv's 8 support strategies (Liu et al. 2021, Table 2)."""

STRATEGY_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "question": "questions",
        "restatement": "restatement_or_paraphrasing",
        "approval_and_reassurance": "affirmation_and_reassurance",
        "direct_guidance": "providing_suggestions",
        "others": "other",
    }
)
"""Names that ESConv's failed conversations use for the same strategies (earlier wordings)."""

NEWSGROUPS = LabelSet.of(
    "newsgroup",
    "alt.atheism comp.graphics comp.os.ms-windows.misc comp.sys.ibm.pc.hardware comp.sys.mac.hardware "
    "comp.windows.x misc.forsale rec.autos rec.motorcycles rec.sport.baseball rec.sport.hockey sci.crypt "
    "sci.electronics sci.med sci.space soc.religion.christian talk.politics.guns talk.politics.mideast "
    "talk.politics.misc talk.religion.misc",
)
"""The 20 groups of 20 Newsgroups (Lang 1995), the topics of TopicPrepend (Rashkin et al. 2019, §4.3)."""


def current_factor(name: str) -> str:
    """The name of a factor or annotator head, which may be one of an earlier release."""
    return "expressed_emotion" if name == "tone" else name


def expressed_emotion_of(goemotion: str) -> str:
    """CoMAE's expressed emotion for a GoEmotions label."""
    return EXPRESSED_BY_GOEMOTION[GOEMOTIONS.check(goemotion)]


def act_of(intent: str) -> str:
    """CoMAE's dialogue act for an intent, one of the 41 labels or of the 15 hand-labelled ones."""
    return intent if intent in ACTS else "others"


def expresses(level: int) -> bool:
    """Whether an EPITOME level counts as yes: weak and strong are merged (CoMAE §4.2)."""
    if level not in range(len(LEVELS)):
        raise InputError(
            f"An EPITOME level is 0, 1 or 2, not {level!r}.", "Check the level column of the file."
        )
    return level > 0


def mechanism(name: str) -> str:
    """The mechanism a person meant, by its name or by ER, IP or EX."""
    return MECHANISM_ABBREVIATIONS.get(name.upper()) or MECHANISMS.match(name)


def strategy(name: str) -> str:
    """The ESConv strategy for a publisher's spelling such as "Self-disclosure" or "Question"."""
    return STRATEGIES.check(STRATEGY_ALIASES.get(_plain(name), _plain(name)))


def contradicts(expressed_emotion: str, emotion: str) -> bool:
    """Whether a reply that expresses one emotion takes the wrong side of what somebody feels: gladness at
    what is bad to feel, grief at what is good to feel."""
    if emotion in MIXED:
        return False
    return expressed_emotion in (GRIM_EMOTIONS if emotion in PLEASANT else GLAD_EMOTIONS)
