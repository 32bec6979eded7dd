"""BLEU, sacreBLEU, ROUGE-L and METEOR: how many words a reply shares with the one a person gave."""

import math
from collections.abc import Sequence
from types import SimpleNamespace

from listenwell.metrics.checks import check_pairs, library
from listenwell.words import normalized, words


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """BLEU-1 to BLEU-4 and their average, in percent.

    Cumulative corpus BLEU with the standard brevity penalty and without smoothing (Papineni et al. 2002) on
    the tokens of `words`: a corpus that shares no n-gram of some length has 0 from there on. Rashkin et al.
    (2019) report the average of the four; CoMAE reports BLEU-2.
    """
    check_pairs(hypotheses, references, "replies and references")
    counter = library("sacrebleu", "sacrebleu", "BLEU").BLEU(tokenize="none", force=True)
    score = counter.corpus_score([*map(normalized, hypotheses)], [[*map(normalized, references)]])
    scores, logs = {}, 0.0
    for order, (matched, total) in enumerate(zip(score.counts, score.totals, strict=True), start=1):
        logs += math.log(matched / total) if matched else -math.inf
        scores[f"BLEU-{order}"] = 100 * score.bp * math.exp(logs / order)
    return scores | {"average": sum(scores.values()) / len(scores)}


def sacre_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """BLEU as sacreBLEU computes it by default, and the signature that names its settings (Post 2018).

    The texts go in as they are: give it replies and references in ordinary spelling, both of one kind.
    """
    check_pairs(hypotheses, references, "replies and references")
    metric = library("sacrebleu", "sacrebleu", "sacreBLEU").BLEU()
    score = metric.corpus_score(list(hypotheses), [list(references)])
    return float(score.score), str(metric.get_signature())


def rouge_l(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """ROUGE-L: the mean F1 of the longest common subsequence, in percent (Lin 2004).

    By the rouge-score library without stemming, on the tokens of `words`: its own tokenizer would drop
    punctuation and every letter outside a to z.
    """
    check_pairs(hypotheses, references, "replies and references")
    scorers = library("rouge_score.rouge_scorer", "rouge-score", "ROUGE-L")
    scorer = scorers.RougeScorer(["rougeL"], tokenizer=SimpleNamespace(tokenize=words))
    pairs = zip(hypotheses, references, strict=True)
    scores = [scorer.score(reference, reply)["rougeL"].fmeasure for reply, reference in pairs]
    return 100 * math.fsum(scores) / len(scores)


def meteor(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """METEOR with exact and stem matching, without synonyms: the mean in percent (Banerjee & Lavie 2005).

    By nltk with the constants of the paper (α 0.9, β 3, γ 0.5) and Porter's stems. WordNet would need a
    download, so the stage of synonyms is empty and the figure is a little below one that has it: print it as
    "METEOR (exact, stem)".
    """
    check_pairs(hypotheses, references, "replies and references")
    score = library("nltk.translate.meteor_score", "nltk", "METEOR").single_meteor_score
    empty = SimpleNamespace(synsets=lambda word: ())
    scores = [
        score(words(reference), words(reply), wordnet=empty)
        for reply, reference in zip(hypotheses, references, strict=True)
    ]
    return 100 * math.fsum(scores) / len(scores)
