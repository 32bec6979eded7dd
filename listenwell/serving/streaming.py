"""Waiting for an answer with a client at the other end, and telling it piece by piece.

A reply is chosen and guarded before any of it is said, so its pieces come together at the end; until then
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
from listenwell.serving.request_queue import Line, Place

KEEP_ALIVE = b": waiting\n\n"
"""A comment of server-sent events: clients pass it over."""
_PIECE = re.compile(r"\S+\s*|\s+")


class Events(StreamingResponse):
    """Server-sent events; nothing on the way may hold them back."""

    media_type = "text/event-stream"

    def __init__(self, content: AsyncIterator[bytes]) -> None:
        super().__init__(content, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


def sent_event(data: Any, name: str | None = None) -> bytes:  # noqa: ANN401
    """One event; JSON has no line breaks, so no text can end it or begin another."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {dumps(finite(data))}\n\n".encode()


def pieces(text: str) -> list[str]:
    """A text word by word; joined, they are the text."""
    return _PIECE.findall(text)


async def gone(request: Request) -> None:
    """Return when the client has gone away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def answered(request: Request, line: Line, place: Place) -> None:
    """Wait for a result; a client that goes away gives its place back, and is refused with 499."""
    leaving = asyncio.ensure_future(gone(request))
    try:
        await asyncio.wait({leaving, place.result}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        line.leave(place)
    if not place.result.done() or place.result.cancelled():
        raise ApiError(GONE, "gone", "The client went away.")


async def until_answered(line: Line, place: Place, heartbeat: float) -> AsyncIterator[int]:
    """How many are ahead, again and again, until there is a result; if nobody listens, the place is free."""
    try:
        while not place.result.done():
            await asyncio.wait({place.result}, timeout=heartbeat)
            if not place.result.done():
                yield line.ahead(place)
    finally:
        line.leave(place)
