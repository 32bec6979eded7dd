"""Of a long persona the sentences that matter now: those nearest to what was said last.

A listener may have up to 100 sentences about itself (PEC §3), and a small model's prompt has room for a few.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from listenwell.dialogue import Dialogue, Persona
from listenwell.errors import InputError

ENCODER = "all-minilm-l6-v2"
MOST_LINES = 100
"""More sentences than this are not considered."""
_LONGEST = 128
"""Pieces of a text that are read."""

Encode = Callable[[Sequence[str]], np.ndarray]
"""Texts to vectors of length 1: (texts, width)."""


@dataclass(frozen=True)
class RelevanceConfig:
    """How much of a persona is kept."""

    tokens: int = 160
    """Budget of all kept sentences together."""
    most: int = 12
    """Sentences at most."""
    turns: int = 3
    """How many of the last turns a sentence is compared with."""
    fading: float = 0.5
    """How much less each earlier turn counts than the one after it."""

    def __post_init__(self) -> None:
        if min(self.tokens, self.most, self.turns) < 1 or not 0 <= self.fading <= 1:
            raise InputError(
                f"A persona of {self.most} lines in {self.tokens} tokens by {self.turns} turns, fading "
                f"{self.fading}, cannot be kept.",
                "Give tokens, most and turns from 1 up and fading from 0 to 1.",
            )


class Relevance:
    """Keeps the sentences of the listener's persona that are nearest to the dialogue.

    Args:
        config: how much is kept.
        encode: texts to vectors; all-MiniLM-L6-v2 otherwise, loaded when it is first needed.
    """

    def __init__(self, config: RelevanceConfig | None = None, encode: Encode | None = None) -> None:
        self.config = config or RelevanceConfig()
        self._encode = encode
        self._vectors: dict[str, np.ndarray] = {}

    def keep(self, dialogue: Dialogue, length: Callable[[str], int]) -> tuple[Dialogue, tuple[str, ...]]:
        """The dialogue with what is kept of its listener's persona, and what the user should know.

        Kept sentences stay in their order; nothing is computed where all fit. What is known of the others
        stays as it is: it is never the listener's own.

        Args:
            dialogue: any.
            length: how many tokens a sentence takes.
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
        if len(lines) > self.config.most or sum(lengths) > self.config.tokens:
            kept = self._fitting(self._nearness(dialogue, lines), lengths)
            if not kept:
                notices.append("No sentence of the persona is short enough to be kept.")
            lines = tuple(lines[place] for place in kept)
        personas = tuple(Persona(one.speaker, lines) if one is persona else one for one in dialogue.personas)
        return replace(dialogue, personas=personas), tuple(notices)

    def _fitting(self, nearness: np.ndarray, lengths: Sequence[int]) -> list[int]:
        """The nearest sentences that fit, by their numbers in order; one too long makes room for the next."""
        kept, room = list[int](), self.config.tokens
        for place in np.argsort(-nearness, kind="stable").tolist():
            if len(kept) < self.config.most and lengths[place] <= room:
                kept.append(place)
                room -= lengths[place]
        return sorted(kept)

    def _nearness(self, dialogue: Dialogue, lines: Sequence[str]) -> np.ndarray:
        """Weighted mean of each sentence's cosines with the last turns: (lines,)."""
        turns = [turn.text for turn in dialogue.turns[-self.config.turns :]][::-1]
        missing = [line for line in dict.fromkeys(lines) if line not in self._vectors]
        found = self._encoder()([*turns, *missing])
        if len(self._vectors) > 100 * MOST_LINES:  # a server that hears many personas
            self._vectors.clear()
        self._vectors.update(zip(missing, found[len(turns) :], strict=True))
        weights = self.config.fading ** np.arange(len(turns))
        asked = weights @ found[: len(turns)] / weights.sum()
        nearness: np.ndarray = np.stack([self._vectors[line] for line in lines]) @ asked
        return nearness

    def _encoder(self) -> Encode:
        if self._encode is None:
            self._encode = sentence_encoder()
        return self._encode


def sentence_encoder(base: str = ENCODER) -> Encode:
    """A sentence encoder on the CPU: the mean of the last layer at length 1 (Reimers & Gurevych 2019)."""
    import torch

    from listenwell.runtime.encoder import load_encoder
    from listenwell.runtime.text import Vocabulary

    model, folder = load_encoder(base)
    model.eval()
    vocabulary, longest = Vocabulary.from_folder(folder), min(_LONGEST, model.config.max_position_embeddings)
    begin, end = vocabulary.special("[CLS]"), vocabulary.special("[SEP]")

    def encode(texts: Sequence[str]) -> np.ndarray:
        rows = [[begin, *pieces[: longest - 2], end] for pieces in vocabulary.encode_many(texts)]
        tokens = torch.zeros(len(rows), max(map(len, rows), default=0), dtype=torch.long)
        mask = torch.zeros_like(tokens)
        for number, row in enumerate(rows):
            tokens[number, : len(row)], mask[number, : len(row)] = torch.tensor(row), 1
        with torch.inference_mode():
            states = model(input_ids=tokens, attention_mask=mask).last_hidden_state
            means = (states * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
            found: np.ndarray = torch.nn.functional.normalize(means, dim=1).numpy()
        return found

    return encode
