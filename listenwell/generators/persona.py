"""Selects the persona sentences that are most similar to the last turns.

A listener may have up to 100 sentences about itself (PEC §3), and a small model's prompt has room for a few.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from listenwell.dialogue import Dialogue, Persona

MOST_LINES = 100
"""More sentences than this are not considered."""

Encode = Callable[[Sequence[str]], np.ndarray]
"""Texts to vectors of length 1: (texts, width)."""


@dataclass
class Relevance:
    """Keeps the sentences of the listener's persona that are nearest to the dialogue."""

    tokens: int = 160
    """Budget of all kept sentences together."""
    most: int = 12
    """Sentences at most."""
    turns: int = 3
    """How many of the last turns a sentence is compared with."""
    fading: float = 0.5
    """How much less each earlier turn counts than the one after it."""
    encode: Encode | None = None
    """all-MiniLM-L6-v2 by default, loaded when it is first needed."""

    def __post_init__(self) -> None:
        self._vectors: dict[str, np.ndarray] = {}

    def keep(self, dialogue: Dialogue, length: Callable[[str], int]) -> tuple[Dialogue, tuple[str, ...]]:
        """The dialogue with what is kept of its listener's persona, and what the user should know.

        Kept sentences stay in their order; nothing is computed where all fit. `length` counts tokens.
        """
        persona = dialogue.persona_of(dialogue.listener)
        if persona is None or not persona.lines:
            return dialogue, ()
        lines, notices = persona.lines, list[str]()
        if len(lines) > MOST_LINES:
            notices.append(
                f"The persona has {len(lines)} sentences: only the first {MOST_LINES} were considered."
            )
            lines = lines[:MOST_LINES]
        lengths = [length(line) for line in lines]
        if len(lines) > self.most or sum(lengths) > self.tokens:
            kept = self._fitting(self._nearness(dialogue, lines), lengths)
            if not kept:
                notices.append("No sentence of the persona is short enough to be kept.")
            lines = tuple(lines[index] for index in kept)
        personas = tuple(
            Persona(other.speaker, lines) if other is persona else other for other in dialogue.personas
        )
        return replace(dialogue, personas=personas), tuple(notices)

    def _fitting(self, nearness: np.ndarray, lengths: Sequence[int]) -> list[int]:
        """Indices of the nearest sentences that fit, in order; one that is too long is skipped."""
        kept, room = list[int](), self.tokens
        for index in np.argsort(-nearness, kind="stable").tolist():
            if len(kept) < self.most and lengths[index] <= room:
                kept.append(index)
                room -= lengths[index]
        return sorted(kept)

    def _nearness(self, dialogue: Dialogue, lines: Sequence[str]) -> np.ndarray:
        """Weighted mean of each sentence's cosines with the last turns: (lines,)."""
        turns = [turn.text for turn in dialogue.turns[-self.turns :]][::-1]
        missing = [line for line in dict.fromkeys(lines) if line not in self._vectors]
        vectors = self._encoder()([*turns, *missing])
        if len(self._vectors) > 100 * MOST_LINES:  # a server with many personas
            self._vectors.clear()
        self._vectors.update(zip(missing, vectors[len(turns) :], strict=True))
        weights = self.fading ** np.arange(len(turns))
        query = weights @ vectors[: len(turns)] / weights.sum()
        nearness: np.ndarray = np.stack([self._vectors[line] for line in lines]) @ query
        return nearness

    def _encoder(self) -> Encode:
        if self.encode is None:
            from listenwell.runtime.sentence_encoder import SentenceEncoder

            self.encode = SentenceEncoder.load().encode
        return self.encode
