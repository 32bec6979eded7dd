"""Score replies: every reply metric over the outputs of a system, as one result."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from listenwell import metrics
from listenwell.errors import InputError
from listenwell.evaluation.embedder import Embedder
from listenwell.evaluation.empathy import ReplyAnnotator, empathy_conditions, measure_empathy
from listenwell.evaluation.outputs import Outputs
from listenwell.evaluation.plan_adherence import RULE, TASK, measure_plan_adherence
from listenwell.evaluation.request import result_of
from listenwell.results.metric_registry import SAMPLE
from listenwell.results.store import Result

REPLIES, ABLATIONS = "replies", "ablations"
DRAWS = 20
"""Sets of SAMPLE replies over which the diversity of a larger set is averaged."""


def score_replies(
    outputs: Outputs,
    embedder: Embedder,
    seed: int | None = None,
    annotator: ReplyAnnotator | None = None,
    table: str | None = None,
) -> Result:
    """Every reply metric over the outputs of a system.

    Args:
        outputs: replies and references.
        embedder: the encoder of the embedding metrics.
        seed: of the sample, None where all replies were taken; a run's own seed takes precedence.
        annotator: labels the empathy of replies whose contexts are known.
        table: the table of the row, where it is not the usual one.
    """
    measured = reply_metrics(outputs.replies, outputs.references, embedder) | outputs.metrics
    conditions = metric_conditions(embedder) | outputs.conditions
    if annotator and outputs.contexts:
        measured |= measure_empathy(outputs.contexts, outputs.replies, annotator)
        conditions |= empathy_conditions(annotator)
    is_ablation = outputs.conditions.get("switched off", "nothing") != "nothing"
    task = table or (ABLATIONS if is_ablation else REPLIES)
    return result_of(task, measured, conditions, _about(outputs, seed))


def score_plan_adherence(outputs: Outputs, annotator: ReplyAnnotator, table: str | None = None) -> Result:
    """How many replies of a run carry out their plan (CoMAE's Table 5)."""
    planned = [
        (plan, context, reply)
        for plan, context, reply in zip(outputs.plans, outputs.contexts, outputs.replies, strict=False)
        if plan is not None
    ]
    if not planned:
        raise InputError(
            f"The replies of {outputs.system} have no plans.", "Name those of a generator that plans."
        )
    plans, contexts, replies = (list(column) for column in zip(*planned, strict=True))
    measured = measure_plan_adherence(plans, contexts, replies, annotator)
    conditions = outputs.conditions | {"plan adherence": RULE, "annotators": f"key {annotator.key[:12]}"}
    return result_of(table or TASK, measured, conditions, _about(outputs) | {"count": len(planned)})


def _about(outputs: Outputs, seed: int | None = None) -> dict[str, Any]:
    return {
        "system": outputs.system,
        "corpus": outputs.corpus,
        "split": outputs.split,
        "data": outputs.data,
        "checkpoint": outputs.checkpoint,
        "seed": seed if outputs.seed is None else outputs.seed,
        "count": len(outputs.replies),
    }


def reply_metrics(replies: Sequence[str], references: Sequence[str], embedder: Embedder) -> dict[str, float]:
    """Every reply metric, by the names of the metric registry.

    Args:
        replies: of the system.
        references: the human replies, in the same order.
        embedder: the encoder of the embedding metrics.
    """
    overlap = metrics.bleu(replies, references)
    hypothesis_vectors, reference_vectors = embedder.embed(replies), embedder.embed(references)
    return {
        **{f"bleu_{order}": overlap[f"BLEU-{order}"] for order in (1, 2, 3, 4)},
        "bleu_average": overlap["average"],
        "sacre_bleu": _sacre_bleu(replies, references),
        "rouge_l": metrics.rouge_l(replies, references),
        "meteor": metrics.meteor(replies, references),
        "greedy_matching": metrics.greedy_matching(hypothesis_vectors.words, reference_vectors.words),
        "sentence_similarity": metrics.sentence_similarity(
            hypothesis_vectors.sentences, reference_vectors.sentences
        ),
        **_diversity(replies),
        **_diversity_of_samples(replies),
        "stock_phrases": metrics.stock_phrase_rate(replies),
        "sorry_to_hear": metrics.phrase_rate(replies, "sorry to hear"),
        "length": metrics.mean_length(replies),
        "vader": metrics.vader(replies),
    }


def metric_conditions(embedder: Embedder) -> dict[str, str]:
    """The settings of the metrics themselves, for the conditions of a result."""
    return {
        "words": "listenwell.words: lower case, contractions joined, marks are words",
        "sacreBLEU": metrics.sacre_bleu(["a"], ["a"])[1],
        "encoder": embedder.name,
        "stock phrases": f"{len(metrics.STOCK_PHRASES)}: {'; '.join(metrics.STOCK_PHRASES)}",
        f"variety of {SAMPLE}": f"mean of {DRAWS} sets of {SAMPLE} replies, drawn by numpy default_rng(0)",
    }


def _sacre_bleu(replies: Sequence[str], references: Sequence[str]) -> float:
    """sacreBLEU without its warning about tokenized texts: the conditions say what the texts are."""
    log = logging.getLogger("sacrebleu")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        return metrics.sacre_bleu(replies, references)[0]
    finally:
        log.setLevel(level)


def _diversity(replies: Sequence[str]) -> dict[str, float]:
    shares = metrics.distinct(replies)
    return {
        "distinct_1": shares["distinct-1 in percent"],
        "distinct_2": shares["distinct-2 in percent"],
        "distinct_replies": metrics.distinct_reply_rate(replies),
    }


def _diversity_of_samples(replies: Sequence[str]) -> dict[str, float]:
    """The same metrics on sets of one size, which compare systems with different numbers of replies."""
    if len(replies) < SAMPLE:
        return {}
    random = np.random.default_rng(0)
    draws = [
        _diversity([replies[index] for index in random.choice(len(replies), SAMPLE, replace=False)])
        for _ in range(DRAWS)
    ]
    return {f"{name}_of_{SAMPLE}": float(np.mean([draw[name] for draw in draws])) for name in draws[0]}
