"""Logs without user data: methods, routes, statuses, durations, and where an error was raised."""

import logging
import time
import traceback

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from listenwell.serving.api_errors import GONE, api_error_of

FRAMES = 10
"""Number of stack frames logged for an error."""
LOGGER = logging.getLogger("listenwell.serving")


def set_up(level: int = logging.INFO) -> None:
    """Log to standard error."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    LOGGER.setLevel(level)


def log_failure(doing: str, error: BaseException) -> None:
    """Log an error's type and stack, but not its message: that may quote a user."""
    stack = " < ".join(
        f"{frame.name} ({frame.filename.rpartition('/')[2]}:{frame.lineno})"
        for frame in reversed(traceback.extract_tb(error.__traceback__)[-FRAMES:])
    )
    LOGGER.error("%s failed: %s in %s", doing, type(error).__name__, stack or "no frame")


class LogRequests:
    """Logs one line per request and responds to unexpected errors."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.monotonic(), 0

        async def recorded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, recorded)
        except Exception as error:
            log_failure(_named(scope), error)
            if not status:
                await api_error_of(error).response()(scope, receive, recorded)
        finally:
            # A path may hold anything a client sends: only the names of our own routes are logged.
            LOGGER.info("%s %s %.0f ms", _named(scope), status or GONE, 1000 * (time.monotonic() - started))


def _named(scope: Scope) -> str:
    path = getattr(scope.get("route"), "path", "(no route)")
    method = scope["method"] if scope["method"] in _METHODS else "(no method)"
    return f"{method} {path}"


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
