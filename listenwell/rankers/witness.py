"""A trained ranker that is asked about dialogues: text in, scores out."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from listenwell.checkpoint import MANIFEST, open_checkpoint
from listenwell.dialogue import Dialogue
from listenwell.errors import CheckpointError
from listenwell.files import hash_files
from listenwell.weights import HUB_FILES, find_weights

if TYPE_CHECKING:
    from listenwell.rankers.base import Ranker
    from listenwell.rankers.inputs import Inputs


class Witness(Protocol):
    """Whoever can say how well replies fit."""

    name: str
    key: str
    """sha256 over what shapes the scores. Not where they are made: those of a GPU and of a CPU differ by
    rounding only, and share a key."""

    def score(self, contexts: Sequence[Dialogue], replies: Sequence[str]) -> np.ndarray:
        """Every reply for every context: (contexts, replies) float32, the higher the better."""
        ...


class RankerWitness:
    """One ranker of `rankers.RANKERS`.

    Args:
        ranker: trained, in eval mode.
        inputs: makes its tokens.
        name: how results call it.
        key: names its weights and settings.
    """

    def __init__(self, ranker: "Ranker", inputs: "Inputs", name: str, key: str) -> None:
        self.ranker, self.inputs, self.name, self.key = ranker, inputs, name, key

    @classmethod
    def load(cls, folder: Path, weights: Path | None = None) -> "RankerWitness":
        """From its checkpoint; on a GPU where there is one."""
        import torch

        from listenwell.rankers.model import load_ranker

        ranker, inputs = load_ranker(folder, weights)
        if torch.cuda.is_available():
            ranker = ranker.cuda()
        key = checkpoint_key(folder)
        if weights is not None:  # the checkpoint's own sums say nothing of another encoder
            encoder = find_weights(ranker.config.base, weights)
            key = sha256(f"{key} {hash_files(encoder / name for name in HUB_FILES)}".encode()).hexdigest()
        return cls(ranker, inputs, ranker.config.model, key)

    @property
    def gives_vectors(self) -> bool:
        """Whether replies can be searched by inner product."""
        return bool(self.ranker.gives_vectors)

    @property
    def width(self) -> int:
        """Of the vectors."""
        return int(self.ranker.vector_width)

    def score(self, contexts: Sequence[Dialogue], replies: Sequence[str]) -> np.ndarray:
        """(contexts, replies) float32"""
        from listenwell.rankers.inference import score

        inputs = self.inputs
        return score(
            self.ranker, inputs.contexts(contexts), inputs.personas(contexts), inputs.replies(replies)
        )

    def reply_vectors(
        self, replies: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """(replies, width) float32; their inner products with `context_vectors` are first scores."""
        import torch

        from listenwell.rankers.inference import states_of

        self._need_vectors()
        with torch.inference_mode():
            found = self.ranker.vectors(states_of(self.ranker, self.inputs.replies(replies), advance))
        return np.asarray(found.float().cpu().numpy())

    def context_vectors(self, contexts: Sequence[Dialogue]) -> np.ndarray:
        """(contexts, width) float32"""
        import torch

        from listenwell.rankers.inference import states_of

        self._need_vectors()
        personas = self.inputs.personas(contexts)
        with torch.inference_mode():
            persona = states_of(self.ranker, personas) if any(map(len, personas)) else None
            found = self.ranker.asked(states_of(self.ranker, self.inputs.contexts(contexts)), persona)
        return np.asarray(found.float().cpu().numpy())

    def _need_vectors(self) -> None:
        if not self.gives_vectors:
            raise CheckpointError(
                f"The ranker {self.name} gives no vectors for large pools.",
                "Use a bi-encoder, or CoBERT trained with cobert.vectors.",
            )


def checkpoint_key(folder: Path) -> str:
    """A name for a checkpoint's contents: its manifest holds the sum of every file."""
    open_checkpoint(folder)
    return hash_files([folder / MANIFEST])
