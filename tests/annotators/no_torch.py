"""Programs that run where torch is not: whoever imports it, or what stands on it, fails."""

import subprocess
import sys
from pathlib import Path

HOOK = """
import sys

class Refuses:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers", "peft", "accelerate"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuses())
"""


def run_without_torch(program, *arguments):
    """What a program prints; its last lines of error, if it fails, are the assertion's."""
    done = subprocess.run(
        [sys.executable, "-c", HOOK + program, *map(str, arguments)],
        check=False,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
