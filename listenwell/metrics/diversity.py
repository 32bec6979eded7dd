"""Replies by themselves: Distinct-n, distinct replies, stock phrases, length, sentiment (VADER).

Overlap and perplexity reward the safe reply; diversity shows its price.
"""

import math
from collections.abc import Sequence

from listenwell.errors import InputError
from listenwell.metrics.checks import check_some, library
from listenwell.words import expanded, ngrams, normalized, words

STOCK_PHRASES = (
    "sorry to hear",
    "i am sorry",
    "i am so sorry",
    "glad to hear",
    "i am glad",
    "that is great",
    "that is awesome",
    "that is good",
    "that is so",
    "that sounds",
    "i can imagine",
    "i hope",
    "i am sure",
    "good luck",
    "congratulations",
)
"""Phrases that empathetic systems use in any context; another list is another metric."""


def distinct_n(texts: Sequence[str], n: int) -> float:
    """Distinct-n: the ratio of distinct n-grams to all n-grams of the whole set (Li et al. 2016).

    Every n-gram counts, the last of each reply too, and none crosses from one reply into the next. 0 where
    no reply is long enough. It falls as the set grows: compare sets of one size.
    """
    check_some(texts, "replies")
    if n < 1:
        raise InputError(f"n is {n}.", "Give 1 or more.")
    grams = [gram for text in texts for gram in ngrams(words(text), n)]
    return len(set(grams)) / max(1, len(grams))


def distinct(texts: Sequence[str]) -> dict[str, float]:
    """Distinct-1 and Distinct-2, each as a ratio and in percent: papers print either without saying which."""
    ratios = {f"distinct-{n}": distinct_n(texts, n) for n in (1, 2)}
    return ratios | {f"{name} in percent": 100 * ratio for name, ratio in ratios.items()}


def distinct_reply_rate(texts: Sequence[str]) -> float:
    """The number of different replies in percent of all; case and spacing make no difference."""
    check_some(texts, "replies")
    return 100 * len({normalized(text) for text in texts}) / len(texts)


def stock_phrase_rate(texts: Sequence[str], phrases: Sequence[str] = STOCK_PHRASES) -> float:
    """The share of replies, in percent, that hold at least one of the phrases.

    Phrases match whole words, after common contractions are written out: "That's so ..." holds "that is so".
    """
    check_some(texts, "replies")
    expanded_phrases = [_spelled_out(phrase) for phrase in phrases]
    if not all(phrase.strip() for phrase in expanded_phrases):
        raise InputError("A stock phrase is empty.", "Give phrases of one word or more.")
    replies = map(_spelled_out, texts)
    return 100 * sum(any(phrase in reply for phrase in expanded_phrases) for reply in replies) / len(texts)


def phrase_rate(texts: Sequence[str], phrase: str) -> float:
    """The share of replies, in percent, that hold one phrase; matched as in `stock_phrase_rate`."""
    return stock_phrase_rate(texts, (phrase,))


def mean_length(texts: Sequence[str]) -> float:
    """Mean number of tokens of a reply by `words`, punctuation marks included."""
    check_some(texts, "replies")
    return sum(len(words(text)) for text in texts) / len(texts)


def vader(texts: Sequence[str]) -> float:
    """Mean compound score of VADER (Hutto & Gilbert 2014), from −1 (negative) to 1 (positive).

    The texts go in as they are, since VADER reads capitals, exclamation marks and emoji. Its lexicon comes
    with the package.
    """
    check_some(texts, "texts")
    module = library("vaderSentiment.vaderSentiment", "vaderSentiment", "VADER")
    analyzer = module.SentimentIntensityAnalyzer()
    return math.fsum(analyzer.polarity_scores(text)["compound"] for text in texts) / len(texts)


def _spelled_out(text: str) -> str:
    """The words with a blank around each and contractions written out, so that `in` finds whole words."""
    return f" {' '.join(map(expanded, words(text)))} "
