"""From a generator that plans to rows of the ledger: perplexity under some factors, and planning.

Replies are made here too, but measured elsewhere (`made`): their metrics need libraries that a bare machine
lacks.
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from listenwell.corpora.epitome import SPLIT_RULE
from listenwell.errors import InputError
from listenwell.evaluation.factor_prediction import (
    TASK,
    against,
    measure_planning,
    planning_conditions,
    read_predictions,
    write_predictions,
)
from listenwell.evaluation.protocol import listener_conditions, model_files, result_of
from listenwell.evaluation.replies import claim
from listenwell.evaluation.systems import (
    BATCH,
    GOLD,
    SAID,
    TITLES,
    likelihood_metrics,
    row_name,
    whole_batch,
)
from listenwell.evaluation.workers import Job, ask_plans, make_replies, measure_likelihood
from listenwell.files import hash_files, written_whole
from listenwell.metrics import Perplexity
from listenwell.results.metric_registry import units
from listenwell.results.store import Result, environment, read_result, task_folder
from listenwell.serialization import indented

PERPLEXITY, UNSEEN = "perplexity", "unseen corpora"
LIKELIHOOD, MADE, PLANS = "perplexity.json", "made.json", "planning.jsonl"
"""Files of a run's folder."""


@dataclass(frozen=True)
class Row:
    """What is measured, and what its row is called."""

    job: Job
    system: str | None = None
    """The row's name without its factors; the speaker's own where there is none."""
    table: str | None = None
    """The table it belongs to, where that is not the usual one."""
    workers: int = 1

    def about(self, factors: str | None, speaks: bool = False) -> dict[str, Any]:
        """What every result says of who was asked and of what; `speaks`: replies are made."""
        job, who = self.job, self.job.who
        listener = who.listener()
        files = model_files(listener.generate, who.weights)
        name = row_name(self.system or listener.generate.name, factors, who.without)
        conditions = listener_conditions(listener)
        if who.whole:
            own = "predicted: the listener's own plans"
            conditions["factors"] = SAID[GOLD] if job.factors == GOLD else own
            conditions["switched off"] = ", ".join(who.without) or "nothing"
        elif factors:
            conditions["factors"] = SAID[factors]
        if speaks and hasattr(listener.generate, "generate_batch"):
            size = whole_batch() if who.whole else BATCH
            conditions["batches"] = f"up to {size} dialogues; others may round otherwise"
        taken = len(job.asked.drawn(job.factors == GOLD))
        return {
            "system": name,
            "corpus": job.asked.corpus,
            "split": job.asked.split,
            "data": job.asked.data(),
            "checkpoint": hash_files(files) if files else None,
            "seed": job.asked.sampling.seed,
            "count": taken,
            "conditions": conditions | job.asked.conditions(taken),
        }


def generate_all(row: Row) -> Path:
    """Make the replies of a row; returns replies.jsonl, beside which stands what `made` must know.

    The whole listener is asked as it is; a generator alone under the factors that the job names.
    """
    job = row.job
    about = row.about(None if job.who.whole else job.factors, speaks=True)
    claim(job.out, {name: value for name, value in about.items() if name != "count"})
    file = make_replies(job, row.workers)
    made = environment()
    with written_whole(job.out / MADE) as out:
        out.write(indented({name: made[name] for name in ("command", "commit", "machine", "time")}).encode())
    return file


def keep_likelihood(row: Row) -> Perplexity:
    """Measure the perplexity under the row's factors and keep its sums beside the replies."""
    found = measure_likelihood(row.job, row.workers)
    with written_whole(row.job.out / LIKELIHOOD) as out:
        out.write(indented(asdict(found)).encode())
    return found


def kept_likelihood(folder: Path) -> Perplexity | None:
    """The sums that `keep_likelihood` left in a run's folder, if it did."""
    file = folder / LIKELIHOOD
    return Perplexity(**json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None


def evaluate_perplexity(row: Row) -> Result:
    """One row of perplexities; on a corpus that no generator learns from it stands in a table of its own."""
    job = row.job
    found = measure_likelihood(job, row.workers)
    about = row.about(job.factors)
    title = TITLES.get(job.asked.corpus)
    if title:
        about["system"] = f"{title}: {about['system']}"
    conditions = {
        **about.pop("conditions"),
        "tokenizer": found.tokenizer,
        "measured": "the listener's tokens and the end mark of each reply, given all turns before it",
        "unit": "perplexity by token (tokenizer's), by word (between white space), bits by UTF-8 byte",
    }
    if job.asked.corpus == "epitome":
        conditions["split"] = f"ours: {SPLIT_RULE}"
    table = row.table or (UNSEEN if title else PERPLEXITY)
    return result_of(table, likelihood_metrics(found), conditions, about)


def evaluate_planning(row: Row) -> Result:
    """One row of Table 4; what was foretold is kept in the folder, for `paired`."""
    found = ask_plans(row.job, row.workers)
    write_predictions(found, row.job.out / PLANS)
    about = row.about(None)
    conditions = {
        **about.pop("conditions"),
        "factors": "gold before each; see given",
        **planning_conditions(found, None),
    }
    return result_of(row.table or TASK, measure_planning(found), conditions, about)


def paired(file: Path, beside: Path) -> Result:
    """A row of planning as the paper has it: over the replies for which both models of a pair foretell X.

    Args:
        file: the planning.jsonl of one model, with its result beside it in the folder.
        beside: that of the other.
    """
    found, other = read_predictions(file), read_predictions(beside)
    base, name = _planned(file.parent), _planned(beside.parent).system
    figures = measure_planning(found, other)
    conditions = dict(base.conditions) | planning_conditions(found, name) | against(found, other, name)
    return replace(
        base,
        metrics=tuple((known, round(value, 6)) for known, value in figures.items()),
        units=units(tuple(figures)),
        conditions=tuple((conditions | {"foretold by": base.command}).items()),
        command=str(environment()["command"]),
    )


def _planned(folder: Path) -> Result:
    """The result of planning in a folder."""
    own = (f"{task_folder(TASK)}/*.json", f"{TASK}-*.json", "result.json")  # now, and in earlier releases
    files = [file for pattern in own for file in sorted(folder.glob(pattern))]
    if not files:
        raise InputError(f"{folder} has no result of planning.", "Ask the model again: --task planning.")
    return read_result(files[0])
