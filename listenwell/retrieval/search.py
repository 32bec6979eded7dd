"""The best replies of a large pool: a quick search by vectors, the best of it read again by the full ranker.

Up to EXACT_LIMIT vectors are all looked at. Above, faiss holds them in lists around centres, two bits a
number (product quantization, Jégou et al. 2011): a query reads the lists whose centres are nearest, and the
best few hundred of it are scored once more by the exact vectors. How many lists and how many vectors that
takes is measured when the index is built, so that recall@100 against looking at every vector reaches GOAL
with this very ranker and pool.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from listenwell.dialogue import SPEAKER, Dialogue, Turn
from listenwell.errors import InputError
from listenwell.files import one_at_a_time, written_whole
from listenwell.progress import progress
from listenwell.retrieval.index import Index, Stamp, open_index
from listenwell.retrieval.pool import Pool
from listenwell.serialization import ALWAYS, Record

if TYPE_CHECKING:
    from listenwell.rankers.ranker import Ranker

EXACT_LIMIT = 20_000
"""Vectors up to which looking at each takes a few milliseconds and needs no library."""
CANDIDATES = 100
"""How many the full ranker reads (PEC §4.1 ranks pools of 100)."""
GOAL = 0.97
"""Recall@100 that the two numbers are chosen for, above the promised 0.95."""
QUESTIONS = 64
"""Asked of a new index to choose them."""
WIDER = (4, 8, 16, 32, 64)
"""How many times as many as wanted may be scored once more by the exact vectors."""
ROWS = 1 << 14
"""Vectors that are in memory at a time."""
SAMPLE = 40
"""Vectors a list that its centre is learned from; faiss asks for 39 or more."""
SEED = 20

Pairs = tuple[np.ndarray, np.ndarray]
"""Indices (int64) and scores (float32), the best first; of equal scores the first index."""


@dataclass(frozen=True)
class PoolReply(Record):
    """A reply of the pool."""

    text: str
    score: float
    """The full ranker's, the higher the better."""
    first_score: float
    """The quick search's: an inner product of vectors."""
    index: int
    """Of the reply in the cleaned pool."""


class Exact:
    """Computes every inner product with vectors (n, width); needs no library."""

    def __init__(self, vectors: np.ndarray) -> None:
        # Few vectors stay in memory, ready to be multiplied.
        self._vectors = vectors.astype(np.float32) if len(vectors) <= EXACT_LIMIT else vectors

    def find(self, query: np.ndarray, count: int) -> Pairs:
        """The `count` vectors with the greatest inner product with a query (width,)."""
        query = query.astype(np.float32)
        blocks = range(0, len(self._vectors), ROWS)
        scores = [
            self._vectors[start : start + ROWS].astype(np.float32, copy=False) @ query for start in blocks
        ]
        return _best(np.arange(len(self._vectors)), np.concatenate(scores), count)


@dataclass(frozen=True)
class Lists(Record):
    """How a faiss index was made, and what it reached."""

    lists: int
    probes: int
    """Lists that a query reads."""
    wider: int
    """How many times as many as wanted are scored once more."""
    recall: float
    """Measured recall@100 against looking at every vector."""
    questions: int
    """How many queries that was measured with."""
    file: Stamp
    goal: float = field(default=GOAL, metadata=ALWAYS)


class Faiss:
    """A faiss index of lists, with a last look at the exact vectors (n, width); see `Lists`."""

    def __init__(self, library: Any, index: Any, vectors: np.ndarray, probes: int, wider: int) -> None:  # noqa: ANN401
        self._index, self._vectors, self.probes, self.wider = index, vectors, probes, wider
        self._parameters = library.SearchParametersIVF

    def find(self, query: np.ndarray, count: int) -> Pairs:
        """The nearest of those in the lists that are read."""
        queries = np.ascontiguousarray(query[None], np.float32)
        wide = min(self.wider * count, len(self._vectors))
        _, (row,) = self._index.search(queries, wide, params=self._parameters(nprobe=self.probes))
        indices = np.sort(row[row >= 0])  # in the order of the file; -1 fills what the lists lack
        return _best(indices, self._vectors[indices].astype(np.float32) @ queries[0], count)


def open_nearest(index: Index, selector: "Ranker") -> tuple[Exact | Faiss, tuple[str, ...]]:
    """What searches a pool, built first where it is not there; and a notice if it could be quicker."""
    if len(index.vectors) <= EXACT_LIMIT:
        return Exact(index.vectors), ()
    try:
        faiss = import_module("faiss")
    except ModuleNotFoundError:
        notice = (
            f"Each of the {len(index.vectors):,} replies is looked at for every answer. "
            "Much quicker, with an index: pip install 'listenwell[pool]'"
        )
        return Exact(index.vectors), (notice,)
    with one_at_a_time(index.folder):
        return _kept(faiss, index) or _built(faiss, index, selector), ()


def _files(index: Index) -> tuple[Path, Path]:
    return index.folder / "lists.faiss", index.folder / "lists.json"


def _mapped(faiss: Any, file: Path) -> Any:  # noqa: ANN401
    """The index, left in its file where faiss can; plain IO_FLAG_MMAP is several times as slow."""
    return faiss.read_index(str(file), faiss.IO_FLAG_MMAP_IFC | faiss.IO_FLAG_READ_ONLY)


def _kept(faiss: Any, index: Index) -> Faiss | None:  # noqa: ANN401
    """The index on disk, if it is whole."""
    file, about = _files(index)
    try:
        known = Lists.from_json(about.read_bytes())
        if known.goal != GOAL or not known.file.fits(file):
            return None
        mapped = _mapped(faiss, file)
    except (OSError, InputError, RuntimeError):  # faiss says RuntimeError of what it cannot read
        return None
    return Faiss(faiss, mapped, index.vectors, known.probes, known.wider)


def _built(faiss: Any, index: Index, selector: "Ranker") -> Faiss:  # noqa: ANN401
    """A new index on disk, and how many of its lists to read."""
    vectors, (file, about) = index.vectors, _files(index)
    count, width = vectors.shape
    # Twice the root, a power of two: reading centres and reading lists take about as long.
    lists = 2 ** round(math.log2(2 * math.sqrt(count)))
    # Four bits for every two numbers, laid out so that the processor compares 32 vectors at a time.
    kind = f"IVF{lists},PQ{width // 2 if width % 2 == 0 else width}x4fs"
    built = faiss.index_factory(width, kind, faiss.METRIC_INNER_PRODUCT)
    with progress("building the search index", total=count, unit="replies") as advance:
        sample = np.sort(np.random.default_rng(SEED).choice(count, min(count, SAMPLE * lists), replace=False))
        built.cp.seed, built.cp.niter = SEED, 10
        built.train(vectors[sample].astype(np.float32))
        for start in range(0, count, ROWS):
            built.add(vectors[start : start + ROWS].astype(np.float32))
            advance(min(ROWS, count - start))
    with written_whole(file) as out:
        faiss.write_index(built, faiss.PyCallbackIOWriter(out.write))
    del built
    mapped = _mapped(faiss, file)
    rows = np.linspace(0, count - 1, min(QUESTIONS, count)).astype(int).tolist()
    questions = [Dialogue((Turn(SPEAKER, index.replies[row]),)) for row in rows]
    queries = np.stack([selector.context_vector(question) for question in questions]).astype(np.float32)
    nearest = Faiss(faiss, mapped, vectors, lists, WIDER[0])
    exact = Exact(vectors)
    recall = _tune(nearest, queries, [exact.find(query, CANDIDATES)[0] for query in queries], lists)
    reached = Lists(lists, nearest.probes, nearest.wider, round(recall, 4), len(queries), Stamp.of(file))
    with written_whole(about) as out:
        out.write(reached.to_json().encode())
    return nearest


def _tune(nearest: Faiss, queries: np.ndarray, truth: Sequence[np.ndarray], lists: int) -> float:
    """Set `wider` and `probes` to the least that reaches a recall of GOAL; returns what was reached.

    `truth` holds for each query the indices of the true nearest vectors.
    """

    def recall() -> float:
        hits = [
            np.isin(indices, nearest.find(query, CANDIDATES)[0]).mean()
            for query, indices in zip(queries, truth, strict=True)
        ]
        return float(np.mean(hits))

    for nearest.wider in WIDER:
        if recall() >= (1 + GOAL) / 2:  # with every list read: half of the loss is left for the lists
            break
    nearest.probes = 1
    while (reached := recall()) < GOAL and nearest.probes < lists:
        nearest.probes = min(lists, nearest.probes + nearest.probes // 4 + 1)
    return reached


@dataclass(frozen=True)
class PoolSearch:
    """Replies of a pool for a dialogue: a quick search, whose best the ranker scores again."""

    selector: "Ranker"
    index: Index
    nearest: Exact | Faiss
    notices: tuple[str, ...] = ()
    """What the user should know."""

    @classmethod
    def open(cls, selector: "Ranker", pool: Pool) -> "PoolSearch":
        """Open a pool; the first time its replies are encoded, which can be stopped and goes on later."""
        index = open_index(selector, pool)
        return cls(selector, index, *open_nearest(index, selector))

    def search(
        self, dialogue: Dialogue, top: int = 10, candidates: int = CANDIDATES
    ) -> tuple[PoolReply, ...]:
        """The best replies, the best first.

        Args:
            dialogue: ends with what is to be answered.
            top: how many to give.
            candidates: how many of the quick search the full ranker reads; never fewer than `top`.
        """
        if top < 1 or candidates < 1:
            raise InputError(f"The best {min(top, candidates)} of a pool were asked for.", "Give 1 or more.")
        query = self.selector.context_vector(dialogue)
        indices, first = self.nearest.find(query, max(top, candidates))
        texts = [self.index.replies[int(index)] for index in indices]
        scores = np.asarray(self.selector.scores(dialogue, texts), np.float64)
        order = np.lexsort((np.arange(len(texts)), -scores))[:top]
        return tuple(
            PoolReply(texts[row], float(scores[row]), float(first[row]), int(indices[row])) for row in order
        )


def _best(indices: np.ndarray, scores: np.ndarray, count: int) -> Pairs:
    """The highest scores, the best first; of equal ones the first index."""
    if len(scores) > count:
        # All that reach the count-th score: which of equal ones stay must not depend on the partition.
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        kept = scores >= least
        indices, scores = indices[kept], scores[kept]
    order = np.lexsort((indices, -scores))[:count]
    return indices[order], scores[order]
