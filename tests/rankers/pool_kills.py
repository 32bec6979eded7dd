"""Kill the making of a pool's index at every write, and see that it goes on and nothing is wrong in the end.

Usage: python -m tests.rankers.pool_kills FOLDER; FOLDER is empty. Prints how many steps it was killed at.
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np

from listenwell.retrieval.index import open_index
from listenwell.retrieval.pool import find_pool
from tests.rankers.pool_fake import FakeSelector, vector

TEXTS = [f"Reply {number}." for number in range(10)]


def kill_at_step(wanted):
    """Count writes, syncs and moves; at the wanted one do half of a write, or nothing, and die."""
    left = [wanted]

    def counted(real, half):
        def step(*arguments):
            left[0] -= 1
            if left[0] == 0:
                half(real, *arguments)
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments)

        return step

    os.write = counted(os.write, lambda real, out, data: real(out, data[: len(data) // 2]))
    os.fsync = counted(os.fsync, lambda real, *arguments: None)
    Path.replace = counted(Path.replace, lambda real, *arguments: None)


def run(pool, kill_at):
    """Make the index in a child that kills itself at a step; returns whether it did."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            kill_at_step(kill_at)
            open_index(FakeSelector(), pool, 4)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def main(folder):
    file = folder / "pool.txt"
    file.write_text("\n".join(TEXTS))
    pool = find_pool(str(file))
    steps = 1
    while True:
        os.environ["LISTENWELL_CACHE"] = str(folder / f"cache {steps}")
        if not run(pool, steps):
            break
        run(pool, 2)  # killed once more
        index = open_index(FakeSelector(), pool, 4)
        assert list(index.replies) == TEXTS, steps
        np.testing.assert_allclose(index.vectors, [vector(text) for text in TEXTS], atol=1e-3)
        quiet = FakeSelector()
        open_index(quiet, pool, 4)
        assert quiet.encoded == [], steps
        steps += 1
    print(steps - 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
