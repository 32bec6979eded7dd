"""VADER: the sentiment of a text by a lexicon and rules (Hutto & Gilbert 2014)."""

import math
from collections.abc import Sequence

from listenwell.metrics.checks import check_some
from listenwell.metrics.libraries import library


def vader(texts: Sequence[str]) -> float:
    """Mean compound score, from −1 (negative) to 1 (positive).

    The texts go in as they are, since VADER reads capitals, exclamation marks and emoji. Its lexicon comes
    with the package.
    """
    check_some(texts, "texts")
    module = library("vaderSentiment.vaderSentiment", "vaderSentiment", "VADER")
    analyzer = module.SentimentIntensityAnalyzer()
    return math.fsum(analyzer.polarity_scores(text)["compound"] for text in texts) / len(texts)
