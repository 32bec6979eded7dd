"""What eight people at once get from the service, beside the same requests one after another.

    python benchmarks/serving_load.py --model planned --weights runs/planned

`listenwell serve` is started as a shell starts it, on this computer alone and on any free port. In each round
one person asks for everything, one reply after the other; then eight people ask for the same at once, each
for the next reply when they have theirs. Replies a minute, the median and the longest wait; the median of
the rounds' ratios counts, because machines are noisy. While several wait, each reply is chosen from fewer:
how many, is counted. With --steady the service spares nothing.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryFile
from typing import Any
from urllib.parse import urlsplit

from reply_speed import DIALOGUES, PROGRAM, add_model

from listenwell.dialogue import LISTENER, SPEAKER
from listenwell.files import written_whole
from listenwell.results.store import environment

OUT = Path(__file__).parent / "results" / "serving_load.json"
USERS = 8
AIMS = {"times_one_after_another": 3.0, "longest_of_median": 2.0}
"""The first should be reached, the second not passed."""
PATIENCE = 600
"""Seconds for one reply, or for the service to be ready."""


@dataclass(frozen=True)
class Waited:
    """A reply that came."""

    seconds: float
    candidates: int


def bodies(count: int) -> list[dict[str, Any]]:
    """Requests: the dialogues of the other benchmarks again and again, each time with another seed."""
    requests = []
    for number in range(count):
        turns = DIALOGUES[number % len(DIALOGUES)]
        sides = [LISTENER if (len(turns) - index) % 2 == 0 else SPEAKER for index in range(len(turns))]
        history = [{"speaker": side, "text": text} for side, text in zip(sides[:-1], turns[:-1], strict=True)]
        requests.append({"text": turns[-1], "history": history, "seed": number})
    return requests


@contextmanager
def served(chosen: argparse.Namespace) -> Iterator[str]:
    """The address of a service that has answered once."""
    options = ["--port", "0", "--rate", "0", "--no-store", "--no-browser"]
    options += ["--model", chosen.model or "planned"]
    options += ["--weights", str(chosen.weights)] if chosen.weights else []
    options += ["--steady"] if chosen.steady else []
    options += ["--min-candidates", str(chosen.min_candidates)] if chosen.min_candidates else []
    command = [sys.executable, "-c", PROGRAM, "serve", *options]
    with TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            greeting = next(lines, "").split()
            if not any(line.startswith("listener") for line in lines):  # the first exchange
                log.seek(0)
                raise SystemExit(f"The service did not start. {log.read()}")
            yield greeting[3]
        finally:
            process.terminate()
            process.wait(PATIENCE)


def ask(address: str, requests: Sequence[dict[str, Any]]) -> list[Waited]:
    """One person's requests, one after the other."""
    connection, waits = HTTPConnection(urlsplit(address).netloc, timeout=PATIENCE), list[Waited]()
    for body in requests:
        begin = time.perf_counter()
        connection.request("POST", "/api/reply", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise SystemExit(f"The service answered with {answer.status}: {content.decode()}")
        waits.append(Waited(time.perf_counter() - begin, len(json.loads(content)["candidates"])))
    connection.close()
    return waits


def ask_in_parallel(address: str, shares: Sequence[Sequence[dict[str, Any]]]) -> tuple[list[Waited], float]:
    """Several people at once, each with requests of their own; and the seconds that it took in all."""
    by_user: list[list[Waited]] = [[] for _ in shares]
    threads = [
        threading.Thread(target=lambda own, requests: own.extend(ask(address, requests)), args=pair)
        for pair in zip(by_user, shares, strict=True)
    ]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - begin
    waits = [wait for own in by_user for wait in own]
    if len(waits) < sum(map(len, shares)):
        raise SystemExit("A request was not answered.")
    return waits, seconds


def summarize(waits: Sequence[Waited], seconds: float) -> dict[str, float]:
    """The figures of one way of asking."""
    times = [wait.seconds for wait in waits]
    return {
        "replies_a_minute": round(60 * len(waits) / seconds, 2),
        "median_wait_seconds": round(median(times), 3),
        "longest_wait_seconds": round(max(times), 3),
        "longest_of_median": round(max(times) / median(times), 2),
        "candidates_of_a_reply": round(fmean(wait.candidates for wait in waits), 2),
    }


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    """Both ways in turn, for several rounds; the first reply to each dialogue is not measured."""
    requests = bodies(chosen.users * chosen.each)
    shares = [requests[user :: chosen.users] for user in range(chosen.users)]
    rounds = list[dict[str, dict[str, float]]]()
    with served(chosen) as address:
        ask(address, requests[: len(DIALOGUES)])
        for _ in range(chosen.rounds):
            alone = ask_in_parallel(address, [requests])
            rounds.append({"one": summarize(*alone), "several": summarize(*ask_in_parallel(address, shares))})
            print(json.dumps(rounds[-1]), file=sys.stderr)
    return {
        "model": chosen.model or "planned",
        "users": chosen.users,
        "replies_a_round": len(requests),
        "load_shedding": "off" if chosen.steady else f"at least {chosen.min_candidates or 1} candidates",
        "times_one_after_another": round(
            median(row["several"]["replies_a_minute"] / row["one"]["replies_a_minute"] for row in rounds), 2
        ),
        "longest_of_median": max(row["several"]["longest_of_median"] for row in rounds),
        "aims": AIMS,
        "rounds": rounds,
    }


def main() -> None:
    """Measure, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_model(parser)
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--each", type=int, default=3, help="replies that each asks for in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steady", action="store_true", help="no load shedding")
    parser.add_argument("--min-candidates", type=int, default=None, help="as of listenwell serve")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    figures = measure(chosen)
    about = {name: value for name, value in environment().items() if name != "command"}
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(chosen.out) as out:
        out.write(json.dumps({**figures, **about}, ensure_ascii=False, indent=1).encode() + b"\n")
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
