"""From readings to factors: what follows from the most likely labels, where nothing is known yet."""

from dataclasses import replace

from listenwell.dialogue import Dialogue, Factors, Reading, Turn
from listenwell.labels import LEVELS, MECHANISMS


def with_factors(dialogue: Dialogue) -> Dialogue:
    """The dialogue with the factors of each turn filled from its readings; known ones stay.

    A listener's turn also gets the emotion that was read from the turns before it.
    """
    turns: list[Turn] = []
    emotion: str | None = None
    for turn in dialogue.turns:
        own = emotion if turn.speaker == dialogue.listener else None
        turns.append(replace(turn, factors=_filled(turn, own)))
        if (read := turn.reading("emotion")) is not None:
            emotion = read.scores[0].label
    return replace(dialogue, turns=tuple(turns))


def _filled(turn: Turn, emotion: str | None) -> Factors | None:
    known = turn.factors or Factors()
    levels = known.levels or (_levels(turn) if known.mechanisms is None else None)
    factors = replace(
        known,
        emotion=known.emotion or emotion,
        act=known.act or _label(turn, "act"),
        expressed_emotion=known.expressed_emotion or _label(turn, "expressed_emotion"),
        intent=known.intent or _label(turn, "intent"),
        levels=levels,
    )
    return None if factors == Factors() else factors


def _label(turn: Turn, head: str) -> str | None:
    read = turn.reading(head)
    return read.scores[0].label if read else None


def _levels(turn: Turn) -> tuple[int, int, int] | None:
    """The level of each mechanism, where all three were read."""
    readings = [turn.reading(name) for name in MECHANISMS]
    if any(read is None for read in readings):
        return None
    first, second, third = (level_of(read) for read in readings if read)
    return first, second, third


def level_of(read: Reading) -> int:
    """0 where "no" is likelier than weak and strong together, which CoMAE §4.2 merges; else the likelier."""
    probability = {score.label: score.probability for score in read.scores}
    if probability.get("no", 0.0) >= 0.5:
        return 0
    return max((1, 2), key=lambda level: probability.get(LEVELS[level], 0.0))
