"""Published numbers as data, each with its source and the conditions that make it comparable or not.

A number stands beside ours only where system and metric are the same; the others are rows of their own.
"""

from listenwell.results.published_generation import FIGURES as SPEAKING_FIGURES
from listenwell.results.published_number import Published
from listenwell.results.published_ranking import FIGURES as RANKING_FIGURES
from listenwell.results.published_understanding import FIGURES

REPLIES, PERPLEXITY, UNDERSTANDING = "replies", "perplexity", "understanding"

_ED = "Rashkin et al. 2019, Table 1"
_MEED2 = "Xie & Pu 2021, Table 3, ED"
_MIME = "Majumder et al. 2020, head of the released mime_output.txt"
_QUOTED = "second-hand, not checked against the paper"

_TRANSFORMER = "EmpatheticDialogues Transformer"
_PRETRAINED = f"{_TRANSFORMER}, not fine-tuned"
_PREPEND = f"{_TRANSFORMER}, EmoPrepend-1"
_BASELINE = "MEED2's Transformer baseline"

_ED_WORDS = "test; a word token of its own vocabulary"
_ED_BLEU = "test; mean of BLEU-1 to BLEU-4, the authors' tokenizer and script"
_RATIO = "test; printed as a ratio, here in percent; beam 32, 4-gram blocking"
_SBERT = "test; Sentence-BERT, a larger encoder than ours"
_ROBERTA = "test; a token of RoBERTa's BPE"
_MOSES = "5,255 test contexts; BLEU-4 by the authors' script"

_LIKELIHOODS = (
    ("MIME greedy", "perplexity_by_word", 37.54, _MIME, "test; a word of its own vocabulary"),
    (_TRANSFORMER, "perplexity_by_word", 21.24, _ED, _ED_WORDS),
    (_PRETRAINED, "perplexity_by_word", 27.96, _ED, _ED_WORDS),
    (_PREPEND, "perplexity_by_word", 24.30, _ED, _ED_WORDS),
    ("MEED2", "perplexity_by_token", 17.2, _MEED2, _ROBERTA),
    (_BASELINE, "perplexity_by_token", 19.3, _MEED2, _ROBERTA),
)

PUBLISHED: tuple[Published, ...] = (
    Published(REPLIES, "MIME greedy", "bleu_4", 2.76, _MIME, _MOSES),
    Published(REPLIES, "MIME beam", "bleu_4", 3.13, _MIME, _MOSES),
    Published(REPLIES, "MIME top-k", "bleu_4", 1.76, _MIME, _MOSES),
    Published(REPLIES, _TRANSFORMER, "bleu_average", 6.27, _ED, _ED_BLEU),
    Published(REPLIES, _PRETRAINED, "bleu_average", 5.01, _ED, _ED_BLEU),
    Published(REPLIES, _PREPEND, "bleu_average", 4.36, _ED, _ED_BLEU),
    Published(REPLIES, "MEED2", "distinct_1", 3.6, _MEED2, _RATIO),
    Published(REPLIES, "MEED2", "distinct_2", 14.0, _MEED2, _RATIO),
    Published(REPLIES, "MEED2", "sentence_similarity", 0.299, _MEED2, _SBERT),
    Published(REPLIES, _BASELINE, "distinct_1", 2.6, _MEED2, _RATIO),
    Published(REPLIES, _BASELINE, "distinct_2", 9.1, _MEED2, _RATIO),
    Published(REPLIES, _BASELINE, "sentence_similarity", 0.316, _MEED2, _SBERT),
    *(Published(PERPLEXITY, *fields) for fields in _LIKELIHOODS),
    Published(
        PERPLEXITY,
        "BlenderBot 90M",
        "perplexity_by_token",
        13.28,
        _QUOTED,
        "valid, not test; its own BPE",
    ),
    Published(
        PERPLEXITY,
        "dodecaDialogue",
        "perplexity_by_token",
        11.4,
        _QUOTED,
        "test; its own BPE",
    ),
    *(
        Published(UNDERSTANDING, f"{question}: {who}", metric, value, source, said, f"{question}: annotators")
        for question, who, metric, value, source, said in FIGURES
    ),
    *RANKING_FIGURES,
    *SPEAKING_FIGURES,
)
