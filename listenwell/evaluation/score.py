"""Score the outputs of a system: every reply metric, empathy, and plan adherence.

Empathy is the mean level of emotional reaction, interpretation and exploration (EPITOME, Sharma et al. 2020:
0, 1, 2) that our annotators predict, not what a person feels: generic phrases can raise it, so it is reported
beside the rates of stock phrases and of distinct replies.

Plan adherence (realization in CoMAE, Zheng et al. 2021, Table 5) is the share of replies that the annotators
label with the factors of their plan. The paper takes plans that the model sampled; ours are those of the
human replies ("gold") or the generator's own ("predicted"), and the row says which.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from listenwell import metrics
from listenwell.annotators.heads import REPLY_HEADS
from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Factors, Turn
from listenwell.errors import InputError
from listenwell.evaluation.embedder import Embedder
from listenwell.evaluation.outputs import Outputs
from listenwell.evaluation.request import result_of
from listenwell.labels import MECHANISMS
from listenwell.metrics.checks import check_pairs
from listenwell.reranking.self_disclosure.unsupported import unsupported_disclosure_rate
from listenwell.results.metric_registry import SAMPLE
from listenwell.results.store import Result

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator

TASK = "realization"
_FACTORS = {"cm_realized": "mechanisms", "da_realized": "act", "em_realized": "expressed_emotion"}
RULE = (
    "share of replies in which our annotators read the factor they were planned with; CM: all three "
    "mechanisms alike"
)
REPLIES, ABLATIONS = "replies", "ablations"
DRAWS = 20
"""Sets of SAMPLE replies over which the diversity of a larger set is averaged."""
LEVELS = ("er_level", "ip_level", "ex_level")
"""The names of the mean levels, in the order of `labels.MECHANISMS`."""


def score_replies(
    outputs: Outputs,
    embedder: Embedder,
    seed: int | None = None,
    annotator: "Annotator | None" = None,
    table: str | None = None,
) -> Result:
    """Every reply metric over the outputs of a system.

    Args:
        outputs: replies and references.
        embedder: the encoder of the embedding metrics.
        seed: of the sample, None where all replies were taken; a run's own seed takes precedence.
        annotator: labels the empathy of replies whose contexts are known.
        table: of the row, where it is not the usual one.
    """
    measured = reply_metrics(outputs.replies, outputs.references, embedder) | outputs.metrics
    conditions = metric_conditions(embedder) | outputs.conditions
    if annotator and outputs.contexts:
        measured |= measure_empathy(outputs.contexts, outputs.replies, annotator)
        labels = f"our annotators, key {annotator.key[:12]}, from the turn before and the reply"
        conditions["empathy read by"] = labels
    is_ablation = outputs.conditions.get("switched off", "nothing") != "nothing"
    task = table or (ABLATIONS if is_ablation else REPLIES)
    return result_of(task, measured, conditions, _about(outputs, seed))


def score_plan_adherence(outputs: Outputs, annotator: "Annotator", table: str | None = None) -> Result:
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
    measured = agreement(plans, annotate_replies(contexts, replies, annotator))
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
    """Every reply metric, by the names of the metric registry."""
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


def load_annotator(*heads: str) -> "Annotator":
    """The shipped annotators with these heads; by default the three mechanisms."""
    from listenwell.annotators.annotator import Annotator

    return Annotator.load(heads=heads or MECHANISMS.labels)


def annotate_replies(
    contexts: Sequence[Dialogue], replies: Sequence[str], annotator: "Annotator", normalize: bool = False
) -> list[Factors]:
    """The factors of each reply, given the turn it answers; labels that the context has are not used.

    Only the mechanisms depend on that turn (EPITOME's pairs); act and emotion do not. Normalized
    (`metrics.normalized`), tokenized files in lower case are treated as ordinary text is.
    """
    check_pairs(contexts, replies, "contexts and replies")
    turns = [(context.turns[-1].text, reply) for context, reply in zip(contexts, replies, strict=True)]
    if normalize:
        turns = [(metrics.normalized(a) or a, metrics.normalized(b) or b) for a, b in turns]
    pairs = [Dialogue((Turn(SPEAKER, before), Turn(LISTENER, reply))) for before, reply in turns]
    return [dialogue.turns[-1].factors or Factors() for dialogue in annotator.annotate_all(pairs)]


def measure_empathy(
    contexts: Sequence[Dialogue], replies: Sequence[str], annotator: "Annotator"
) -> dict[str, float]:
    """The mean level of each mechanism; the share of unsupported self-disclosure, in percent."""
    labelled = annotate_replies(contexts, replies, annotator, normalize=True)
    levels = [factors.levels or (0, 0, 0) for factors in labelled]
    means = {name: sum(level[column] for level in levels) / len(levels) for column, name in enumerate(LEVELS)}
    personas = [context.persona_of(context.listener) for context in contexts]
    lines = [persona.lines if persona else () for persona in personas]
    return means | {"invented_life": unsupported_disclosure_rate(replies, lines if any(lines) else None)}


def agreement(plans: Sequence[Factors], labelled: Sequence[Factors]) -> dict[str, float]:
    """Equal factors in percent, over the replies whose plan decides them; `labelled` are the replies' own."""
    measured: dict[str, float] = {}
    decided: list[str] = []
    for name, factor in _FACTORS.items():
        pairs = [
            (planned, getattr(reply, factor))
            for plan, reply in zip(plans, labelled, strict=True)
            if (planned := getattr(plan, factor)) is not None
        ]
        if not pairs:
            continue
        if any(shown is None for _, shown in pairs):
            raise InputError(
                f"The {factor} of a reply was not predicted.", f"Load the heads {', '.join(REPLY_HEADS)}."
            )
        decided.append(factor)
        measured[name] = metrics.realization([planned for planned, _ in pairs], [shown for _, shown in pairs])
    if not measured:
        raise InputError("No reply has a plan.", "Name replies of a generator that plans.")
    if len(decided) > 1:
        complete = [
            all(getattr(plan, factor) in (None, getattr(reply, factor)) for factor in decided)
            for plan, reply in zip(plans, labelled, strict=True)
        ]
        measured["all_realized"] = 100 * sum(complete) / len(complete)
    return measured
