"""How far each reranking feature agrees with raters.

Raters saw candidates blind; the reranker scores the same ones. A result says how a feature's values correlate
with the ratings within contexts, and the mean rating of the candidates that the feature alone would choose.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from listenwell.dialogue import Candidate, Dialogue
from listenwell.errors import InputError
from listenwell.files import hash_files
from listenwell.generators.planned import PlannedGenerator
from listenwell.generators.planned_config import PlannedConfig
from listenwell.generators.reward_model import agreement
from listenwell.preference.rating_sheets import PERSON, candidates_of
from listenwell.preference.ratings import RatedContext, rated_contexts, rating_files, read_ratings
from listenwell.progress import progress
from listenwell.reranking.config import MERITS, STANDARDIZED, TOTAL, RerankerConfig
from listenwell.reranking.reranker import Reranker
from listenwell.results.metric_registry import units
from listenwell.results.store import Result, environment

TASK = "judges"
NAMES = {"reward": "judge: reward_model", TOTAL: "all judges together"}
"""The systems of earlier result files, which new ones stand beside."""

Table = dict[str, list[tuple[int, float, float]]]
"""By feature: the context's number, the feature's value, the overall rating."""


def feature_table(
    rated: Sequence[tuple[Dialogue, RatedContext]],
    candidates: Mapping[str, Sequence[Candidate]],
    reranker: Reranker,
) -> Table:
    """The value of every feature for every rated candidate; candidates have the generator's scores."""
    table: Table = {}
    with progress("scoring candidates", total=len(rated), unit="contexts") as advance:
        for number, (dialogue, context) in enumerate(rated):
            overall = {reply.text: reply.overall for reply in context.replies}
            for candidate in reranker.rerank(dialogue, candidates[context.id]):
                rating = overall.get(candidate.text.strip())
                scores = dict(candidate.scores)
                for feature in (*STANDARDIZED, *MERITS, TOTAL) if rating is not None else ():
                    if (score := scores.get(feature)) is not None:
                        table.setdefault(feature, []).append((number, score, float(rating or 0)))
            advance(1)
    return table


def feature_scores(rows: Sequence[tuple[int, float, float]]) -> dict[str, float]:
    """The agreement within contexts, and the mean rating of the candidates with the highest values."""
    contexts, scores, ratings = (np.array(column) for column in zip(*rows, strict=True))
    groups = [contexts == number for number in np.unique(contexts)]
    best = [ratings[group][scores[group].argmax()] for group in groups]
    return {"rater_agreement": agreement(scores, ratings, contexts), "chosen_overall": float(np.mean(best))}


def results_of(path: Path, replies: Path, raters: str) -> list[Result]:
    """A result for each feature, for any candidate, for the best one, and for the person's reply.

    Args:
        path: ratings of candidates: a folder of sheets, or a compact file.
        replies: the replies.jsonl that the candidates come from.
        raters: who they were, for the conditions.
    """
    contexts = read_ratings(path)
    candidates, generator = candidates_of(replies), PlannedGenerator.load(PlannedConfig())
    if missing := [context.id for context in contexts if context.id not in candidates]:
        raise InputError(
            f"{replies} has no candidates for {missing[0]}.", "Name the replies of these sheets."
        )
    rated = rated_contexts([path], contexts[0].split)
    for dialogue, context in rated:
        candidates[context.id] = generator.with_rewards(dialogue, candidates[context.id])
    table = feature_table(rated, candidates, Reranker.load(RerankerConfig()))
    rows = {
        NAMES.get(feature, f"judge: {feature}"): feature_scores(lines) for feature, lines in table.items()
    }
    overall = [
        [reply.overall for reply in context.replies if PERSON not in reply.systems] for context in contexts
    ]
    person = [float(mean[-1]) for context in contexts if (mean := context.of(PERSON)) is not None]
    rows["any reply of ours"] = {"chosen_overall": float(np.mean([np.mean(some) for some in overall]))}
    rows["the reply that raters like best"] = {"chosen_overall": float(np.mean(list(map(max, overall))))}
    rows[PERSON] = {"chosen_overall": float(np.mean(person))}
    return [
        Result(
            task=TASK,
            system=name,
            metrics=tuple(scores.items()),
            corpus=contexts[0].corpus,
            split=contexts[0].split,
            count=len(contexts),
            data=hash_files(rating_files(path)),
            units=units(tuple(scores)),
            conditions=(("raters", raters), ("rated replies", f"{sum(map(len, overall)):,}")),
            checkpoint="" if name == PERSON else hash_files(generator.files()),
            **environment(),  # type: ignore[arg-type]
        )
        for name, scores in rows.items()
    ]
