"""What is evaluated: a system, on the examples of a split, under some factors; shared among processes."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from multiprocessing import get_context, parent_process
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import numpy as np

from listenwell.corpora.sampling import Sampling
from listenwell.corpora.sources import Source
from listenwell.dialogue import Example
from listenwell.errors import InputError
from listenwell.evaluation.systems import (
    FACTOR_NOTES,
    GOLD,
    LISTENER_PLANS,
    PREDICTED,
    System,
    listener_conditions,
    model_files,
    row_name,
)
from listenwell.files import hash_files
from listenwell.generators.plans import plan_of
from listenwell.listener import Listener
from listenwell.results.metric_registry import units
from listenwell.results.store import Result, environment

T = TypeVar("T")


@dataclass(frozen=True)
class EvaluationSplit:
    """The examples of a corpus that a system is evaluated on."""

    corpus: str = "empathetic_dialogues"
    split: str = "test"
    path: Path | None = None
    annotated: Path | None = None
    """The output folder of `listenwell annotate`; gold factors come from there."""
    sampling: Sampling = field(default_factory=Sampling)

    @cached_property
    def source(self) -> Source:
        """The corpus."""
        return Source(self.corpus, self.path, annotated=self.annotated)

    @cached_property
    def examples(self) -> list[Example]:
        """All examples of the split."""
        return list(self.source.examples(self.split))

    def sample(self, with_plans: bool = False) -> list[tuple[int, Example]]:
        """The sampled examples with their indices; `with_plans`: only those whose factors are all known."""
        sample = self.sampling.draw(self.examples)
        if with_plans:
            sample = [(index, example) for index, example in sample if plan_of(example)]
            if not sample:
                raise InputError(
                    f"No reply of {self.corpus} {self.split} has its factors.",
                    "Annotate it (`listenwell annotate`) and name the folder with --annotated.",
                )
        return sample

    def conditions(self, count: int) -> dict[str, str]:
        """The sampling rule, and where factors come from; `count` is the number of examples used."""
        drawn = len(self.sampling.draw(self.examples))
        rule = self.sampling.describe(len(self.examples), drawn)
        if count < drawn:
            rule += f"; without the {drawn - count:,} whose factors are not all known"
        labels = "our annotators'; the speaker's emotion is the corpus's own where it has one"
        return {"sample": rule} | ({"labels": labels} if self.annotated else {})


@dataclass(frozen=True)
class EvaluationRequest:
    """One system on one split; a worker process has one share of the examples."""

    system: System
    split: EvaluationSplit
    out: Path
    """The folder for replies and predictions."""
    factors: str = PREDICTED
    """Which factors a generator alone is given; a whole listener is asked for the gold ones or for none."""
    name: str | None = None
    """The name of the row without its factors; by default the generator's own."""
    table: str | None = None
    """The table of the row, where it is not the usual one."""
    workers: int = 1
    share: int = 0
    shares: int = 1

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise InputError(f"The number of workers is {self.workers}.", "Give 1 or more.")

    @property
    def examples(self) -> list[tuple[int, Example]]:
        """The examples of this share, each with its index in the corpus."""
        return self.split.sample(with_plans=self.factors == GOLD)[self.share :: self.shares]

    def describe(self, listener: Listener, factors: str | None, generates: bool = False) -> dict[str, Any]:
        """What a result says of the system and the data, beside its metrics.

        Args:
            listener: the system, loaded.
            factors: named in the row; None for a whole listener, and where they are part of the task.
            generates: whether replies are generated.
        """
        split, system = self.split, self.system
        files = model_files(listener.generate, system.weights)
        conditions = listener_conditions(listener)
        if system.whole:
            own = LISTENER_PLANS if listener.plan else "none"
            conditions["factors"] = FACTOR_NOTES[GOLD] if self.factors == GOLD else own
            conditions["switched off"] = ", ".join(system.without) or "nothing"
        elif factors:
            conditions["factors"] = FACTOR_NOTES[factors]
        if generates:
            conditions["seeds"] = "one a reply: numpy SeedSequence([seed of the run, index in the corpus])"
            size = system.batch_size()
            conditions["batches"] = f"up to {size} dialogues; other sizes may round differently"
        count = len(self.examples)
        return {
            "system": row_name(self.name or listener.generate.name, factors, system.without),
            "corpus": split.corpus,
            "split": split.split,
            "data": hash_files(split.source.files(split.split)),
            "checkpoint": hash_files(files) if files else None,
            "seed": split.sampling.seed,
            "count": count,
            "conditions": conditions | split.conditions(count),
        }

    def divided(self) -> list["EvaluationRequest"]:
        """One request for each worker; every n-th example belongs to the same worker."""
        shares = min(self.workers, len(self.examples))
        # A fresh copy of the split: examples that were read already need not travel to a worker.
        return [
            replace(self, split=replace(self.split), share=share, shares=shares) for share in range(shares)
        ]


def reply_seed(seed: int, index: int) -> int:
    """The seed of one reply, from the run's seed and the example's index in the corpus alone.

    So a context gets the same reply whatever else is in the sample, and in any order.
    """
    return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])


def result_of(
    task: str, metrics: Mapping[str, float], conditions: Mapping[str, str], about: Mapping[str, Any]
) -> Result:
    """A result with units and environment; `about` has the fields of `EvaluationRequest.describe`."""
    rounded = {name: round(float(value), 6) for name, value in metrics.items()}
    fields = {name: value for name, value in about.items() if name != "conditions"}
    return Result(
        task=task,
        metrics=tuple(rounded.items()),
        units=units(tuple(rounded)),
        conditions=tuple(conditions.items()),
        **fields,
        **environment(),  # type: ignore[arg-type]
    )


def run_shares(work: Callable[[EvaluationRequest], T], requests: list[EvaluationRequest]) -> list[T]:
    """Run each request in a process of its own; an error in one is raised here.

    Several processes share a GPU that a small model leaves mostly idle. An example's output depends on its
    seed and index alone, so the number of workers changes no number.
    """
    # Spawned, not forked: a forked process cannot use a GPU that its parent has touched.
    context = get_context("spawn")
    shares: SimpleQueue[list[int]] = context.SimpleQueue()
    for cores in _core_shares(len(requests)):
        shares.put(cores)
    with ProcessPoolExecutor(
        len(requests), mp_context=context, initializer=start_worker, initargs=(shares,)
    ) as pool:
        return list(pool.map(work, requests))


def _core_shares(workers: int) -> list[list[int]]:
    """The cores of each worker; more workers than cores have one core each, and share it."""
    try:
        cores = sorted(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        cores = list(range(os.cpu_count() or 1))
    return [cores[worker::workers] or [cores[worker % len(cores)]] for worker in range(workers)]


def start_worker(shares: "SimpleQueue[list[int]]") -> None:
    """Bind a worker to its cores (every engine starts a thread a core), and end it with its parent."""
    Thread(target=_end_with_parent, daemon=True).start()
    cores = shares.get()
    os.environ["OMP_NUM_THREADS"] = str(len(cores))  # torch reads it when it is imported
    if hasattr(os, "sched_setaffinity"):  # Linux only
        os.sched_setaffinity(0, cores)


def _end_with_parent() -> None:
    """A worker whose parent was killed would go on for an hour, and nobody would read its output."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)
