"""A service with a fake listener as a process of its own, for tests that end it from outside."""

import multiprocessing
import os
import time
from contextlib import contextmanager
from pathlib import Path

from listenwell.serving.run import serve
from tests.serving.fake import FakeListener, fake_app, fake_settings

# What is slow about a new process is what it imports: that is done once, in one that is copied for each.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__])


def main(lines, errors, store, seconds, load_seconds):
    """Serve; what is shown to people goes into a pipe, errors into a file."""
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)

    def load(name):
        time.sleep(load_seconds)
        return FakeListener(seconds=seconds)

    settings = fake_settings(store=store, limits={"batch": 1})
    serve(fake_app(settings, factory=load), settings, lines.send)


class Program:
    """A running service."""

    def __init__(self, folder: Path, store: str, seconds: float = 0.0, load_seconds: float = 0.0) -> None:
        self.errors = folder / "stderr.txt"
        self._lines, end = FORKS.Pipe(duplex=False)
        arguments = (end, str(self.errors), store, seconds, load_seconds)
        self.process = FORKS.Process(target=main, args=arguments)
        self.process.start()
        end.close()

    def line(self):
        """The next thing it shows."""
        assert self._lines.poll(20), self.errors.read_text()
        return self._lines.recv()


@contextmanager
def program(*arguments, **settings):
    """The service as a process; yields it and its address."""
    found = Program(*arguments, **settings)
    try:
        yield found, found.line().split()[3]
    finally:
        found.process.kill()
        found.process.join()
