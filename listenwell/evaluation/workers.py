"""Thousands of replies divided among processes: one that speaks with a small model leaves most of a GPU idle.

Each worker loads the model, takes every n-th reply and gives its part back. A reply depends on the seed and
on its place in the corpus alone, so the number of workers moves no number.
"""

import json
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from multiprocessing import get_context, parent_process
from operator import add
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from listenwell.errors import InputError
from listenwell.evaluation.factor_prediction import FactorPrediction, predict_factors
from listenwell.evaluation.replies import by_listener, example_id, write_replies
from listenwell.evaluation.systems import (
    GOLD,
    Answering,
    Asked,
    System,
    answering,
    likelihood,
    planned,
    whole_batch,
)
from listenwell.files import written_whole
from listenwell.generators.plans import plan_of
from listenwell.metrics import Perplexity

T = TypeVar("T")
REPLIES = "replies.jsonl"


@dataclass(frozen=True)
class Job:
    """What one worker does."""

    who: System
    asked: Asked
    factors: str
    out: Path
    """The folder for replies."""
    part: int = 0
    parts: int = 1

    def of_part(self, items: list[T]) -> list[T]:
        """Every `parts`-th item, from number `part` on."""
        return items[self.part :: self.parts]

    def file(self) -> Path:
        """Where this worker's replies go."""
        return self.out / (REPLIES if self.parts == 1 else f"replies.{self.part + 1}-of-{self.parts}.jsonl")


def make_replies(job: Job, workers: int = 1) -> Path:
    """Write replies.jsonl in the job's folder; a run that was stopped goes on, with as many workers."""
    whole = job.out / REPLIES
    if workers == 1 or whole.exists():
        _replies(job)
        return whole
    parts = [part.file() for part in _divided(_replies, job, workers)[1]]
    lines = {
        json.loads(line)["id"]: line
        for part in parts
        for line in part.read_bytes().split(b"\n")
        if line.strip()
    }
    with written_whole(whole) as out:
        for place, example in job.asked.drawn(job.factors == GOLD):
            out.write(lines[example_id(example, place)] + b"\n")
    for part in parts:
        part.unlink()
    return whole


def measure_likelihood(job: Job, workers: int = 1) -> Perplexity:
    """The perplexity of people's replies: sums over all parts."""
    return reduce(add, _divided(_likelihood, job, workers)[0])


def ask_plans(job: Job, workers: int = 1) -> list[FactorPrediction]:
    """What the generator foretells of every reply, in the order of the corpus."""
    parts = _divided(_plans, job, workers)[0]
    return [parts[place % len(parts)][place // len(parts)] for place in range(sum(map(len, parts)))]


def _divided(work: Callable[[Job], T], job: Job, workers: int) -> tuple[list[T], list[Job]]:
    """What each worker gives back, and its job; a worker that dies raises."""
    if workers < 1:
        raise InputError(f"There are {workers} workers.", "Give 1 or more.")
    workers = min(workers, len(job.asked.drawn(job.factors == GOLD)))
    # A fresh copy of what is asked: replies that were read already need not travel.
    jobs = [replace(job, asked=replace(job.asked), part=part, parts=workers) for part in range(workers)]
    if workers == 1:
        return [work(job)], [job]
    # Spawned, not forked: a forked process cannot use a GPU that its parent has touched.
    context = get_context("spawn")
    shares = context.SimpleQueue()
    for cores in _shares(workers):
        shares.put(cores)
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_keep_to, initargs=(shares,)) as pool:
        return list(pool.map(work, jobs)), jobs


def _shares(workers: int) -> list[list[int]]:
    """The cores of each worker; more workers than cores share them one by one."""
    try:
        cores = sorted(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        cores = list(range(os.cpu_count() or 1))
    return [cores[part::workers] or [cores[part % len(cores)]] for part in range(workers)]


def _keep_to(shares: Any) -> None:  # noqa: ANN401 - a queue of multiprocessing
    """A worker takes its share of the cores: every engine starts as many threads as it has cores."""
    Thread(target=_end_with_parent, daemon=True).start()
    cores = shares.get()
    os.environ["OMP_NUM_THREADS"] = str(len(cores))  # torch reads it when it is imported
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


def _end_with_parent() -> None:
    """A worker whose parent was killed would go on for an hour, for nobody."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


def _replies(job: Job) -> None:
    listener = job.who.listener()
    if job.who.whole:
        forced = [plan_of] if job.factors == GOLD else []
        how = Answering(by_listener(listener, *forced), whole_batch())
    else:
        how = answering(listener, job.factors)
    chosen = job.of_part(job.asked.drawn(job.factors == GOLD))
    write_replies(how.answer, chosen, job.asked.sampling.seed, job.file(), how.batch)


def _likelihood(job: Job) -> Perplexity:
    chosen = job.of_part(job.asked.drawn(job.factors == GOLD))
    return likelihood(job.who.generator(), chosen, job.factors, job.asked.sampling.seed)


def _plans(job: Job) -> list[FactorPrediction]:
    return predict_factors(job.who.generator(), job.of_part(planned(job.asked)))
