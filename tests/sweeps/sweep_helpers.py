"""A sweep of the fastText topic classifier, and runs that end at once with a result made up for tests."""

import json
import sys
from pathlib import Path

from listenwell.results.store import Result, write_result
from listenwell.sweeps.grid import Job

ROOT = Path(__file__).parents[2]
POSTS = ROOT / "tests" / "data" / "newsgroups"

SWEEP = """
name: sizes
about: fewer numbers a word
recipe: base.yaml
seeds: [1, 2]
runs:
  "4 numbers": {bag: {dimensions: 4}, optimizer: {learning_rate: 1e-1}}
  "8 numbers":
"""


def write_sweep(folder, text=SWEEP):
    folder.mkdir(parents=True, exist_ok=True)
    base = (ROOT / "recipes" / "fasttext_topic.yaml").read_text()
    (folder / "base.yaml").write_text(
        base.replace("corpus: newsgroups", f"corpus: newsgroups\n  path: {POSTS}")
    )
    (folder / "sweep.yaml").write_text(text)
    return folder / "sweep.yaml"


def made_up(seed, accuracy, **changes):
    values = {
        "task": "topic",
        "system": "a run",
        "metrics": (("accuracy", accuracy), ("nll", 3.0)),
        "corpus": "newsgroups",
        "split": "test",
        "count": 3,
        "data": "d" * 64,
        "units": (("accuracy", "percent"),),
        "conditions": (("model", "bag"), ("seed", str(seed)), ("steps", str(100 * seed))),
        "seed": seed,
        "checkpoint": str(seed) * 64,
        "command": "python -m listenwell.training x.yaml",
        "versions": (("torch", "2.0"),),
        "commit": "abc",
        "machine": "a GPU",
        "time": f"2026-01-0{seed}T00:00:00Z",
    }
    return Result(**(values | changes))


def finish(run, accuracy, **changes):
    write_result(made_up(run.seed, accuracy, **changes), run.result)


def quick_job(program):
    """What stands for a run's training: a program that gets its folder and a result as arguments."""

    def job(self):
        self.recipe.output.mkdir(parents=True, exist_ok=True)
        result = json.dumps(made_up(self.seed, 10.0 * self.seed).to_dict())
        command = (sys.executable, "-c", program, str(self.recipe.output), result)
        return Job(command, self.recipe.output.with_name(f"{self.recipe.output.name}.log"))

    return job


SUCCEEDS = "import sys, pathlib; pathlib.Path(sys.argv[1], 'result.json').write_text(sys.argv[2])"
FAILS_ON_FOUR = (
    f"import sys; sys.exit('no room \\x1b[2J here') if '4-numbers' in sys.argv[1] else None; {SUCCEEDS}"
)
