"""Several processes at a time, each with a log of its own: small models that share one GPU."""

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_POLL = 0.1
"""Seconds between two looks at the running programs."""
_GRACE = 10.0
"""Seconds that a program has to end when asked to."""
_TAIL_BYTES = 8_192


@dataclass(frozen=True)
class Job:
    """A program to run."""

    command: tuple[str, ...]
    log: Path
    """Gets all that it prints; one that is there is written on."""


@dataclass(frozen=True)
class Ended:
    """How a job ended."""

    job: Job
    seconds: float
    code: int | None
    """Its exit code; None where the time was up and it was stopped."""


@dataclass(frozen=True, eq=False)
class _Running:
    job: Job
    process: subprocess.Popen[bytes]
    begin: float

    def ended(self, code: int | None) -> Ended:
        return Ended(self.job, time.monotonic() - self.begin, code)


def run_jobs(jobs: Sequence[Job], parallel: int = 1, seconds: float | None = None) -> Iterator[Ended]:
    """Run jobs in their order, so many at a time; gives each as it ends.

    Args:
        jobs: what to run.
        parallel: how many run at the same time.
        seconds: after so long those that run are stopped, and the others are not started.

    A caller that closes the iterator (an error, Ctrl-C) stops the programs too.
    """
    waiting, running = list(jobs), list[_Running]()
    environment = {**threads_each(parallel, os.environ), **os.environ}
    end = None if seconds is None else time.monotonic() + seconds
    try:
        while waiting or running:
            if end is not None and time.monotonic() >= end:
                break
            while waiting and len(running) < parallel:
                running.append(_start(waiting.pop(0), environment))
            time.sleep(_POLL)
            for job in [job for job in running if job.process.poll() is not None]:
                running.remove(job)
                yield job.ended(job.process.returncode)
    finally:
        _stop(running)
    # One that ended by itself between the last look and the stop has its own exit code.
    yield from (job.ended(job.process.returncode if job.process.returncode == 0 else None) for job in running)


def threads_each(parallel: int, environment: Mapping[str, str]) -> dict[str, str]:
    """The share of the cores that each of several programs uses, unless the user has said it."""
    if parallel < 2 or "OMP_NUM_THREADS" in environment:
        return {}
    return {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // parallel))}


def log_end(log: Path, lines: int = 12) -> str:
    """The last lines of a log, without what could move a terminal's cursor."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    last = text.splitlines()[-lines:]
    return "\n".join("".join(letter if letter.isprintable() else " " for letter in line) for line in last)


def _start(job: Job, environment: Mapping[str, str]) -> _Running:
    job.log.parent.mkdir(parents=True, exist_ok=True)
    with job.log.open("ab") as log:
        # In our own process group: whoever ends the group (a terminal, a time limit) ends all of it.
        process = subprocess.Popen(
            job.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=dict(environment)
        )
    return _Running(job, process, time.monotonic())


def _stop(running: Sequence[_Running]) -> None:
    """Ask all to end, then make those end that did not."""
    for job in running:
        job.process.terminate()
    end = time.monotonic() + _GRACE
    for job in running:
        try:
            job.process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            job.process.kill()
            job.process.wait()
