"""The perplexity of human replies under a generator: one row for each kind of factors."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import reduce
from operator import add
from pathlib import Path

from listenwell.corpora.epitome import SPLIT_RULE
from listenwell.dialogue import Example
from listenwell.errors import InputError, unknown_name
from listenwell.evaluation.request import EvaluationRequest, reply_seed, result_of, run_shares
from listenwell.evaluation.systems import FACTORS, MARGINAL, NONE, FactorModel, LanguageModel
from listenwell.files import written_whole
from listenwell.metrics import Perplexity
from listenwell.results.store import Result
from listenwell.serialization import indented

PERPLEXITY, UNSEEN = "perplexity", "unseen corpora"
SAVED = "perplexity.json"
"""The file of a run's folder that holds the sums."""
UNSEEN_TITLES = {"esconv": "ESConv's supporters", "epitome": "EPITOME's responses"}
"""How tables call the corpora that no generator is trained on."""


def evaluate_perplexity(request: EvaluationRequest) -> Result:
    """One row of perplexities; corpora that no generator is trained on have a table of their own."""
    listener, corpus = request.system.listener(), request.split.corpus
    sums = perplexity(request, listener.generate)
    about = request.describe(listener, request.factors)
    title = UNSEEN_TITLES.get(corpus)
    if title:
        about["system"] = f"{title}: {about['system']}"
    conditions = about["conditions"] | {
        "tokenizer": sums.tokenizer,
        "measured": "the listener's tokens and the end mark of each reply, given all turns before it",
        "unit": "perplexity by token (tokenizer's), by word (between white space), bits by UTF-8 byte",
    }
    if corpus == "epitome":
        conditions["split"] = f"ours: {SPLIT_RULE}"
    table = request.table or (UNSEEN if title else PERPLEXITY)
    return result_of(table, perplexity_metrics(sums), conditions, about)


def save_perplexity(request: EvaluationRequest, generator: object) -> None:
    """Save the sums beside the replies of a run, for `saved_perplexity`."""
    if not isinstance(generator, FactorModel):
        request = replace(request, factors=NONE)
    sums = perplexity(request, generator)
    with written_whole(request.out / SAVED) as out:
        out.write(indented(asdict(sums)).encode())


def saved_perplexity(folder: Path) -> Perplexity | None:
    """The sums that `save_perplexity` wrote to a run's folder, if it did."""
    file = folder / SAVED
    return Perplexity(**json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None


def perplexity(request: EvaluationRequest, generator: object) -> Perplexity:
    """The perplexity of the human replies of a request, summed over all workers."""
    if len(shares := request.divided()) == 1:
        return perplexity_under(generator, request.examples, request.factors, request.split.sampling.seed)
    return reduce(add, run_shares(_of_share, shares))


def _of_share(request: EvaluationRequest) -> Perplexity:
    generator = request.system.listener().generate
    return perplexity_under(generator, request.examples, request.factors, request.split.sampling.seed)


def perplexity_under(
    generator: object, examples: Sequence[tuple[int, Example]], factors: str, seed: int = 0
) -> Perplexity:
    """The perplexity of human replies under one kind of factors.

    Args:
        generator: any with a `perplexity`; one without factors has only that of "none".
        examples: each with its index in the corpus.
        factors: one of FACTORS.
        seed: of a generator that draws plans; with the index it gives the seed of each reply.
    """
    if factors not in FACTORS:
        raise unknown_name("kind of factors", factors, FACTORS)
    texts = [example for _, example in examples]
    if isinstance(generator, FactorModel):
        # A seed each: a reply's plans do not depend on the rest of the sample, or on the number of workers.
        seeds = [reply_seed(seed, index) for index, _ in examples] if factors == MARGINAL else None
        return generator.perplexity(texts, factors, seeds)
    if not isinstance(generator, LanguageModel):
        raise InputError(
            f"{type(generator).__name__} has no perplexity.", "Name a trained generator, such as planned."
        )
    if factors != NONE:
        raise InputError(f"{generator.name} has no factors.", "Measure its perplexity with --factors none.")
    return generator.perplexity(texts)


def perplexity_metrics(sums: Perplexity) -> dict[str, float]:
    """The three perplexities and the sums behind them, by the names of the metric registry."""
    return {
        "perplexity_by_token": sums.by_token,
        "perplexity_by_word": sums.by_word,
        "bits_per_byte": sums.bits_per_byte,
        "nll": sums.nll,
        "tokens": float(sums.tokens),
        "words": float(sums.words),
        "bytes": float(sums.bytes),
    }
