"""The words of a label: those used most, and those typical of it.

EmpatheticDialogues (Rashkin et al. 2019, Figure 3) lists the content words that speakers and listeners use
most for each emotion; most of them are the same everywhere ("really", "good"). Beside them stand the typical
words, by log-odds with an informative Dirichlet prior (Monroe, Colaresi & Quinn 2008).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from listenwell.errors import InputError
from listenwell.serialization import Record
from listenwell.words import words

PRIOR_WORDS = 1000.0
"""How many words the prior counts as: a word must beat its share among these to be typical."""

TYPICAL = 1.96
"""The z from which a word is called typical: rarer than 1 in 20 by chance, for one word."""
SEEN = 3
"""How often a label must have a word for it to be called typical: once or twice is an accident."""
_GRAMMAR = """
    a about after again all also am an and any are as at be because been before being but by can could did do
    does doing down during each for from had has have having he her here hers him his how i if in into is it
    its just me more most my no nor not now of off on only or other our out over own she so some such than
    that the their them then there these they this those through to too under until up us very was we were
    what when where which while who whom why will with you your yours
"""
FUNCTION_WORDS = frozenset(_GRAMMAR.split())
"""English words that carry grammar more than content; contractions such as "i'm" stay, as in the paper."""


@dataclass(frozen=True)
class Word(Record):
    """A word of a label."""

    word: str
    count: int
    """How often it stands in the texts of the label."""
    z: float
    """How typical: standard deviations of its log-odds against all other labels."""


@dataclass(frozen=True)
class LabelWords(Record):
    """The words of one label."""

    label: str
    total: int
    """How many words the texts of the label have."""
    used: tuple[Word, ...]
    """Content words, the most frequent first."""
    typical: tuple[Word, ...]
    """Words that the label has more of than the others (z from TYPICAL up, SEEN times or more), by z."""


def spoken(text: str) -> list[str]:
    """The words of a text by the one tokenization, without its punctuation marks."""
    return [word for word in words(text) if word[0].isalnum()]


def label_words(
    counts: Mapping[str, Counter[str]], most: int = 10, prior: float = PRIOR_WORDS
) -> tuple[LabelWords, ...]:
    """The words of each label, in the order of the labels; a label without words is left out.

    Args:
        counts: how often each word stands in the texts of each label.
        most: how many words to keep of each list.
        prior: see `log_odds`.
    """
    there = {label: found for label, found in counts.items() if found.total()}
    vocabulary = sorted(set().union(*there.values()))
    if not vocabulary:
        return ()
    table = np.array([[found[word] for word in vocabulary] for found in there.values()], dtype=np.float64)
    scores = log_odds(table, prior)
    content = np.array([word not in FUNCTION_WORDS for word in vocabulary])
    return tuple(
        LabelWords(
            label,
            int(row.sum()),
            _best(vocabulary, row, z, row * content, most),
            _best(vocabulary, row, z, np.where((row >= SEEN) & (z >= TYPICAL), z, 0.0), most),
        )
        for label, row, z in zip(there, table, scores, strict=True)
    )


def log_odds(counts: np.ndarray, prior: float = PRIOR_WORDS) -> np.ndarray:
    """How much more each group uses each word than all other groups together, as z.

    With y counts of a group, n its words, α a word's prior and α₀ the sum of them: the difference of
    log((y + α) / (n + α₀ − y − α)) between the group and the others, divided by its standard deviation, whose
    square is about 1 / (y + α) of the group plus the same of the others (Monroe et al. 2008). α is `prior`
    times the word's share in all groups, so that rare words and frequent ones are held back alike.

    Args:
        counts: (groups, words), every word in at least one group.
        prior: α₀, above zero.

    Returns:
        (groups, words); all zero where there is one group or one word, as nothing is typical then.
    """
    if prior <= 0:
        raise InputError(f"The prior counts as {prior} words.", "Give more than 0; 1000 is usual.")
    everywhere = counts.sum(axis=0)
    if counts.shape[0] < 2 or counts.shape[1] < 2:
        return np.zeros(counts.shape)
    alpha = prior * everywhere / everywhere.sum()  # (words,)

    def logit(used: np.ndarray) -> np.ndarray:
        smooth = used + alpha
        return np.asarray(np.log(smooth) - np.log(smooth.sum(axis=1, keepdims=True) - smooth))

    others = everywhere - counts
    spread = np.sqrt(1 / (counts + alpha) + 1 / (others + alpha))
    return np.asarray((logit(counts) - logit(others)) / spread)


def _best(
    vocabulary: Sequence[str], counts: np.ndarray, z: np.ndarray, score: np.ndarray, most: int
) -> tuple[Word, ...]:
    """The words of the highest scores above zero; equal ones by the alphabet, as the vocabulary is."""
    order = np.argsort(-score, kind="stable")[:most]
    return tuple(
        Word(vocabulary[place], int(counts[place]), round(float(z[place]), 2))
        for place in order
        if score[place] > 0
    )
