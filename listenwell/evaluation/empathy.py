"""How much empathy replies show, as the annotators read it, and how many of them invent a life.

The mean level of emotional reaction, interpretation and exploration (EPITOME, Sharma et al. 2020: 0, 1, 2) is
what a classifier sees, not what a person feels: it can be driven up by empty phrases, so it stands beside the
rates of stock phrases and of different replies.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Factors, Turn
from listenwell.labels import MECHANISMS
from listenwell.metrics import normalized
from listenwell.metrics.checks import check_pairs

LEVELS = ("er_level", "ip_level", "ex_level")
"""The names of the mean levels, in the order of `labels.MECHANISMS`."""


class Reads(Protocol):
    """Who reads replies: the annotators, or anything with their two names."""

    key: str

    def annotate_all(self, dialogues: Iterable[Dialogue], top: int = 5) -> Iterator[Dialogue]:
        """The dialogues with readings and factors on their turns, in order."""
        ...


def load_readers(*heads: str) -> Reads:
    """The shipped annotators with these heads; the three mechanisms without a name."""
    from listenwell.annotators.annotator import Annotator

    return Annotator.load(heads=heads or MECHANISMS.labels)


def read_pairs(contexts: Sequence[Dialogue], replies: Sequence[str], readers: Reads) -> list[Factors]:
    """What the annotators read in each reply, given the turn it answers; nothing known is taken over.

    Only the mechanisms are read with that turn (EPITOME's pairs); act and tone are read from the reply alone.
    """
    check_pairs(contexts, replies, "contexts and replies")
    pairs = [
        Dialogue((Turn(SPEAKER, context.turns[-1].text), Turn(LISTENER, reply)))
        for context, reply in zip(contexts, replies, strict=True)
    ]
    return [read.turns[-1].factors or Factors() for read in readers.annotate_all(pairs)]


def measure_empathy(contexts: Sequence[Dialogue], replies: Sequence[str], readers: Reads) -> dict[str, float]:
    """The mean level of each mechanism, and the share of replies with an invented life, in percent.

    Contexts and replies are read in the one spelling of `metrics.normalized`, so that files in lower case and
    taken apart into tokens have no other chances than ordinary text.

    Args:
        contexts: what was said before each reply; its listener's persona excuses what it tells.
        replies: what the system said.
        readers: the annotators, with the three mechanisms.
    """
    from listenwell.reranking.self_disclosure.unsupported import unsupported_disclosure_rate

    plain = [_plain(context) for context in contexts]
    read = read_pairs(plain, [normalized(reply) or reply for reply in replies], readers)
    levels = [factors.levels or (0, 0, 0) for factors in read]
    means = {name: sum(level[place] for level in levels) / len(levels) for place, name in enumerate(LEVELS)}
    personas = [_own_lines(context) for context in contexts]
    return means | {
        "invented_life": unsupported_disclosure_rate(replies, personas if any(personas) else None)
    }


def empathy_conditions(readers: Reads) -> dict[str, str]:
    """The switches of these figures, for a result's conditions."""
    return {
        "empathy read by": f"our annotators, key {readers.key[:12]}, from the turn before and the reply",
    }


def _plain(context: Dialogue) -> Dialogue:
    last = context.turns[-1]
    return replace(context, turns=(Turn(last.speaker, normalized(last.text) or last.text),))


def _own_lines(context: Dialogue) -> tuple[str, ...]:
    persona = context.persona_of(context.listener)
    return persona.lines if persona else ()
