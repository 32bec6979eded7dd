"""The request queue in front of the model: bounded, first in first out, with batches of requests of one kind.

Everything but the work itself runs in the event loop, so nothing needs a lock. One thread does the work,
because one model uses all cores.
"""

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from listenwell.serving.api_errors import ApiError

Work = Callable[[Hashable, Sequence[Any], int], Sequence[Any]]
"""(kind, requests, load) -> a result or an exception for each request; the load includes waiting ones."""
_LONGEST_RETRY = 120.0


@dataclass(eq=False)
class Ticket:
    """A request in the queue."""

    kind: Hashable
    """Requests of one kind are processed as a batch."""
    request: Any
    result: "asyncio.Future[Any]"
    since: float = field(default_factory=time.monotonic)
    waited: float = 0.0
    """Seconds in the queue; set when the work on it starts."""
    watchers: int = 1
    """How many clients wait for the result."""


class RequestQueue:
    """Requests that wait for the model.

    Args:
        work: processes several requests of one kind.
        capacity: how many requests may wait.
        batch_size: the largest batch.
        batch_window: seconds to wait for further requests while a batch is not full.
    """

    def __init__(self, work: Work, capacity: int, batch_size: int, batch_window: float = 0.0) -> None:
        self._work, self.capacity = work, capacity
        self._batch_size, self._batch_window = batch_size, batch_window
        self._waiting: list[Ticket] = []
        self._running: list[Ticket] = []
        self._has_arrivals = asyncio.Event()
        self._arrivals = 0
        self._seconds = 1.0
        """Moving average of the duration of a batch."""
        self._is_closing = False
        self._thread = ThreadPoolExecutor(1, "model")
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Start processing."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Process what is running and waiting, then stop."""
        self._is_closing = True
        self._has_arrivals.set()
        if self._task:
            await self._task
        self._thread.shutdown()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """How many requests are being processed."""
        return len(self._running)

    def enter(self, kind: Hashable, request: Any) -> Ticket:  # noqa: ANN401
        """Queue a request; 503 if the queue is full."""
        if len(self._waiting) >= self.capacity:
            batches = 1 + len(self._waiting) / self._batch_size
            wait = min(_LONGEST_RETRY, batches * self._seconds)
            raise ApiError(503, "queue_full", "Too many requests are waiting. Try again in a moment.", wait)
        ticket = Ticket(kind, request, asyncio.get_running_loop().create_future())
        self._waiting.append(ticket)
        self._arrivals += 1
        self._has_arrivals.set()
        return ticket

    def leave(self, ticket: Ticket) -> bool:
        """Withdraw a request; False if it is being processed already or another client waits for it too."""
        ticket.watchers -= 1
        if ticket.watchers > 0 or ticket not in self._waiting:
            return False
        self._waiting.remove(ticket)
        ticket.result.cancel()
        return True

    def ahead(self, ticket: Ticket) -> int:
        """How many requests are ahead of a ticket; 0 while it is being processed."""
        return self._waiting.index(ticket) if ticket in self._waiting else 0

    async def _run(self) -> None:
        while True:
            await self._has_arrivals.wait()
            await self._wait_for_batch()
            batch = self._take()
            if batch:
                await self._process(batch)
            elif self._is_closing:
                return
            else:
                self._has_arrivals.clear()

    async def _wait_for_batch(self) -> None:
        """Wait while requests keep arriving, for at most four batch windows."""
        end = time.monotonic() + 4 * self._batch_window
        while 0 < len(self._waiting) < self._batch_size and not self._is_closing and time.monotonic() < end:
            before = self._arrivals
            await asyncio.sleep(self._batch_window)
            if self._arrivals == before:
                return

    def _take(self) -> list[Ticket]:
        """The first request and others of its kind."""
        if not self._waiting:
            return []
        kind = self._waiting[0].kind
        taken = [ticket for ticket in self._waiting if ticket.kind == kind][: self._batch_size]
        self._waiting = [ticket for ticket in self._waiting if ticket not in taken]
        return taken

    async def _process(self, batch: list[Ticket]) -> None:
        self._running = batch
        started = time.monotonic()
        for ticket in batch:
            ticket.waited = started - ticket.since
        loop = asyncio.get_running_loop()
        requests, load = [ticket.request for ticket in batch], len(batch) + len(self._waiting)
        try:
            results = await loop.run_in_executor(self._thread, self._work, batch[0].kind, requests, load)
        except Exception as error:
            results = [error] * len(batch)
        self._seconds = 0.7 * self._seconds + 0.3 * (time.monotonic() - started)
        self._running = []
        for ticket, result in zip(batch, results, strict=True):
            if ticket.result.done():  # the client disconnected
                continue
            if isinstance(result, Exception):
                ticket.result.set_exception(result)
                ticket.result.exception()  # retrieved, so that asyncio does not log it
            else:
                ticket.result.set_result(result)
