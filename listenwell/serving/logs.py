"""Logs that hold no word of a user: methods, routes, statuses and times, and where an error was raised."""

import logging
import time
import traceback

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from listenwell.serving.api_errors import GONE, api_error_of

FRAMES = 10
"""How far back an error's way is written."""
LOGGER = logging.getLogger("listenwell.serving")


def set_up(level: int = logging.INFO) -> None:
    """Write the service's log to standard error."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    LOGGER.setLevel(level)


def log_failure(doing: str, error: BaseException) -> None:
    """An error by its kind and its way through the code; its message may quote what a user wrote."""
    way = " < ".join(
        f"{frame.name} ({frame.filename.rpartition('/')[2]}:{frame.lineno})"
        for frame in reversed(traceback.extract_tb(error.__traceback__)[-FRAMES:])
    )
    LOGGER.error("%s failed: %s in %s", doing, type(error).__name__, way or "no frame")


class LogRequests:
    """One line a request, and an answer to every error that nobody expected."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status = time.monotonic(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception as error:
            log_failure(_named(scope), error)
            if not status:
                await api_error_of(error).response()(scope, receive, noted)
        finally:
            # What a client asks for can be anything: only the routes that we named ourselves are written.
            LOGGER.info("%s %s %.0f ms", _named(scope), status or GONE, 1000 * (time.monotonic() - begin))


def _named(scope: Scope) -> str:
    path = getattr(scope.get("route"), "path", "(no route)")
    method = scope["method"] if scope["method"] in _METHODS else "(no method)"
    return f"{method} {path}"


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
