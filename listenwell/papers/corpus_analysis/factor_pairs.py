"""How two factors of replies hang together: conditional tables and mutual information (CoMAE §4.5).

CoMAE counts the pairs of communication mechanism (CM), dialogue act (DA) and expressed emotion (EM) in
replies, takes their frequencies for P(X, Y) and draws P(Y | X) for (CM, DA), (CM, EM) and (DA, EM). Its text
speaks of "the CM exploration" as of one value of X, while the three mechanisms are three yes-or-no questions:
so each mechanism that a reply uses makes a pair of its own, and a reply with two of them counts twice.
Replies that use none were filtered out before (§4.4). Both are done here. Beside them stand tables of all
replies with the mechanisms together as one factor of eight values, where each reply counts once.

§6.3 names the pairs' mutual information (printed "manual information"), but the paper gives no formula, unit
or value. Here it is Shannon's, of the counted P(X, Y), in bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from listenwell.dialogue import Factors
from listenwell.errors import InputError
from listenwell.labels import ACTS, MECHANISM_ABBREVIATIONS, MECHANISMS, TONES, LabelSet
from listenwell.serialization import Record

DRAWS = 1000
"""Bootstrap samples behind an interval."""
SHORT = {name: short for short, name in MECHANISM_ABBREVIATIONS.items()}
SETS = LabelSet(
    "set of mechanisms",
    tuple(
        "+".join(some) or "none"
        for size in range(len(MECHANISMS) + 1)
        for some in combinations(MECHANISM_ABBREVIATIONS, size)
    ),
)
"""The mechanisms of a reply as one factor: none, ER, IP, EX, ER+IP, …"""

FACTORS: dict[str, LabelSet] = {"mechanism": MECHANISMS, "mechanisms": SETS, "act": ACTS, "tone": TONES}
EMPATHETIC, ALL = "replies with a mechanism", "all replies"


@dataclass(frozen=True)
class Pairing(Record):
    """Two factors, X and Y, and the replies in which they are counted."""

    given: str
    """X: one of FACTORS, a row each label."""
    of: str
    """Y: another one, a column each label."""
    whose: str = EMPATHETIC
    """EMPATHETIC leaves out replies that are known to use no mechanism, as CoMAE §4.4 does; or ALL."""

    @property
    def rows(self) -> LabelSet:
        """The labels of X."""
        return FACTORS[self.given]

    @property
    def columns(self) -> LabelSet:
        """The labels of Y."""
        return FACTORS[self.of]


PAIRINGS = (
    Pairing("mechanism", "act"),
    Pairing("mechanism", "tone"),
    Pairing("act", "tone"),
    Pairing("mechanisms", "act", ALL),
    Pairing("mechanisms", "tone", ALL),
    Pairing("act", "tone", ALL),
)
"""What is counted; the first three are the paper's."""


@dataclass(frozen=True)
class Information(Record):
    """What two factors tell about each other, in bits."""

    bits: float
    """The mutual information I(X; Y)."""
    low: float
    """Lower end of the 95 % interval; never below 0."""
    high: float
    probability: float
    """What independent factors would show in a table of this size by chance: (rows − 1) (columns − 1) /
    (2 n ln 2), of those that occur (Miller 1955). A value near it means nothing."""
    share: float | None
    """I(X; Y) / H(Y): how much of the uncertainty about Y goes when X is known; None if there is none."""


@dataclass(frozen=True)
class CrossTable:
    """How often Y comes with X."""

    pairing: Pairing
    counts: tuple[tuple[int, ...], ...]
    information: Information | None
    """None where nothing was counted."""

    @property
    def total(self) -> int:
        """How many pairs were counted."""
        return sum(map(sum, self.counts))

    def conditional(self) -> tuple[tuple[float, ...] | None, ...]:
        """P(Y | X), a row for each X; None for an X that never occurs."""
        return tuple(tuple(n / sum(row) for n in row) if any(row) else None for row in self.counts)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values, with the unit."""
        return {
            "given": self.pairing.given,
            "of": self.pairing.of,
            "whose": self.pairing.whose,
            "unit": "bits",
            "information": self.information and self.information.to_dict(),
            "rows": list(self.pairing.rows),
            "columns": list(self.pairing.columns),
            "counts": [list(row) for row in self.counts],
            "conditional": [row and list(row) for row in self.conditional()],
        }


def cross_table(
    replies: Sequence[tuple[int, Factors]], pairing: Pairing, seed: int = 0, draws: int = DRAWS
) -> CrossTable:
    """Count the pairs (X, Y) of replies, with their mutual information.

    Args:
        replies: for each the number of its dialogue and its factors; those without X or Y are passed over.
        pairing: X, Y and whose.
        seed: of the bootstrap.
        draws: how many samples it takes.
    """
    rows, columns = pairing.rows, pairing.columns
    pairs = [
        (dialogue, rows.index(x) * len(columns) + columns.index(y))
        for dialogue, factors in replies
        if pairing.whose == ALL or factors.mechanisms != ()
        for x in _values(factors, pairing.given)
        for y in _values(factors, pairing.of)
    ]
    shape = (len(rows), len(columns))
    dialogues, cells = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    table = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    information = _information(dialogues, cells, shape, seed, draws) if pairs else None
    return CrossTable(pairing, tuple(tuple(map(int, row)) for row in table), information)


def mutual_information(counts: np.ndarray) -> float:
    """I(X; Y) = Σ P(x, y) log₂ (P(x, y) / (P(x) P(y))) of a table of counts, in bits; 0 for an empty one."""
    return entropy(counts.sum(axis=0)) + entropy(counts.sum(axis=1)) - entropy(counts.ravel())


def entropy(counts: np.ndarray) -> float:
    """H(X) = −Σ P(x) log₂ P(x) of counts, in bits; 0 for none."""
    present = counts[counts > 0] / max(counts.sum(), 1)
    return float(-(present * np.log2(present)).sum())


def _information(
    dialogues: np.ndarray, cells: np.ndarray, shape: tuple[int, int], seed: int, draws: int
) -> Information:
    """The mutual information and its interval, from dialogues drawn with replacement.

    A drawn sample repeats replies, so every table of one looks more dependent than the corpus: the samples'
    values are moved so that their mean is the corpus's value, then the middle 95 % of them are the interval.
    """
    if draws < 1:
        raise InputError(f"There are {draws} draws.", "Give 1 or more; 1000 is usual.")
    size, random = shape[0] * shape[1], np.random.default_rng(seed)
    table = np.bincount(cells, minlength=size).reshape(shape)
    _, owners = np.unique(dialogues, return_inverse=True)
    many = int(owners.max()) + 1
    samples = np.empty(draws)
    for number in range(draws):
        times = np.bincount(random.integers(many, size=many), minlength=many)
        drawn = np.bincount(cells, weights=times[owners], minlength=size)
        samples[number] = mutual_information(drawn.reshape(shape))
    bits = max(0.0, mutual_information(table))  # rounding can leave −1e-16
    low, high = np.quantile(samples - samples.mean() + bits, [0.025, 0.975])
    freedom = (np.count_nonzero(table.sum(axis=1)) - 1) * (np.count_nonzero(table.sum(axis=0)) - 1)
    probability = float(freedom / (2 * len(cells) * np.log(2)))
    uncertainty = entropy(table.sum(axis=0))
    share = bits / uncertainty if uncertainty > 0 else None
    return Information(bits, max(0.0, float(low)), max(0.0, float(high)), probability, share)


def _values(factors: Factors, name: str) -> tuple[str, ...]:
    """The labels of one factor of a reply; none where it is unknown."""
    if name == "mechanism":
        return factors.mechanisms or ()
    if name == "mechanisms":
        return () if factors.mechanisms is None else (together(factors.mechanisms),)
    label = getattr(factors, name)
    return () if label is None else (label,)


def together(mechanisms: Sequence[str]) -> str:
    """The mechanisms of a reply as one of SETS."""
    return "+".join(SHORT[name] for name in mechanisms) or "none"
