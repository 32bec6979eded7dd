"""The line before the model: bounded, in order, and in batches of those who ask for the same.

All but the work itself happens in the event loop, so that nothing needs a lock; the work is done by one
thread, since one model uses all cores.
"""

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from listenwell.serving.api_errors import ApiError

Work = Callable[[Hashable, Sequence[Any], int], Sequence[Any]]
"""(what is asked for, the requests, how many want something) to a result or an exception for each."""
_LONGEST_RETRY = 120.0


@dataclass(eq=False)
class Place:
    """Somebody in the line."""

    kind: Hashable
    """Requests of one kind are answered together."""
    request: Any
    result: "asyncio.Future[Any]"
    since: float = field(default_factory=time.monotonic)
    waited: float = 0.0
    """Seconds in the line, once the work has begun."""
    watchers: int = 1
    """How many wait for the result."""


class Line:
    """Requests that wait for the model.

    Args:
        work: answers several requests of one kind.
        room: how many may wait.
        batch: how many are answered together.
        gather: seconds to wait for others before a batch that is not full.
    """

    def __init__(self, work: Work, room: int, batch: int, gather: float = 0.0) -> None:
        self._work, self.room, self._batch, self._gather = work, room, batch, gather
        self._waiting: list[Place] = []
        self._running: list[Place] = []
        self._came = asyncio.Event()
        self._arrivals = 0
        self._seconds = 1.0
        """Of a batch, a moving mean."""
        self._is_closing = False
        self._thread = ThreadPoolExecutor(1, "model")
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin to work."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Finish what is running and waiting, then stop."""
        self._is_closing = True
        self._came.set()
        if self._task:
            await self._task
        self._thread.shutdown()

    @property
    def waiting(self) -> int:
        """How many stand in the line."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """How many are being answered."""
        return len(self._running)

    def enter(self, kind: Hashable, request: Any) -> Place:  # noqa: ANN401
        """Take a place; a full line refuses with 503."""
        if len(self._waiting) >= self.room:
            raise ApiError(
                503,
                "queue_full",
                "Too many people are waiting just now. Try again soon.",
                self._retry_after(),
            )
        place = Place(kind, request, asyncio.get_running_loop().create_future())
        self._waiting.append(place)
        self._arrivals += 1
        self._came.set()
        return place

    def leave(self, place: Place) -> bool:
        """Give a place back; False where the work on it has begun, or somebody else waits for it too."""
        place.watchers -= 1
        if place.watchers > 0 or place not in self._waiting:
            return False
        self._waiting.remove(place)
        place.result.cancel()
        return True

    def ahead(self, place: Place) -> int:
        """How many are before a place; 0 for one that is being answered."""
        return self._waiting.index(place) if place in self._waiting else 0

    def _retry_after(self) -> float:
        batches = 1 + len(self._waiting) / self._batch
        return min(_LONGEST_RETRY, batches * self._seconds)

    async def _run(self) -> None:
        while True:
            await self._came.wait()
            await self._gathered()
            batch = self._take()
            if batch:
                await self._answer(batch)
            elif self._is_closing:
                return
            else:
                self._came.clear()

    async def _gathered(self) -> None:
        """Wait while others keep coming, for a moment: those who come together are answered together."""
        end = time.monotonic() + 4 * self._gather
        while 0 < len(self._waiting) < self._batch and not self._is_closing and time.monotonic() < end:
            before = self._arrivals
            await asyncio.sleep(self._gather)
            if self._arrivals == before:
                return

    def _take(self) -> list[Place]:
        """The first in the line, and others of its kind."""
        if not self._waiting:
            return []
        kind = self._waiting[0].kind
        taken = [place for place in self._waiting if place.kind == kind][: self._batch]
        self._waiting = [place for place in self._waiting if place not in taken]
        return taken

    async def _answer(self, batch: list[Place]) -> None:
        self._running = batch
        begin = time.monotonic()
        for place in batch:
            place.waited = begin - place.since
        loop = asyncio.get_running_loop()
        requests, load = [place.request for place in batch], len(batch) + len(self._waiting)
        try:
            found = await loop.run_in_executor(self._thread, self._work, batch[0].kind, requests, load)
        except Exception as error:
            found = [error] * len(batch)
        self._seconds = 0.7 * self._seconds + 0.3 * (time.monotonic() - begin)
        self._running = []
        for place, result in zip(batch, found, strict=True):
            if place.result.done():  # its client went away
                continue
            if isinstance(result, Exception):
                place.result.set_exception(result)
                place.result.exception()  # nobody may be there to hear it
            else:
                place.result.set_result(result)
