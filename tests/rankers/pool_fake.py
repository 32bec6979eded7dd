"""A ranker without a model, for pools: the same names, quick, and exact."""

import hashlib

import numpy as np

WIDTH = 8


def vector(text):
    """Follows from the letters alone; of length 1."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    drawn = np.random.default_rng(seed).standard_normal(WIDTH)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)


class FakeSelector:
    """The first score is the product of vectors; the full one prefers shared words, then long replies."""

    name = "fake"
    width = WIDTH

    def __init__(self, key="fake key", stop_after=None):
        self.key = key
        self.stop_after = stop_after
        self.encoded = []
        """Every text whose vector was asked for."""
        self.read = []
        """Texts that the full ranker read, by call."""

    @classmethod
    def load(cls, folder=None, weights=None):
        return cls(f"fake {folder} {weights}")

    def reply_vectors(self, replies, advance=None):
        if self.stop_after is not None and len(self.encoded) >= self.stop_after:
            raise KeyboardInterrupt
        self.encoded += replies
        if advance:
            advance(len(replies))
        return np.stack([vector(reply) for reply in replies])

    def context_vector(self, dialogue):
        persona = dialogue.persona_of(dialogue.listener)
        return vector(
            "|".join([turn.text for turn in dialogue.turns] + list(persona.lines if persona else ()))
        )

    def scores(self, dialogue, replies):
        self.read.append(list(replies))
        asked = set(dialogue.turns[-1].text.lower().split())
        return np.array([len(asked & set(reply.lower().split())) + len(reply) / 1000 for reply in replies])
