"""The words of a label: those used most, and those typical of it.

EmpatheticDialogues (Rashkin et al. 2019, Figure 3) lists the content words that speakers and listeners use
most for each emotion; most of them are the same everywhere ("really", "good"). Beside them stand the typical
words, by log-odds with an informative Dirichlet prior (Monroe, Colaresi & Quinn 2008).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from listenwell.errors import InputError
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
class Word:
    """A word of a label."""

    word: str
    count: int
    """How often it stands in the texts of the label."""
    z: float
    """How typical: standard deviations of its log-odds against all other labels."""


@dataclass(frozen=True)
class LabelWords:
    """The words of one label."""

    label: str
    total: int
    """How many words the texts of the label have."""
    used: list[Word]
    """Content words, the most frequent first."""
    typical: list[Word]
    """Words that the label has more of than the others (z from TYPICAL up, SEEN times or more), by z."""


def word_tokens(text: str) -> list[str]:
    """The words of a text by the package's one tokenization, without punctuation marks."""
    return [word for word in words(text) if word[0].isalnum()]


def label_words(
    labels: pd.Series, texts: pd.Series, order: Iterable[str], most: int = 10, prior: float = PRIOR_WORDS
) -> list[LabelWords]:
    """The words of each label; a label without words is left out.

    Args:
        labels: of each text; missing where it has none.
        texts: the words of each text, a list each.
        order: of the labels in the result.
        most: how many words each list keeps.
        prior: of `log_odds`.
    """
    uses = pd.DataFrame({"label": labels, "word": texts}).dropna(subset="label").explode("word").dropna()
    if uses.empty:
        return []
    counts = pd.crosstab(uses["label"], uses["word"])
    counts = counts.loc[[label for label in order if label in counts.index]]
    z = pd.DataFrame(log_odds(counts.to_numpy(float), prior), counts.index, counts.columns)
    content = ~counts.columns.isin(FUNCTION_WORDS)

    def best(label: str, scores: pd.Series) -> list[Word]:
        """The words of the highest scores above zero; equal ones in alphabetical order."""
        top = scores[scores > 0].sort_values(ascending=False, kind="stable")[:most].index
        return [Word(word, int(counts.at[label, word]), round(float(z.at[label, word]), 2)) for word in top]

    result = []
    for label, row in counts.iterrows():
        typical = z.loc[label].where((row >= SEEN) & (z.loc[label] >= TYPICAL), 0.0)
        result.append(
            LabelWords(str(label), int(row.sum()), best(label, row * content), best(label, typical))
        )
    return result


def log_odds(counts: np.ndarray, prior: float = PRIOR_WORDS) -> np.ndarray:
    """How much more each group uses each word than all other groups together, as z.

    With y counts of a group, n its words, α a word's prior and α₀ the sum of them: the difference of
    log((y + α) / (n + α₀ − y − α)) between the group and the others, divided by its standard deviation, whose
    square is about 1 / (y + α) of the group plus the same of the others (Monroe et al. 2008). α is `prior`
    times the word's share in all groups, so that rare words and frequent ones are held back alike. Both
    arrays are (groups, words); with one group or one word nothing is typical, and all is zero.
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
