"""Several replies to one dialogue, read together."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from listenwell.dialogue import Dialogue, Turn
from listenwell.labels import ACTS, MECHANISMS, TONES

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator

REPLY_HEADS = ("act", "tone", *MECHANISMS)
"""What a reply does: the heads that an annotator of replies needs."""


def read_replies(annotator: "Annotator", dialogue: Dialogue, replies: Sequence[str]) -> list[Turn]:
    """Each reply as a turn with the readings of every head, all labels of acts, tones and levels kept.

    Mechanisms are read after the turn it answers, acts and tones from the reply alone; what replies have in
    common is read once.
    """
    answered = next((turn for turn in reversed(dialogue.turns) if turn.speaker != dialogue.listener), None)
    before = (Turn(answered.speaker, answered.text),) if answered else ()
    talks = [
        Dialogue((*before, Turn(dialogue.listener, reply)), listener=dialogue.listener) for reply in replies
    ]
    top = max(len(ACTS), len(TONES))
    return [talk.turns[-1] for talk in annotator.annotate_all(talks, top=top, last=True)]
