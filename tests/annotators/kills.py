"""Kill `listenwell annotate` at every step that changes the disk, and see that no line is lost or doubled.

Usage: python -m tests.annotators.kills FOLDER; FOLDER is empty. Prints how many steps it was killed at.
"""

import os
import signal
import sys
from pathlib import Path

from listenwell.annotators import stream
from listenwell.cli import app
from listenwell.errors import InputError
from tests.annotators.fake import install

OLD = b"old\n"


def run(arguments, kill_at):
    """Run the command in a child that kills itself at a step; returns whether it did."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            kill_at_step(kill_at)
            app(arguments, standalone_mode=False)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, arguments
    return os.WIFSIGNALED(status)


def kill_at_step(wanted):
    """Count writes and moves; at the wanted one do half of a write, or nothing, and die."""
    left = [wanted]

    def counted(real, half):
        def step(*arguments, **options):
            left[0] -= 1
            if left[0] == 0:
                half(real, *arguments)
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        return step

    def nothing(real, *arguments):
        pass

    os.write = counted(os.write, lambda real, out, line: real(out, line[: len(line) // 2]))
    Path.write_text = counted(Path.write_text, lambda real, file, text: real(file, text[: len(text) // 2]))
    os.fsync = counted(os.fsync, nothing)
    Path.replace = counted(Path.replace, nothing)
    Path.unlink = counted(Path.unlink, nothing)


def main(folder):
    install()
    stream.WINDOW = 4
    given, whole = folder / "in.txt", folder / "whole.jsonl"
    given.write_text("".join(f"I am number {number}.\n" for number in range(11)))
    sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    app(["annotate", str(given), "--out", str(whole)], standalone_mode=False)
    expected = whole.read_bytes()
    steps = 1
    while run(["annotate", str(given), "--out", str(out := folder / f"{steps}.jsonl")], steps):
        # Killed again in two of the repeats, early and late, then left alone.
        for kill_at in (2, 6, 0):
            if not out.exists():
                run(["annotate", str(given), "--out", str(out)], kill_at)
            assert not out.exists() or out.read_bytes() == expected, steps
        assert out.exists(), steps
        replaced(folder / f"{steps}-old.jsonl", given, steps, expected)
        finished(out, given)
        steps += 1
    assert not [path for path in folder.iterdir() if ".part" in path.name]
    print(steps - 1)


def replaced(out, given, steps, expected):
    """The same with a file in the way: it stays whole until the new one is."""
    out.write_bytes(OLD)
    command = ["annotate", str(given), "--out", str(out), "--overwrite"]
    assert run(command, steps)
    assert out.read_bytes() in (OLD, expected), steps
    assert not run(command, 0)
    assert out.read_bytes() == expected, steps


def finished(out, given):
    """Once more is refused, and what a kill after the last move left is tidied up."""
    try:
        app(["annotate", str(given), "--out", str(out)], standalone_mode=False)
    except InputError as error:
        assert "finished" in str(error)
    else:
        raise AssertionError("a finished file was written again")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
