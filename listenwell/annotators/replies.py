"""Factor probabilities of several replies to one dialogue."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from listenwell.dialogue import Dialogue, Turn
from listenwell.labels import ACTS, EXPRESSED_EMOTIONS, MECHANISMS

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator

REPLY_HEADS = ("act", "expressed_emotion", *MECHANISMS)
"""The heads that describe a reply."""


def read_replies(annotator: "Annotator", dialogue: Dialogue, replies: Sequence[str]) -> list[Turn]:
    """Each reply as a turn with the readings of every head; of acts, emotions and levels all labels are kept.

    Mechanisms depend on the turn it answers, act and expressed emotion on the reply alone; equal
    texts are encoded once. Rationales and factors are not computed: candidates are compared by probability.
    """
    answered = next((turn for turn in reversed(dialogue.turns) if turn.speaker != dialogue.listener), None)
    before = (Turn(answered.speaker, answered.text),) if answered else ()
    turns = [Turn(dialogue.listener, reply) for reply in replies]
    dialogues = [Dialogue((*before, turn), listener=dialogue.listener) for turn in turns]
    readings = annotator.last_readings(dialogues, top=max(len(ACTS), len(EXPRESSED_EMOTIONS)))
    return [
        Turn(turn.speaker, turn.text, readings=reading) for turn, reading in zip(turns, readings, strict=True)
    ]
