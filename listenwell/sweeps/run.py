"""Running a sweep: each run is a process of its own, so that several small models share a GPU.

Stopped at any moment, the same command goes on: what is finished is not run again, and a run resumes from its
last save. A machine without git can be told the commit: LISTENWELL_COMMIT.
"""

import math
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from listenwell.errors import InputError
from listenwell.results.metric_registry import METRICS
from listenwell.results.store import read_result
from listenwell.sweeps.grid import Job, SweepRun

STOPPED = 3
"""The exit code of a sweep that the time limit ended: the same command goes on."""
_POLL = 0.1
"""Seconds between two looks at the running programs."""
_GRACE = 10.0
"""Seconds that a program has to end when asked to."""


class Ended(NamedTuple):
    """How a job ended."""

    job: Job
    seconds: float
    code: int | None
    """Its exit code; None where the time was up and it was stopped."""


@dataclass(frozen=True)
class Outcome:
    """How many runs of a sweep ended in which way."""

    finished: int = 0
    failed: int = 0
    stopped: int = 0
    """Running when the time was up."""
    left: int = 0
    """Not started."""

    @property
    def code(self) -> int:
        """The exit code: 1 where a run failed, 3 where the time was up, 0 otherwise."""
        return 1 if self.failed else STOPPED if self.stopped or self.left else 0

    def __str__(self) -> str:
        text = f"{self.finished} finished"
        if self.failed:
            text += f", {self.failed} failed"
        if self.stopped or self.left:
            text += f", {self.stopped} stopped and {self.left} not started as the time was up"
        return f"{text}: the same command goes on" if self.code else text


def run_all(
    runs: Sequence[SweepRun],
    parallel: int = 1,
    seconds: float | None = None,
    echo: Callable[[str], None] = print,
    advance: Callable[[int], None] = lambda count: None,
) -> Outcome:
    """Run what is not finished; a run that fails does not stop the others.

    Args:
        runs: what to run, in this order.
        parallel: how many share the machine.
        seconds: after so long those that run are stopped, and the others are not started.
        echo: takes a line for each run that ends.
        advance: takes the number of runs just done, for a progress bar.
    """
    todo = [run for run in runs if not run.is_finished()]
    finished, failed, stopped = len(runs) - len(todo), 0, 0
    if finished:
        echo(f"{finished} of {len(runs)} runs are finished already")
        advance(finished)
    jobs = {run.job(): run for run in todo}
    for job, duration, code in run_jobs(list(jobs), parallel, seconds):
        run, after = jobs[job], f"after {duration:,.0f} s"
        if code == 0 and run.result.is_file():
            finished += 1
            echo(f"[{finished}/{len(runs)}] {run.name}: {main_metric(run.result)}, {duration:,.0f} s")
        elif code is None:
            stopped += 1
            echo(f"{run.name}: stopped {after}, the time is up")
        else:
            failed += 1
            reason = f"with exit code {code}" if code else "without a result"
            lines = "".join(f"\n    {line}" for line in log_end(job.log).splitlines())
            echo(f"{run.name}: failed {reason} {after}; the end of {job.log}:{lines}")
        advance(1)
    return Outcome(finished, failed, stopped, len(runs) - finished - failed - stopped)


def run_jobs(jobs: Sequence[Job], parallel: int = 1, seconds: float | None = None) -> Iterator[Ended]:
    """Run jobs in their order, at most `parallel` at a time; yields each as it ends.

    After `seconds` those that run are stopped, and the others are not started. A caller that closes the
    iterator (an error, Ctrl-C) stops the programs too.
    """
    waiting, running = list(jobs), dict[subprocess.Popen[bytes], tuple[Job, float]]()
    environment = {**threads_each(parallel, os.environ), **os.environ}
    end = math.inf if seconds is None else time.monotonic() + seconds
    try:
        while (waiting or running) and time.monotonic() < end:
            while waiting and len(running) < parallel:
                job = waiting.pop(0)
                running[_start(job, environment)] = (job, time.monotonic())
            time.sleep(_POLL)
            for process in [process for process in running if process.poll() is not None]:
                job, begin = running.pop(process)
                yield Ended(job, time.monotonic() - begin, process.returncode)
    finally:
        _stop(running)
    for process, (job, begin) in running.items():
        # One that ended by itself between the last look and the stop has its own exit code.
        yield Ended(job, time.monotonic() - begin, 0 if process.returncode == 0 else None)


def threads_each(parallel: int, environment: Mapping[str, str]) -> dict[str, str]:
    """The share of the cores that each of several programs uses, unless the user has said it."""
    if parallel < 2 or "OMP_NUM_THREADS" in environment:
        return {}
    return {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // parallel))}


def log_end(log: Path, lines: int = 12) -> str:
    """The last lines of a log, without what could move a terminal's cursor."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    last = text.splitlines()[-lines:]
    return "\n".join("".join(letter if letter.isprintable() else " " for letter in line) for line in last)


def main_metric(file: Path) -> str:
    """The first metric of a result that has a column of its own, with its label."""
    result = read_result(file)
    for name, metric in METRICS.items():
        value = result.metric(name)
        if value is not None and metric.better and metric.group != "other":
            return f"{metric.label} {metric.show(value)}"
    return "no metric"


def seed_list(text: str) -> tuple[int, ...]:
    """Seeds as the command line has them: 1,2,3."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() for part in parts):
        raise InputError(f"The seeds are {text!r}.", "Give whole numbers with commas: 1,2,3.")
    return tuple(map(int, parts))


def _start(job: Job, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    job.log.parent.mkdir(parents=True, exist_ok=True)
    with job.log.open("ab") as log:
        # In our own process group: whoever ends the group (a terminal, a time limit) ends all of it.
        return subprocess.Popen(
            job.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=dict(environment)
        )


def _stop(processes: Iterable["subprocess.Popen[bytes]"]) -> None:
    """Ask all to end, then make those end that did not."""
    for process in processes:
        process.terminate()
    end = time.monotonic() + _GRACE
    for process in processes:
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
