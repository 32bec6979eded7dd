"""Server-sent events, and waiting for a result while the client may disconnect.

A reply is reranked and guarded before any of it is sent, so all text events come at the end; until then
comments keep the connection alive.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse

from listenwell.serialization import dumps
from listenwell.serving.api_errors import GONE, ApiError, finite
from listenwell.serving.request_queue import RequestQueue, Ticket

KEEP_ALIVE = b": waiting\n\n"
"""A comment of server-sent events; clients ignore it."""
_PIECE = re.compile(r"\S+\s*|\s+")


class Events(StreamingResponse):
    """A stream of server-sent events that proxies do not buffer."""

    media_type = "text/event-stream"

    def __init__(self, content: AsyncIterator[bytes]) -> None:
        super().__init__(content, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


def sent_event(data: Any, name: str | None = None) -> bytes:  # noqa: ANN401
    """One event; its JSON holds no line breaks, so no text can forge another event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {dumps(finite(data))}\n\n".encode()


def chunks(text: str) -> list[str]:
    """Split a text into words with their blanks; joined, they are the text."""
    return _PIECE.findall(text)


async def disconnected(request: Request) -> None:
    """Return when the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def answered(request: Request, queue: RequestQueue, ticket: Ticket) -> None:
    """Wait for a result; if the client disconnects, its ticket is withdrawn (499)."""
    leaving = asyncio.ensure_future(disconnected(request))
    try:
        await asyncio.wait({leaving, ticket.result}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        queue.leave(ticket)
    if not ticket.result.done() or ticket.result.cancelled():
        raise ApiError(GONE, "gone", "The client disconnected.")


async def until_answered(queue: RequestQueue, ticket: Ticket, heartbeat: float) -> AsyncIterator[int]:
    """Yield the number of requests ahead with every heartbeat, until there is a result or it is closed."""
    try:
        while not ticket.result.done():
            await asyncio.wait({ticket.result}, timeout=heartbeat)
            if not ticket.result.done():
                yield queue.ahead(ticket)
    finally:
        queue.leave(ticket)
