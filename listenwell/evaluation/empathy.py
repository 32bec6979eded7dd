"""How much empathy replies show, as our annotators label it, and how many disclose a life without a persona.

The mean level of emotional reaction, interpretation and exploration (EPITOME, Sharma et al. 2020: 0, 1, 2) is
what a classifier predicts, not what a person feels: generic phrases can raise it, so it is reported beside
the rates of stock phrases and of distinct replies.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Factors, Turn
from listenwell.labels import MECHANISMS
from listenwell.metrics import normalized
from listenwell.metrics.checks import check_pairs
from listenwell.reranking.self_disclosure.unsupported import unsupported_disclosure_rate

LEVELS = ("er_level", "ip_level", "ex_level")
"""The names of the mean levels, in the order of `labels.MECHANISMS`."""


class ReplyAnnotator(Protocol):
    """Labels replies: the shipped annotators, or anything with these two members."""

    key: str

    def annotate_all(self, dialogues: Iterable[Dialogue], top: int = 5) -> Iterator[Dialogue]:
        """The dialogues with predictions and factors on their turns, in order."""
        ...


def load_annotator(*heads: str) -> ReplyAnnotator:
    """The shipped annotators with these heads; by default the three mechanisms."""
    from listenwell.annotators.annotator import Annotator

    return Annotator.load(heads=heads or MECHANISMS.labels)


def annotate_replies(
    contexts: Sequence[Dialogue], replies: Sequence[str], annotator: ReplyAnnotator
) -> list[Factors]:
    """The factors of each reply, given the turn it answers; labels that the context has are not used.

    Only the mechanisms depend on that turn (EPITOME's pairs); act and tone from the reply alone.
    """
    check_pairs(contexts, replies, "contexts and replies")
    pairs = [
        Dialogue((Turn(SPEAKER, context.turns[-1].text), Turn(LISTENER, reply)))
        for context, reply in zip(contexts, replies, strict=True)
    ]
    return [dialogue.turns[-1].factors or Factors() for dialogue in annotator.annotate_all(pairs)]


def measure_empathy(
    contexts: Sequence[Dialogue], replies: Sequence[str], annotator: ReplyAnnotator
) -> dict[str, float]:
    """The mean level of each mechanism; the share of unsupported self-disclosure, in percent.

    Contexts and replies are normalized (`metrics.normalized`) before they are labelled, so that tokenized
    files in lower case are treated as ordinary text is.

    Args:
        contexts: the dialogue before each reply; the listener's persona supports what the reply discloses.
        replies: of the system.
        annotator: with the heads of the three mechanisms.
    """
    plain = [_plain(context) for context in contexts]
    labelled = annotate_replies(plain, [normalized(reply) or reply for reply in replies], annotator)
    levels = [factors.levels or (0, 0, 0) for factors in labelled]
    means = {name: sum(level[column] for level in levels) / len(levels) for column, name in enumerate(LEVELS)}
    personas = [_persona_lines(context) for context in contexts]
    return means | {
        "invented_life": unsupported_disclosure_rate(replies, personas if any(personas) else None)
    }


def empathy_conditions(annotator: ReplyAnnotator) -> dict[str, str]:
    """The settings of these metrics, for the conditions of a result."""
    return {
        "empathy read by": f"our annotators, key {annotator.key[:12]}, from the turn before and the reply",
    }


def _plain(context: Dialogue) -> Dialogue:
    last = context.turns[-1]
    return replace(context, turns=(Turn(last.speaker, normalized(last.text) or last.text),))


def _persona_lines(context: Dialogue) -> tuple[str, ...]:
    persona = context.persona_of(context.listener)
    return persona.lines if persona else ()
