"""The metrics: pure functions, each with the paper it follows; importing them loads no heavy library.

Shares are in percent throughout, as the papers' tables print them. Not in percent are Distinct-n (a ratio;
`distinct` has both), cosines, VADER's compound, perplexity, lengths, kappa and alpha, and p.
"""

from listenwell.metrics.agreement import Level, fleiss_kappa, krippendorff_alpha
from listenwell.metrics.classification import (
    accuracy,
    classification_metrics,
    expected_calibration_error,
    label_set_metrics,
    realization,
    top_k_accuracy,
)
from listenwell.metrics.diversity import (
    STOCK_PHRASES,
    distinct,
    distinct_n,
    distinct_reply_rate,
    mean_length,
    phrase_rate,
    stock_phrase_rate,
    vader,
)
from listenwell.metrics.overlap import bleu, meteor, rouge_l, sacre_bleu
from listenwell.metrics.perplexity import Perplexity, perplexity_of
from listenwell.metrics.ranking import (
    Spread,
    mean_reciprocal_rank,
    over_seeds,
    pools,
    rank_of_truth,
    ranking_metrics,
    recall_at,
)
from listenwell.metrics.significance import Difference, paired_bootstrap, sign_test, wilson_interval
from listenwell.metrics.similarity import greedy_matching, sentence_similarity
from listenwell.words import expanded, normalized, words

__all__ = [
    "STOCK_PHRASES",
    "Difference",
    "Level",
    "Perplexity",
    "Spread",
    "accuracy",
    "bleu",
    "classification_metrics",
    "distinct",
    "distinct_n",
    "distinct_reply_rate",
    "expanded",
    "expected_calibration_error",
    "fleiss_kappa",
    "greedy_matching",
    "krippendorff_alpha",
    "label_set_metrics",
    "mean_length",
    "mean_reciprocal_rank",
    "meteor",
    "normalized",
    "over_seeds",
    "paired_bootstrap",
    "perplexity_of",
    "phrase_rate",
    "pools",
    "rank_of_truth",
    "ranking_metrics",
    "realization",
    "recall_at",
    "rouge_l",
    "sacre_bleu",
    "sentence_similarity",
    "sign_test",
    "stock_phrase_rate",
    "top_k_accuracy",
    "vader",
    "wilson_interval",
    "words",
]
