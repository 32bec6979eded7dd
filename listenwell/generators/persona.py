"""Of a long persona the sentences that matter now: those nearest to what was said last.

A listener may have up to 100 sentences about itself (PEC §3), and a small model's prompt has room for a few.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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


def sentence_encoder(base: str = ENCODER, engine: str = "auto", precision: str = "int8") -> Encode:
    """A sentence encoder on the CPU: the mean of the last layer at length 1 (Reimers & Gurevych 2019).

    Args:
        base: a name of `weights.BASE_MODELS`.
        engine: "onnx", "torch", or "auto": onnxruntime where it is installed.
        precision: of onnx, "int8" or "fp32"; torch is always exact.
    """
    from listenwell.runtime.engines import ONNX, choose_engine
    from listenwell.runtime.onnx.checkpoint_encoder import base_folder, runs_on_onnx
    from listenwell.runtime.text import Vocabulary

    folder = base_folder(base)
    chosen = choose_engine(engine, f"The encoder {base}", runs_on_onnx(folder))
    states, places = _onnx_states(folder, precision) if chosen == ONNX else _torch_states(base, folder)
    vocabulary, longest = Vocabulary.from_folder(folder), min(_LONGEST, places)
    begin, end = vocabulary.special("[CLS]"), vocabulary.special("[SEP]")

    def encode(texts: Sequence[str]) -> np.ndarray:
        rows = [[begin, *pieces[: longest - 2], end] for pieces in vocabulary.encode_many(texts)]
        tokens = np.zeros((len(rows), max(map(len, rows), default=0)), np.int64)
        mask = np.zeros_like(tokens)
        for number, row in enumerate(rows):
            tokens[number, : len(row)], mask[number, : len(row)] = row, 1
        sums = (states(tokens, mask) * mask[:, :, None]).sum(axis=1)
        means = sums / mask.sum(axis=1, keepdims=True)
        found: np.ndarray = means / np.linalg.norm(means, axis=1, keepdims=True)
        return found.astype(np.float32)

    return encode


_States = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Tokens (rows, length) and where they are (rows, length) to states (rows, length, width)."""


def _onnx_states(folder: Path, precision: str) -> tuple[_States, int]:
    """What runs the encoder, and how many tokens a text may have."""
    from listenwell.runtime.onnx.encoder import OnnxEncoder

    encoder = OnnxEncoder.load(folder, precision=precision)

    def states(tokens: np.ndarray, mask: np.ndarray) -> np.ndarray:
        places = np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
        return encoder.states(tokens, np.zeros_like(tokens), places, mask)

    return states, encoder.positions


def _torch_states(base: str, folder: Path) -> tuple[_States, int]:
    """The same with torch."""
    import torch

    from listenwell.runtime.encoder import load_encoder

    model, _ = load_encoder(base, folder)
    model.eval()

    def states(tokens: np.ndarray, mask: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            given = {"input_ids": torch.from_numpy(tokens), "attention_mask": torch.from_numpy(mask)}
            found: np.ndarray = model(**given).last_hidden_state.numpy()
        return found

    return states, int(model.config.max_position_embeddings)
