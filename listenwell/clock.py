"""How long the stages of a reply take."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Seconds spent in each stage."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        """Add the time of a block to a stage."""
        begin = time.perf_counter()
        yield
        self._seconds[stage] = self._seconds.get(stage, 0.0) + time.perf_counter() - begin

    def timings(self) -> dict[str, float]:
        """Seconds of each stage, and of all together."""
        rounded = {stage: round(seconds, 4) for stage, seconds in self._seconds.items()}
        return rounded | {"total": round(sum(self._seconds.values()), 4)}
