"""Running a sweep: each run is a process of its own, so that several small models share a GPU.

Stopped at any moment, the same command goes on: what is finished is not run again, and a run resumes from its
last save. A machine without git can be told the commit: LISTENWELL_COMMIT.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from listenwell.errors import InputError
from listenwell.results.metric_registry import METRICS
from listenwell.results.store import read_result
from listenwell.sweeps.grid import SweepRun
from listenwell.sweeps.jobs import Ended, log_end, run_jobs

STOPPED = 3
"""The exit code of a sweep that the time limit ended: the same command goes on."""


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
        parts = [f"{self.finished} finished"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.stopped or self.left:
            parts.append(f"{self.stopped} stopped and {self.left} not started as the time was up")
        return f"{', '.join(parts)}{': the same command goes on' if self.code else ''}"


def run_all(
    runs: Sequence[SweepRun],
    parallel: int = 1,
    seconds: float | None = None,
    echo: Callable[[str], None] = print,
    advance: Callable[[int], None] = lambda count: None,
) -> Outcome:
    """Run what is not finished, so many at a time; a run that fails does not stop the others.

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
    for ended in run_jobs(list(jobs), parallel, seconds):
        run = jobs[ended.job]
        if run.result.is_file() and ended.code == 0:
            finished += 1
            echo(f"[{finished}/{len(runs)}] {run.name}: {main_metric(run.result)}, {ended.seconds:,.0f} s")
        elif ended.code is None:
            stopped += 1
            echo(f"{run.name}: stopped after {ended.seconds:,.0f} s, the time is up")
        else:
            failed += 1
            echo(_failure(run, ended))
        advance(1)
    return Outcome(finished, failed, stopped, len(runs) - finished - failed - stopped)


def main_metric(file: Path) -> str:
    """The first metric of a result that has a column of its own, with its label."""
    result = read_result(file)
    for name, metric in METRICS.items():
        value = result.metric(name)
        if value is not None and metric.better and metric.group != "other":
            return f"{metric.label} {metric.show(value)}"
    return "no metric"


def _failure(run: SweepRun, ended: Ended) -> str:
    code = "without a result" if ended.code == 0 else f"with exit code {ended.code}"
    lines = "\n".join(f"    {line}" for line in log_end(ended.job.log).splitlines())
    return f"{run.name}: failed {code} after {ended.seconds:,.0f} s; the end of {ended.job.log}:\n{lines}"


def seed_list(text: str) -> tuple[int, ...]:
    """Seeds as the command line has them: 1,2,3."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() for part in parts):
        raise InputError(f"The seeds are {text!r}.", "Give whole numbers with commas: 1,2,3.")
    return tuple(map(int, parts))
