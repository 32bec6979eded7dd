"""Factor statistics of an annotated corpus: cross tables, label distributions and words by label.

CoMAE (§4.5) counts the pairs of communication mechanism (CM), dialogue act (DA) and expressed emotion (EM) in
replies and draws P(Y | X) for (CM, DA), (CM, EM) and (DA, EM). Each mechanism of a reply makes a pair, so a
reply with two counts twice, and replies without any are left out (§4.4). The tables over all replies take the
mechanisms together, as one factor of eight values, and count each reply once. The paper gives no formula for
the mutual information of §6.3; here it is Shannon's, in bits.
"""

import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from listenwell.dialogue import Dialogue, Factors, Turn
from listenwell.errors import InputError
from listenwell.labels import (
    ACTS,
    EMOTIONS,
    EXPRESSED_EMOTIONS,
    LEVELS,
    MECHANISM_ABBREVIATIONS,
    MECHANISMS,
    LabelSet,
)
from listenwell.labels import EMOTIONS_AND_INTENTS as BOTH
from listenwell.papers.corpus_analysis.words import (
    PRIOR_WORDS,
    SEEN,
    TYPICAL,
    LabelWords,
    label_words,
    word_tokens,
)

DRAWS = 1000
"""Bootstrap samples behind an interval."""
SHORT = {name: short for short, name in MECHANISM_ABBREVIATIONS.items()}
_SUBSETS = [
    some for size in range(len(MECHANISMS) + 1) for some in combinations(MECHANISM_ABBREVIATIONS, size)
]
SETS = LabelSet("set of mechanisms", tuple("+".join(some) or "none" for some in _SUBSETS))
"""The mechanisms of a reply as one factor: none, ER, IP, EX, ER+IP, …"""
FACTORS: dict[str, LabelSet] = {
    "mechanism": MECHANISMS,
    "mechanisms": SETS,
    "act": ACTS,
    "expressed_emotion": EXPRESSED_EMOTIONS,
}
EMPATHETIC, ALL = "replies with a mechanism", "all replies"
PAIRINGS = (
    ("mechanism", "act", EMPATHETIC),
    ("mechanism", "expressed_emotion", EMPATHETIC),
    ("act", "expressed_emotion", EMPATHETIC),
    ("mechanisms", "act", ALL),
    ("mechanisms", "expressed_emotion", ALL),
    ("act", "expressed_emotion", ALL),
)
"""X, Y and the replies they are counted in; the first three are CoMAE's Figure 2."""
DISTRIBUTIONS: dict[str, tuple[str, LabelSet, str, str]] = {
    "emotion": ("emotion of the conversation, given by the corpus", EMOTIONS, "conversation", "emotion"),
    "emotion_heard": ("predicted emotion before a reply", EMOTIONS, "reply", "predicted"),
    "intent_speaker": ("emotion or intent of the speaker's turns", BOTH, "speaker", "intent"),
    "intent_listener": ("emotion or intent of the listener's turns", BOTH, "listener", "intent"),
    "intent_last": ("emotion or intent of the last turn", BOTH, "last", "intent"),
    "act": ("dialogue act of replies", ACTS, "reply", "act"),
    "expressed_emotion": ("expressed emotion of replies", EXPRESSED_EMOTIONS, "reply", "expressed_emotion"),
    "mechanism": ("mechanisms of replies, which can use several", MECHANISMS, "reply", "mechanism"),
    "mechanisms": ("mechanisms of replies together", SETS, "reply", "mechanisms"),
    **{
        f"level_{name}": (f"level of {name.replace('_', ' ')} in replies", LEVELS, "reply", f"level_{name}")
        for name in MECHANISMS
    },
}
"""By name: title, labels, group of turns, column. Emotions are EmpatheticDialogues' Figure 3, last turns
MEED2's Figure 2, acts and emotions CoMAE's Figure 5. Everyone who is not the listener is a speaker."""
WORDS: dict[str, tuple[str, LabelSet, str, str]] = {
    **{
        f"{name}_{role}": (f"the {role}'s words by the {emotion} emotion", EMOTIONS, role, column)
        for name, emotion, column in (
            ("emotion", "conversation's", "emotion"),
            ("heard", "predicted", "predicted"),
        )
        for role in ("speaker", "listener")
    },
    "act": ("words of replies by dialogue act", ACTS, "reply", "act"),
    "expressed_emotion": (
        "words of replies by expressed emotion",
        EXPRESSED_EMOTIONS,
        "reply",
        "expressed_emotion",
    ),
}


@dataclass(frozen=True)
class Information:
    """The mutual information of two factors, in bits."""

    bits: float
    low: float
    """Lower end of the 95 % interval; never below 0."""
    high: float
    independent: float
    """Expected of independent factors in a table of this size: (rows − 1) (columns − 1) / (2 n ln 2), of
    those that occur (Miller 1955). A value near it means nothing."""
    share: float | None
    """I(X; Y) / H(Y): the share of the uncertainty about Y that X removes; None where there is none."""


@dataclass(frozen=True)
class CrossTable:
    """Counts of Y (columns) with X (rows), and their mutual information; None where nothing was counted."""

    x: str
    y: str
    whose: str
    counts: pd.DataFrame
    information: Information | None

    @property
    def conditional(self) -> pd.DataFrame:
        """P(Y | X): each row adds up to 1, or is NaN where X never occurs."""
        return self.counts.div(self.counts.sum(axis=1), axis=0)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values, with the unit."""
        shares = [None if np.isnan(row[0]) else row for row in self.conditional.to_numpy().tolist()]
        counts = self.counts.to_dict("split")
        return {
            "given": self.x,
            "of": self.y,
            "whose": self.whose,
            "unit": "bits",
            "information": self.information and asdict(self.information),
            "rows": counts["index"],
            "columns": counts["columns"],
            "counts": counts["data"],
            "conditional": shares,
        }


@dataclass(frozen=True)
class Distribution:
    """Counts by label, the most frequent first; `total` is how many items have a label."""

    name: str
    title: str
    total: int
    counts: dict[str, int]


@dataclass(frozen=True)
class Analysis:
    """All that is counted in a corpus; distributions and words only where there are any."""

    dialogues: int
    turns: int
    replies: int
    tables: tuple[CrossTable, ...]
    distributions: dict[str, Distribution]
    words: dict[str, list[LabelWords]]

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        tables = [table.to_dict() for table in self.tables]
        plain = asdict(replace(self, tables=()))
        return {**plain, "tables": tables, "distributions": list(plain["distributions"].values())}


def analyse(dialogues: Iterable[Dialogue], seed: int = 0, draws: int = DRAWS) -> Analysis:
    """Count everything in an annotated corpus; seed and draws are of the bootstrap behind the intervals."""
    turns = turn_table(dialogues)
    groups = {
        "conversation": turns.drop_duplicates("dialogue"),
        "speaker": turns[~turns["is_listener"]],
        "listener": turns[turns["is_listener"]],
        "last": turns.drop_duplicates("dialogue", keep="last"),
        "reply": turns[turns["is_reply"]],
    }
    distributions = {name: _distribution(name, groups) for name in DISTRIBUTIONS}
    # Predicted emotions stand in where the corpus gives none.
    unused = "heard_" if distributions["emotion"].total else "emotion_"
    words = {
        name: label_words(groups[group][column], groups[group]["words"], labels)
        for name, (_, labels, group, column) in WORDS.items()
        if not name.startswith(unused)
    }
    return Analysis(
        len(groups["conversation"]),
        len(turns),
        len(groups["reply"]),
        tuple(cross_table(groups["reply"], *pairing, seed, draws) for pairing in PAIRINGS),
        {name: distribution for name, distribution in distributions.items() if distribution.total},
        {name: labels for name, labels in words.items() if labels},
    )


def conditions(seed: int) -> dict[str, str]:
    """The rules behind the numbers, in words."""
    typical = f"log-odds, Dirichlet prior of {PRIOR_WORDS:g} words, z from {TYPICAL} up, {SEEN} times or more"
    return {
        "replies": "turns of the listener right after another person's",
        "pairs": "each mechanism of a reply makes a pair; of replies with one (CoMAE §4.4), or of all",
        "mutual information": "Shannon's, of the counts, in bits",
        "interval": f"95 %, {DRAWS:,} bootstrap samples of dialogues, default_rng({seed}), moved to the mean",
        "words": "listenwell.words, without marks",
        "typical words": typical,
    }


def turn_table(dialogues: Iterable[Dialogue]) -> pd.DataFrame:
    """One row a turn: its dialogue's number, its role, words and labels; None where it has no label."""
    rows = [row for number, dialogue in enumerate(dialogues) for row in _turn_rows(number, dialogue)]
    levels = [f"level_{name}" for name in MECHANISMS]
    labels = ["emotion", "predicted", "intent", *FACTORS, *levels]
    columns = ["dialogue", "is_listener", "is_reply", "words", *labels]
    return pd.DataFrame(rows, columns=columns).astype({"is_listener": bool, "is_reply": bool})


def is_reply(dialogue: Dialogue, index: int) -> bool:
    """Whether a turn is the listener's and comes right after another person's."""
    is_listener = dialogue.turns[index].speaker == dialogue.listener
    return index > 0 and is_listener and dialogue.turns[index - 1].speaker != dialogue.listener


def _turn_rows(number: int, dialogue: Dialogue) -> Iterable[tuple[Any, ...]]:
    for index, turn in enumerate(dialogue.turns):
        factors, is_listener = turn.factors or Factors(), turn.speaker == dialogue.listener
        mechanisms, levels = factors.mechanisms, factors.levels
        yield (
            number,
            is_listener,
            is_reply(dialogue, index),
            [sys.intern(word) for word in word_tokens(turn.text)],
            dialogue.emotion,
            factors.emotion if is_listener else _likeliest(turn, "emotion"),
            factors.intent or _likeliest(turn, "intent"),
            mechanisms,
            None if mechanisms is None else "+".join(SHORT[name] for name in mechanisms) or "none",
            factors.act,
            factors.expressed_emotion,
            *(LEVELS[level] for level in levels or ()),
            *([None] * len(MECHANISMS) if levels is None else ()),
        )


def _likeliest(turn: Turn, head: str) -> str | None:
    prediction = turn.reading(head)
    return prediction.scores[0].label if prediction is not None and prediction.scores else None


def _distribution(name: str, groups: dict[str, pd.DataFrame]) -> Distribution:
    title, labels, group, column = DISTRIBUTIONS[name]
    values = groups[group][column].dropna()
    counts = values.explode().value_counts()
    ordered = sorted(labels, key=lambda label: -counts.get(label, 0))  # equal ones in the label set's order
    return Distribution(name, title, len(values), {label: int(counts.get(label, 0)) for label in ordered})


def cross_table(  # noqa: PLR0913, PLR0917 - a pairing is three of them
    replies: pd.DataFrame, x: str, y: str, whose: str = EMPATHETIC, seed: int = 0, draws: int = DRAWS
) -> CrossTable:
    """Count the pairs (X, Y) of replies, with their mutual information; seed and draws are of the bootstrap.

    Args:
        replies: rows of `turn_table`; those without X or Y are passed over.
        x, y: two of FACTORS.
        whose: EMPATHETIC leaves out replies that are known to use no mechanism, or ALL.
    """
    rows, columns = pd.Index(list(FACTORS[x])), pd.Index(list(FACTORS[y]))
    counted = replies if whose == ALL else replies[replies["mechanisms"] != "none"]
    pairs = counted[["dialogue", x, y]].explode(x).dropna()
    cells = rows.get_indexer(pairs[x]) * len(columns) + columns.get_indexer(pairs[y])
    table = np.bincount(cells, minlength=len(rows) * len(columns)).reshape(len(rows), len(columns))
    owners = pd.factorize(pairs["dialogue"], sort=True)[0]
    information = _information(owners, cells, table, seed, draws) if len(pairs) else None
    return CrossTable(x, y, whose, pd.DataFrame(table, rows, columns), information)


def mutual_information(counts: np.ndarray) -> float:
    """I(X; Y) = Σ P(x, y) log₂ (P(x, y) / (P(x) P(y))) of a table of counts, in bits; 0 for an empty one."""
    return entropy(counts.sum(axis=0)) + entropy(counts.sum(axis=1)) - entropy(counts.ravel())


def entropy(counts: np.ndarray) -> float:
    """H(X) = −Σ P(x) log₂ P(x) of counts, in bits; 0 for none."""
    present = counts[counts > 0] / max(counts.sum(), 1)
    return float(-(present * np.log2(present)).sum())


def _information(
    owners: np.ndarray, cells: np.ndarray, table: np.ndarray, seed: int, draws: int
) -> Information:
    """The mutual information and its interval, from dialogues drawn with replacement.

    A drawn sample repeats replies, so its table looks more dependent than the corpus: the samples' values are
    shifted so that their mean is the corpus's value, and the middle 95 % of them are the interval.
    """
    if draws < 1:
        raise InputError(f"There are {draws} draws.", "Give 1 or more; 1000 is usual.")
    random, dialogues = np.random.default_rng(seed), int(owners.max()) + 1
    samples = np.empty(draws)
    for number in range(draws):
        times = np.bincount(random.integers(dialogues, size=dialogues), minlength=dialogues)
        drawn = np.bincount(cells, weights=times[owners], minlength=table.size)
        samples[number] = mutual_information(drawn.reshape(table.shape))
    bits = max(0.0, mutual_information(table))  # rounding can leave −1e-16
    low, high = np.quantile(samples - samples.mean() + bits, [0.025, 0.975])
    freedom = (np.count_nonzero(table.sum(axis=1)) - 1) * (np.count_nonzero(table.sum(axis=0)) - 1)
    independent = float(freedom / (2 * len(cells) * np.log(2)))
    uncertainty = entropy(table.sum(axis=0))
    share = bits / uncertainty if uncertainty > 0 else None
    return Information(bits, max(0.0, float(low)), max(0.0, float(high)), independent, share)
