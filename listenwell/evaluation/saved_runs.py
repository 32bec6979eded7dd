"""Replies that a run of ours made, read from its folder: contexts, plans and all that was said of the run.

A bare machine makes replies.jsonl, this reads it where the metrics' libraries are.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from listenwell.corpora.base import CorpusLoader
from listenwell.corpora.sources import Source
from listenwell.dialogue import Factors
from listenwell.errors import InputError
from listenwell.evaluation.empathy import Reads
from listenwell.evaluation.generator_results import MADE, kept_likelihood
from listenwell.evaluation.outputs import Given
from listenwell.evaluation.plan_adherence import RULE, TASK, measure_realization
from listenwell.evaluation.protocol import given_about, result_of
from listenwell.evaluation.replies import RUN, example_id
from listenwell.evaluation.systems import likelihood_metrics
from listenwell.evaluation.workers import REPLIES
from listenwell.results.metric_registry import METRICS
from listenwell.results.store import Result


def is_made(file: Path) -> bool:
    """Whether a file is the replies.jsonl of a run's folder."""
    return file.name == REPLIES and (file.parent / RUN).is_file()


def read_made(file: Path, reader: CorpusLoader | Source, system: str | None = None) -> Given:
    """The replies of a run.

    Args:
        file: its replies.jsonl.
        reader: the run's corpus, for the contexts.
        system: another name for the row.
    """
    if not file.is_file():
        raise InputError(f"The run in {file.parent} is not finished.", "Start it again: it goes on.")
    about = _object(file.parent / RUN)
    if about.get("corpus") != reader.name:
        raise InputError(
            f"{file.parent} answers {about.get('corpus')}, not {reader.name}.",
            f"Name its corpus: --corpus {about.get('corpus')}",
        )
    contexts = {
        example_id(example, place): example.context
        for place, example in enumerate(reader.examples(str(about["split"])))
    }
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line.strip()]
    if not lines:
        raise InputError(f"{file} is empty.", "Let the run make its replies first.")
    if unknown := [line["id"] for line in lines if line["id"] not in contexts]:
        raise InputError(
            f"{reader.name} {about['split']} has no context {unknown[0]!r}.",
            "Name the corpus's folder that the run had: --path.",
        )
    plans = [Factors.from_dict(line["plan"]) if line.get("plan") else None for line in lines]
    conditions = {str(name): str(value) for name, value in about["conditions"].items()}
    figures = {}
    if likelihood := kept_likelihood(file.parent):
        conditions["tokenizer"] = likelihood.tokenizer
        found = likelihood_metrics(likelihood).items()
        figures = {name: value for name, value in found if METRICS[name].group == "perplexity"}
    return Given(
        system=system or str(about["system"]),
        replies=[line["reply"] for line in lines],
        references=[line["reference"] for line in lines],
        data=str(about["data"]),
        corpus=reader.name,
        split=str(about["split"]),
        conditions=conditions | _making(file.parent),
        contexts=[contexts[line["id"]] for line in lines],
        plans=plans if any(plans) else [],
        figures=figures,
        seed=about["seed"],
        checkpoint=about["checkpoint"],
    )


def evaluate_realization(given: Given, readers: Reads, table: str | None = None) -> Result:
    """How many of a run's replies do what they were planned to do (CoMAE's Table 5)."""
    kept = [place for place, plan in enumerate(given.plans) if plan is not None]
    if not kept:
        raise InputError(
            f"The replies of {given.system} have no plans.", "Name those of a generator that plans."
        )
    figures = measure_realization(
        [plan for plan in given.plans if plan is not None],
        [given.contexts[place] for place in kept],
        [given.replies[place] for place in kept],
        readers,
    )
    said = {"plan_adherence": RULE, "annotators": f"key {readers.key[:12]}"}
    about = given_about(given) | {"count": len(kept)}
    return result_of(table or TASK, figures, given.conditions | said, about)


def _making(folder: Path) -> dict[str, str]:
    """Where and by which command the replies were made, if the run says so."""
    if not (folder / MADE).is_file():
        return {}
    made = _object(folder / MADE)
    return {"made by": f"{made['command']} ({made['commit'] or 'unknown'}, {made['machine']})"}


def _object(file: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise InputError(f"{file} is damaged.", "Make the replies again in another folder.")
    return data
