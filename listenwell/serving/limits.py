"""Middleware that limits the size and the rate of requests."""

import asyncio
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from listenwell.serving.api_errors import GONE, ApiError

MOST_CLIENTS = 10_000
"""Number of clients tracked; the least recently seen is dropped first."""
UNLIMITED = ("/api/health", "/static/")


class LimitBody:
    """Reads the whole body first; responds with 413 or 408 to one that is too large or too slow.

    Args:
        app: the application.
        most: bytes.
        seconds: timeout for the body.
    """

    def __init__(self, app: ASGIApp, most: int, seconds: float) -> None:
        self._app, self._most, self._seconds = app, most, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its whole body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check_length(scope)
            async with asyncio.timeout(self._seconds):
                body = await self._read(receive)
        except TimeoutError:
            await ApiError(408, "too_slow", "Receiving the request timed out.").response()(
                scope, receive, send
            )
            return
        except ApiError as api_error:
            await api_error.response()(scope, receive, send)
            return
        was_read = False

        async def replayed() -> Message:
            nonlocal was_read
            if was_read:
                return await receive()
            was_read = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replayed, send)

    def _check_length(self, scope: Scope) -> None:
        """Reject a large body by its Content-Length, before it is sent."""
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value[:20]) > self._most:
                raise self._too_large()

    async def _read(self, receive: Receive) -> bytes:
        parts, size = list[bytes](), 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ApiError(GONE, "gone", "The client disconnected.")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._most:
                raise self._too_large()
            if not message.get("more_body"):
                return b"".join(parts)

    def _too_large(self) -> ApiError:
        return ApiError(413, "too_large", f"The request is larger than {self._most:,} bytes. Send less.")


class LimitRate:
    """A token bucket per client; responds with 429 when it is empty.

    Args:
        app: the application.
        a_minute: requests per minute, and the size of the bucket; 0 for no limit.
        clock: monotonic seconds.
    """

    def __init__(self, app: ASGIApp, a_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._app, self._most, self._clock = app, a_minute, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or respond with 429."""
        if scope["type"] == "http" and self._most and not scope["path"].startswith(UNLIMITED):
            missing = self.take(client_of(scope))
            if missing:
                api_error = ApiError(429, "too_many_requests", "Too many requests. Wait a little.", missing)
                await api_error.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def take(self, client: str) -> float:
        """0 if the client may continue, otherwise the seconds until it may."""
        now, refill = self._clock(), self._most / 60
        left, since = self._buckets.pop(client, (float(self._most), now))
        left = min(float(self._most), left + (now - since) * refill)
        is_allowed = left >= 1
        self._buckets[client] = (left - 1 if is_allowed else left, now)
        if len(self._buckets) > MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if is_allowed else (1 - left) / refill


def client_of(scope: Scope) -> str:
    """The client that a request counts for: an address, or the /64 network of an IPv6 address."""
    client = scope.get("client")
    address = str(client[0]) if client else ""
    try:
        is_wide = ipaddress.ip_address(address).version == 6
    except ValueError:
        return address
    return str(ipaddress.ip_network(f"{address.partition('%')[0]}/64", strict=False)) if is_wide else address
