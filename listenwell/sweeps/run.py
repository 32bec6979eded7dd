"""A study: a grid of training runs, one row for each way to train, one run for each row and seed.

`python -m listenwell.sweeps.run FILE.yaml` on a bare machine, `listenwell study FILE.yaml` elsewhere; the
latter gathers the runs' results into the ledger too. Each run is a process of its own, so that several small
ones share a GPU. Stopped at any moment, the same command goes on: what is finished is not done again, and a
run goes on from its last save. A machine without git can be told the commit: LISTENWELL_COMMIT.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from listenwell.errors import InputError, ListenwellError
from listenwell.results.metric_registry import METRICS
from listenwell.results.store import read_result
from listenwell.sweeps.grid import RUNS, Run, choose, read_plans
from listenwell.sweeps.jobs import Ended, log_end, run_jobs

STOPPED = 3
"""The exit code of a study that the time limit ended: the same command goes on."""


@dataclass(frozen=True)
class Outcome:
    """How the runs of a study went."""

    finished: int = 0
    failed: int = 0
    stopped: int = 0
    """Running when the time was up."""
    left: int = 0
    """Not begun."""

    @property
    def code(self) -> int:
        """The exit code: 1 where a run failed, 3 where the time was up, 0 otherwise."""
        return 1 if self.failed else STOPPED if self.stopped or self.left else 0

    def __str__(self) -> str:
        parts = [f"{self.finished} finished"]
        parts += [f"{count} {what}" for count, what in ((self.failed, "failed"),) if count]
        if self.stopped or self.left:
            parts.append(f"{self.stopped} stopped and {self.left} not begun as the time was up")
        advice = ": the same command goes on" if self.code else ""
        return f"{', '.join(parts)}{advice}"


def run_all(
    runs: Sequence[Run],
    parallel: int = 1,
    seconds: float | None = None,
    say: Callable[[str], None] = print,
    advance: Callable[[int], None] = lambda count: None,
) -> Outcome:
    """Run what is not finished, so many at a time; a run that fails does not stop the others.

    Args:
        runs: what to run, in this order.
        parallel: how many share the machine.
        seconds: after so long those that run are stopped, and the others are not begun.
        say: takes a line for each run that ends.
        advance: takes the number of runs just done, for a progress bar.
    """
    todo = [run for run in runs if not run.is_finished()]
    done = len(runs) - len(todo)
    if done:
        say(f"{done} of {len(runs)} runs are finished already")
        advance(done)
    jobs = {run.job(): run for run in todo}
    finished, failed, stopped = done, 0, 0
    for ended in run_jobs(list(jobs), parallel, seconds):
        run = jobs[ended.job]
        if run.result.is_file() and ended.code == 0:
            finished += 1
            say(f"[{finished}/{len(runs)}] {run.name}: {main_figure(run.result)}, {ended.seconds:,.0f} s")
        elif ended.code is None:
            stopped += 1
            say(f"{run.name}: stopped after {ended.seconds:,.0f} s, the time is up")
        else:
            failed += 1
            say(_failure(run, ended))
        advance(1)
    return Outcome(finished, failed, stopped, len(runs) - finished - failed - stopped)


def main_figure(file: Path) -> str:
    """The figure of a result that a reader looks for first: the first with a column of its own."""
    result = read_result(file)
    for name, known in METRICS.items():
        value = result.metric(name)
        if value is not None and known.better and known.group != "other":
            return f"{known.label} {known.show(value)}"
    return "no figure"


def _failure(run: Run, ended: Ended) -> str:
    code = "without a result" if ended.code == 0 else f"with exit code {ended.code}"
    said = "\n".join(f"    {line}" for line in log_end(ended.job.log).splitlines())
    return f"{run.name}: failed {code} after {ended.seconds:,.0f} s; the end of {ended.job.log}:\n{said}"


def seed_list(text: str) -> tuple[int, ...]:
    """Seeds as the command line has them: 1,2,3."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() for part in parts):
        raise InputError(f"The seeds are {text!r}.", "Give whole numbers with commas: 1,2,3.")
    return tuple(map(int, parts))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m listenwell.sweeps.run",
        description="Run the studies' training recipes; the same command goes on with what was stopped.",
    )
    parser.add_argument("file", type=Path, nargs="+", help="YAML files of studies")
    parser.add_argument("--parallel", type=int, default=1, help="how many runs share the machine")
    parser.add_argument("--limit", type=int, help="only so many dialogues of each split, for a rehearsal")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--only", nargs="+", default=[], metavar="ROW", help="only these rows")
    parser.add_argument("--seeds", type=str, help="only these seeds, such as 1,2")
    parser.add_argument("--root", type=Path, default=RUNS, help="where the runs' folders are")
    return parser.parse_args()


def _say(line: str) -> None:
    print(line, flush=True)


def main() -> int:
    """The command of a bare machine; returns the exit code."""
    given = _arguments()
    # A plain kill must end the runs too: it becomes an exception, on whose way they are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if given.parallel < 1 or (given.limit is not None and given.limit < 1):
            raise InputError("--parallel and --limit count from 1.", "Give a larger number.")
        plans = read_plans(given.file, given.root, given.limit)
        runs = choose(plans, given.only, seed_list(given.seeds) if given.seeds else ())
        outcome = run_all(runs, given.parallel, given.seconds, _say)
    except ListenwellError as error:
        print(f"listenwell: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    _say(f"study: {outcome}")
    return outcome.code


if __name__ == "__main__":
    sys.exit(main())
