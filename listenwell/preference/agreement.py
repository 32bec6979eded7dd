"""`python -m listenwell.preference.agreement RATINGS REPLIES`: how far each judge of replies agrees with raters.

The raters read candidates blind (`ratings`); the listener's judges are asked about the same ones. A row says
how a judge's scores go with the raters' within contexts, and how the candidates are rated that it would
choose alone. It is the measure by which judges were given their weights.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from listenwell.corpora.sources import Source
from listenwell.dialogue import Candidate, Dialogue
from listenwell.errors import InputError, ListenwellError
from listenwell.files import hash_files
from listenwell.generators.planned import PlannedConfig, PlannedGenerator
from listenwell.generators.reward_model import agreement
from listenwell.preference.rating_sheets import KEY, PERSON, candidates_of, examples_by_id
from listenwell.preference.ratings import Rated, rating_files, read_ratings
from listenwell.progress import progress
from listenwell.reranking.config import CHOICE, MERITS, SOFT, RerankerConfig
from listenwell.reranking.reranker import Reranker
from listenwell.results.metric_registry import units
from listenwell.results.store import Result, environment, file_name, write_result

JUDGES_TABLE = "judges"
NAMES = {"reward": "judge: liking", CHOICE: "all judges together"}
"""How rows call a judge, where that is not by its own name."""
EVERYBODY = RerankerConfig(ranker=0.5, every=True)
"""All judges are asked; the ranker has no weight of its own otherwise."""

Table = dict[str, list[tuple[int, float, float]]]
"""By judge: context, its score, the raters' overall."""


def table_of(
    rated: Sequence[Rated],
    contexts: Mapping[str, Dialogue],
    candidates: Mapping[str, Sequence[Candidate]],
    everybody: Reranker,
    ours: RerankerConfig,
) -> Table:
    """What every judge says of every rated candidate.

    Args:
        rated: contexts with ratings.
        contexts: what was said before, by the example's id.
        candidates: with the scores that the generator put on them, by the same.
        everybody: asks all judges.
        ours: the weights that the listener chooses by.
    """
    found: Table = {}
    with progress("asking judges", total=len(rated), unit="contexts") as advance:
        for number, one in enumerate(rated):
            overall = {shown.text: float(one.mean(shown)[-1]) for shown in one.entry.replies}
            judged = everybody.rerank(contexts[one.entry.id], candidates[one.entry.id])
            chosen = Reranker(ours, everybody.ranker, everybody.annotator, reader=everybody.reader)
            batch_size = {
                c.text: dict(c.scores)[CHOICE] for c in chosen.rerank(contexts[one.entry.id], judged)
            }
            for candidate in judged:
                if (rating := overall.get(candidate.text.strip())) is None:
                    continue
                scores = dict(candidate.scores) | {CHOICE: batch_size[candidate.text]}
                for feature in (*SOFT, *MERITS, CHOICE):
                    if (score := scores.get(feature)) is not None:
                        sign = -1 if feature == "prior" else 1  # it is taken off
                        found.setdefault(feature, []).append((number, sign * score, rating))
            advance(1)
    return found


def figures_of(rows: Sequence[tuple[int, float, float]]) -> dict[str, float]:
    """The agreement within contexts, and the mean rating of what has the highest score in each."""
    contexts, scores, ratings = (np.array(column) for column in zip(*rows, strict=True))
    best = []
    for number in np.unique(contexts):
        here = contexts == number
        best.append(float(ratings[here][int(scores[here].argmax())]))
    return {"rater_agreement": agreement(scores, ratings, contexts), "chosen_overall": float(np.mean(best))}


def results_of(folder: Path, replies: Path, raters: str) -> list[Result]:
    """A row for each judge, for any candidate, for the best one, and for the person's reply."""
    key, rated = read_ratings(folder)
    candidates, generator = candidates_of(replies), PlannedGenerator.load(PlannedConfig())
    if missing := [one.entry.id for one in rated if one.entry.id not in candidates]:
        raise InputError(
            f"{replies} has no candidates for {missing[0]}.", "Name the replies of these sheets."
        )
    examples = examples_by_id(list(Source(key.corpus).examples(key.split)))
    contexts = {name: example.context for name, example in examples}
    for one in rated:
        name = one.entry.id
        candidates[name] = generator.with_rewards(contexts[name], candidates[name])
    everybody = Reranker.load(EVERYBODY, priors=generator.priors)
    table = table_of(rated, contexts, candidates, everybody, RerankerConfig())
    rows = {NAMES.get(feature, f"judge: {feature}"): figures_of(lines) for feature, lines in table.items()}
    overall = [[float(one.mean(s)[-1]) for s in one.entry.replies if PERSON not in s.who] for one in rated]
    person = [float(mean[-1]) for one in rated if (mean := one.of(PERSON)) is not None]
    rows["any reply of ours"] = {"chosen_overall": float(np.mean([np.mean(some) for some in overall]))}
    rows["the reply that raters like best"] = {
        "chosen_overall": float(np.mean([max(some) for some in overall]))
    }
    rows[PERSON] = {"chosen_overall": float(np.mean(person))}
    return [
        Result(
            task=JUDGES_TABLE,
            system=name,
            metrics=tuple(figures.items()),
            corpus=key.corpus,
            split=key.split,
            count=len(rated),
            data=hash_files([folder / KEY, *rating_files(folder)]),
            units=units(tuple(figures)),
            conditions=(("raters", raters), ("rated replies", f"{sum(map(len, overall)):,}")),
            checkpoint="" if name == PERSON else hash_files(generator.files()),
            **environment(),  # type: ignore[arg-type]
        )
        for name, figures in rows.items()
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure as the command line says; gives the exit status."""
    parser = argparse.ArgumentParser(prog="python -m listenwell.preference.agreement", description=__doc__)
    parser.add_argument("folder", type=Path, help="sheets of candidates, with ratings")
    parser.add_argument("replies", type=Path, help="the replies.jsonl that they show")
    parser.add_argument("--raters", required=True, help="who they were")
    parser.add_argument("--keep", type=Path, required=True, help="the folder for the results")
    asked = parser.parse_args(arguments)
    try:
        for result in results_of(asked.folder, asked.replies, asked.raters):
            write_result(result, asked.keep / file_name(result))
            print(f"{result.system}: {dict(result.metrics)}")
    except ListenwellError as error:
        print(f"listenwell: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
