"""Every head of the annotators: what it reads, and which labels it predicts."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from listenwell.labels import (
    ACTS,
    EMOTIONS,
    EXPRESSED_EMOTIONS,
    GOEMOTIONS,
    LEVELS,
    MECHANISMS,
    RISK_KINDS,
    RISK_LEVELS,
    LabelSet,
)
from listenwell.labels import EMOTIONS_AND_INTENTS as INTENTS

CONTEXT, UTTERANCE, REPLY = "context", "utterance", "reply"
"""What a head reads: the dialogue so far, one utterance alone, or a reply after what it answers."""
RECENT = "recent"
"""The last turns, as crisis detection reads them (`views.recent_view`)."""
VIEWS = (CONTEXT, UTTERANCE, REPLY, RECENT)
GIVEN_FROM = 0.3
"""From which probability on one of several labels counts as given (Demszky et al. 2020, §5.2)."""
EMOTION_GROUP = "emotion_group"
"""The name of the reading that follows from `emotion`: a group is as likely as its members together."""


@dataclass(frozen=True)
class Head:
    """One question asked of a text; heads that read the same input share one pass of the encoder."""

    name: str
    title: str
    labels: LabelSet
    view: str
    """One of VIEWS."""
    several: bool = False
    """Whether a text can have several of the labels at once, each with its own probability."""


HEADS: Mapping[str, Head] = MappingProxyType(
    {
        head.name: head
        for head in (
            Head("emotion", "what the speaker feels", EMOTIONS, CONTEXT),
            Head("response", "emotion or intent of the reply to come", INTENTS, CONTEXT),
            Head("intent", "emotion or intent of an utterance", INTENTS, UTTERANCE),
            Head("act", "dialogue act", ACTS, UTTERANCE),
            Head("expressed_emotion", "expressed emotion", EXPRESSED_EMOTIONS, UTTERANCE),
            Head("goemotions", "expressed emotions, finely", GOEMOTIONS, UTTERANCE, several=True),
            *(Head(name, f"level of {name.replace('_', ' ')}", LEVELS, REPLY) for name in MECHANISMS),
            Head("risk_level", "risk in the speaker's messages", RISK_LEVELS, RECENT),
            Head("risk_kind", "kind of risk", RISK_KINDS, RECENT),
        )
    }
)
"""By name. `emotion` and `response` are read from the dialogue up to a turn, as is the user's situation."""

REPLY_HEADS = ("act", "expressed_emotion", *MECHANISMS)
"""The heads that describe a reply."""

RISK_HEADS = ("risk_level", "risk_kind")
"""The heads of the crisis classifier (`safety.classifier`), which has an encoder of its own."""

ORDER = ("emotion", EMOTION_GROUP, *(name for name in HEADS if name != "emotion"))
"""The order of readings on a turn."""
