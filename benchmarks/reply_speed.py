"""What a full reply costs: in time, beside the speaking of one candidate; in memory; to the first word.

    python benchmarks/reply_speed.py --model planned --weights runs/planned

A full reply is understood, planned, spoken in four candidates, chosen and guarded. Beside it one candidate is
spoken under the plan of the chosen one, and nothing else. Both answer the same talks in turn, for several
rounds; the median of the rounds' ratios counts, because machines are noisy.

`listenwell reply` is started as a shell starts it, after once that fills the cache: seconds to its first
letter and peak memory are the process's own; memory also after a talk of 50 turns. Where the seconds go: the
stages of another start, and what each package took to import (`-X importtime`, whose own work makes them a
little longer).
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, cycle, islice
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Turn
from listenwell.files import written_whole
from listenwell.results.store import environment

if TYPE_CHECKING:
    from listenwell.listener import Listener

OUT = Path(__file__).parent / "results" / "reply_speed.json"
CANDIDATES = 4
LONG = 50
"""Turns of a talk that fills the speaker's prompt."""
AIMS = {
    "times_one_candidate": 2.5,
    "peak_mb": 600,
    "peak_mb_after_a_long_talk": 600,
    "first_word_seconds": 2.5,
}
"""None of them should be more."""
PROGRAM = "from listenwell.cli import main; main()"
"""What the installed script `listenwell` does."""
IMPORTED = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\w+)")
DIALOGUES = (
    ("I finally got the job I wanted, after so many interviews that came to nothing.",),
    ("My sister forgot my birthday again this year.",),
    ("I moved to a new city last month and I still know nobody here.",),
    (
        "Our old dog died on Sunday. The flat is so quiet now.",
        "I am so sorry. How long was he with you?",
        "Fourteen years. I keep putting food into his bowl.",
    ),
    (
        "I have to give a speech at my brother's wedding and I cannot sleep.",
        "That sounds like a lot of pressure! What worries you most?",
        "That I will start to cry in the middle of it, in front of two hundred people.",
    ),
    (
        "Somebody broke the window of my car last night.",
        "Oh no! Did they take anything?",
        "Only a jacket, but now I am afraid to park in our own street.",
        "I can understand that. Have you told the police?",
        "Yes, they wrote it down and that was all. I am really angry about it.",
    ),
)
"""What people say, the last turn theirs."""


def dialogue_of(texts: Sequence[str]) -> Dialogue:
    """Texts as a dialogue in which the last turn is the other person's."""
    return Dialogue(
        tuple(
            Turn(LISTENER if place % 2 else SPEAKER, text)
            for place, text in zip(range(len(texts) - 1, -1, -1), texts, strict=True)
        )
    )


def dialogue(turns: int, first: int = 0) -> Dialogue:
    """A talk of so many turns, from one of those above on; a long one begins again."""
    return dialogue_of(list(islice(cycle(chain.from_iterable(DIALOGUES)), first, first + turns)))


def add_model(parser: argparse.ArgumentParser) -> None:
    """Which listener is measured: that of `Listener.from_pretrained` unless another is named."""
    parser.add_argument("--model", help="a generator's name")
    parser.add_argument("--weights", type=Path, help="a run, or a checkpoint that it wrote")


def settings(chosen: argparse.Namespace) -> dict[str, Any]:
    """The options of a listener: what was named, and nothing else."""
    named = {"model": chosen.model, "weights": chosen.weights}
    return {name: value for name, value in named.items() if value is not None}


def load_listener(options: dict[str, Any], **more: Any) -> "Listener":  # noqa: ANN401
    """The listener that `settings` names."""
    from listenwell.generators import DEFAULT
    from listenwell.listener import Listener

    named = {name: value for name, value in options.items() if name != "model"}
    return Listener.from_pretrained(options.get("model", DEFAULT), **named, **more)


def command(chosen: argparse.Namespace, *python: str) -> list[str]:
    """`listenwell reply` as a shell would start it, with options for Python itself."""
    options = [text for name, value in settings(chosen).items() for text in (f"--{name}", str(value))]
    arguments = ["reply", DIALOGUES[0][-1], "--seed", "1", "--candidates", str(CANDIDATES), *options]
    return [sys.executable, *python, "-c", PROGRAM, *arguments]


def compare(chosen: argparse.Namespace) -> dict[str, Any]:
    """Full replies and single candidates in turn; in a process of its own."""
    from listenwell.loading import STAGES

    options, contexts = settings(chosen), [dialogue_of(texts) for texts in DIALOGUES[: chosen.dialogues]]
    full = load_listener(options, candidates=CANDIDATES)
    alone = load_listener(options, candidates=1, without=[stage for stage in STAGES if stage != "plan"])
    for listener in (full, alone):
        listener.reply("Hello, how are you?", seed=1)  # warm up
    rows: list[list[tuple[float, float]]] = []
    stages, words = defaultdict[str, float](float), {"one": list[int](), "longest": list[int]()}
    for number in range(chosen.rounds):
        row = []
        # A generator caches the last prompt: another dialogue comes between two replies to the same.
        for context in contexts:
            begin = time.perf_counter()
            reply = full.reply(context, seed=number)
            between = time.perf_counter()
            # A whole plan is taken as it is, so that nothing is planned here.
            single = alone.reply(context, target=reply.candidates[0].plan, seed=number)
            row.append((between - begin, time.perf_counter() - between))
            for stage, seconds in reply.timings.items():
                stages[stage] += seconds
            words["one"].append(len(single.text.split()))
            words["longest"].append(max(len(candidate.text.split()) for candidate in reply.candidates))
        rows.append(row)
    whole = stages.pop("total")
    return {
        "model": full.generate.name,
        "times_one_candidate": round(median(_ratio(row) for row in rows), 2),
        "full_seconds": round(median(pair[0] for row in rows for pair in row), 4),
        "one_seconds": round(median(pair[1] for row in rows for pair in row), 4),
        "share": {stage: round(seconds / whole, 4) for stage, seconds in stages.items()},
        "words": {name: round(fmean(counts), 1) for name, counts in words.items()},
    }


def _ratio(row: Sequence[tuple[float, float]]) -> float:
    return sum(full for full, _ in row) / sum(single for _, single in row)


def stages(chosen: argparse.Namespace) -> dict[str, float]:
    """What `listenwell reply` does, one stage after the other; in a process of its own."""
    found = {"interpreter and this script": time.time() - chosen.started}

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        found[name] = time.perf_counter() - begin

    with stage("import the command line"):
        import listenwell.cli
    with stage("import the listener"):
        import listenwell.listener  # noqa: F401
    with stage("load"):
        listener = load_listener(settings(chosen), candidates=CANDIDATES)
    with stage("first reply"):
        listener.reply(DIALOGUES[0][-1], seed=1)
    return {name: round(seconds, 3) for name, seconds in found.items()}


def start(command: Sequence[str]) -> tuple[float, float]:
    """Seconds to the first letter, and the most MB; this process must be the smaller one."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout as said:
        said.read(1)
        seconds = time.perf_counter() - begin
        said.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"`listenwell reply` ended with {child.returncode}: see above.")
    return seconds, usage.ru_maxrss / 1024


def imports(chosen: argparse.Namespace, most: int = 10) -> dict[str, float]:
    """Seconds that each package took to import, what it imports itself not counted in; the longest first."""
    traced = subprocess.run(command(chosen, "-X", "importtime"), capture_output=True, text=True, check=True)
    found = Counter[str]()
    for microseconds, package in IMPORTED.findall(traced.stderr):
        found[package] += int(microseconds)
    shown = {package: round(spent / 1e6, 3) for package, spent in found.most_common(most)}
    return shown | {"all": round(found.total() / 1e6, 3)}


def apart(part: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """One part in a process of its own."""
    options = [text for name, value in settings(chosen).items() for text in (f"--{name}", str(value))]
    numbers = [
        "--rounds",
        str(chosen.rounds),
        "--dialogues",
        str(chosen.dialogues),
        "--started",
        str(time.time()),
    ]
    command = [sys.executable, __file__, "--one", part, *numbers, *options]
    figures: dict[str, Any] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return figures


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    """All figures."""
    first = start(command(chosen))
    starts = [start(command(chosen)) for _ in range(chosen.starts)]
    with tempfile.TemporaryDirectory() as folder:
        before = dialogue(LONG)
        file = Path(folder) / "dialogue.jsonl"
        file.write_text(replace(before, turns=before.turns[:-1]).to_json() + "\n", encoding="utf-8")
        _, long_peak = start([*command(chosen), "--history", str(file)])
    compared = apart("compare", chosen)
    return {
        **compared,
        "candidates": CANDIDATES,
        "dialogues": chosen.dialogues,
        "rounds": chosen.rounds,
        "first_word_seconds": round(median(seconds for seconds, _ in starts), 2),
        "peak_mb": round(max(peak for _, peak in starts), 1),
        "peak_mb_after_a_long_talk": round(long_peak, 1),
        # Slow and large only where the cache was empty.
        "start_before": {"first_word_seconds": round(first[0], 2), "peak_mb": round(first[1], 1)},
        "stages_seconds": apart("stages", chosen),
        "imports_seconds": imports(chosen),
        "aims": AIMS,
    }


def keep(result: dict[str, Any], out: Path) -> None:
    """Print a result, and write it with what it was measured on."""
    print(json.dumps(result, ensure_ascii=False, indent=1))
    about = {name: value for name, value in environment().items() if name != "command"}
    with written_whole(out) as file:
        file.write((json.dumps({**result, **about}, ensure_ascii=False, indent=1) + "\n").encode())


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_model(parser)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dialogues", type=int, default=len(DIALOGUES), help="at least two")
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--one", choices=("compare", "stages"), help=argparse.SUPPRESS)
    parser.add_argument("--started", type=float, default=0.0, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps({"compare": compare, "stages": stages}[chosen.one](chosen)))
        return
    result = measure(chosen)
    keep(result, chosen.out)
    for name, most in AIMS.items():
        print(f"{name}: {result[name]}, {'within' if result[name] <= most else 'over'} {most}")


if __name__ == "__main__":
    main()
