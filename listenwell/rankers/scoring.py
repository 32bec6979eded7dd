"""A scorer's scores for every pool of a split, kept on disk because they take minutes."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile

import numpy as np

from listenwell.corpora.sources import Source
from listenwell.dialogue import Example
from listenwell.errors import InputError
from listenwell.files import hash_files, written_whole
from listenwell.metrics import pools, rank_of_truth
from listenwell.progress import progress
from listenwell.rankers.ensemble import Ensemble
from listenwell.rankers.scorer import Scorer

RANKS = "ranks.npy"
"""In a training run's folder: the rank of every true reply of the shuffled test pools, for comparisons."""
POOL, POOL_SEED = 100, 0
"""Candidates of an example, the true one among them (PEC §5.2), and the seed of everybody's shuffle."""
_DAMAGE = (OSError, ValueError, EOFError, TokenError, BadZipFile)
"""What numpy raises at a file that is not whole, depending on which of its bytes are wrong."""


@dataclass(frozen=True)
class Pools:
    """A split's replies in blocks that are each other's candidates."""

    source: str
    split: str = "test"
    shuffled: bool = True
    path: Path | None = None
    most: int | None = None
    """Only so many blocks, the first ones of the shuffle."""

    def __post_init__(self) -> None:
        if self.most is not None and self.most < 1:
            raise InputError(f"The number of pools is {self.most}.", "Give 1 or more.")

    def blocks(self) -> Iterator[list[Example]]:
        """The examples of each block; a short last one is left out."""
        examples = list(Source(self.source, self.path).examples(self.split))
        if len(examples) < POOL:
            raise InputError(
                f"{self} holds {len(examples)} replies, too few for a pool of {POOL}.", "Take a larger part."
            )
        for block in islice(pools(len(examples), POOL, self.shuffled, POOL_SEED), self.most):
            yield [examples[index] for index in block]

    def files(self) -> tuple[Path, ...]:
        """What is read."""
        return Source(self.source, self.path).files(self.split)

    def key(self) -> str:
        """A name for the data and how it is divided."""
        # Which of a file's talks are a split's can hang on another file that is there or is not.
        is_part = self.split != "test" and Source(self.source, self.path).divides
        split = f"{self.split}, divided" if is_part else self.split
        parts = (hash_files(self.files()), self.source, split, self.shuffled, POOL, POOL_SEED)
        return sha256(repr(parts).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f"{self.source} {self.split}, {'shuffled' if self.shuffled else 'unshuffled'}"


def pool_scores(scorer: Scorer, pools_of_split: Pools, folder: Path) -> np.ndarray:
    """Scores of every block: (blocks, contexts, replies) float32, the true replies on the diagonals.

    They are kept in `folder` by a key of scorer and data, each member's of an ensemble; a stopped run
    continues from there.
    """
    if isinstance(scorer, Ensemble):
        parts = [pool_scores(member, pools_of_split, folder) for member in scorer.scorers]
        weights = np.array(scorer.weights, np.float32)
        return np.asarray(np.einsum("k,kbnc->bnc", weights, np.stack(parts)))
    scores_folder = (
        folder / f"{scorer.name}-{sha256(scorer.key.encode()).hexdigest()[:16]}-{pools_of_split.key()}"
    )
    blocks = list(pools_of_split.blocks())
    scores = []
    with progress(f"{scorer.name}, {pools_of_split}", len(blocks), "pools") as advance:
        for number, block in enumerate(blocks):
            scores.append(_block(scorer, block, scores_folder / f"{number}.npy"))
            advance(1)
    return np.stack(scores)


def ranks(scores: np.ndarray) -> np.ndarray:
    """The rank of every true reply, block after block: (blocks · contexts,)."""
    return np.concatenate([rank_of_truth(block, np.arange(len(block))) for block in scores])


def truth_first(scores: np.ndarray) -> np.ndarray:
    """Every context a row with the true reply's score in column 0: (blocks · contexts, replies)."""
    rows = []
    for block in scores:
        order = np.argsort(~np.eye(len(block), dtype=bool), axis=1, kind="stable")
        rows.append(np.take_along_axis(block, order, axis=1))
    return np.concatenate(rows)


def _block(scorer: Scorer, block: Sequence[Example], file: Path) -> np.ndarray:
    """One block's scores, from the file where they are there and whole."""
    shape = (len(block), len(block))
    if file.exists():
        try:
            known: np.ndarray = np.load(file, allow_pickle=False)
            if known.shape == shape and known.dtype == np.float32:
                return known
        except _DAMAGE:
            pass
        print(f"listenwell: {file} is damaged. It is made again.", file=sys.stderr)
    scores = scorer.score([item.context for item in block], [item.reply.text for item in block])
    scores = scores.astype(np.float32)
    with written_whole(file) as out:
        np.save(out, scores, allow_pickle=False)
    return scores
