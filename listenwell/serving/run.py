"""Runs the server: socket, graceful shutdown, a first exchange, the browser."""

import asyncio
import socket
import webbrowser
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from fastapi import FastAPI

from listenwell.dialogue import SPEAKER, Dialogue, Turn
from listenwell.errors import InputError, ListenwellError
from listenwell.serving.logs import log_failure
from listenwell.serving.service import Service, finished
from listenwell.serving.settings import Settings

FIRST_WORDS = "I finally got promoted today!"
GRACE = 60
"""Seconds for requests in progress to finish after SIGTERM."""
Say = Callable[[str], None]


def serve(app: FastAPI, settings: Settings, say: Say, open_browser: bool = False) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish the requests in progress.

    Args:
        app: of `make_app`.
        settings: those of the app.
        say: prints a line.
        open_browser: open the page in a browser, if there is one.
    """
    sock = bind(settings.host, settings.port)
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,  # ours holds no user data
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=30,
    )
    server = Server(config, app.state.service, address(settings.host, sock), say, open_browser)
    try:
        server.run(sockets=[sock])
    finally:
        sock.close()
    if server.failure:
        raise server.failure


class Server(uvicorn.Server):
    """Prints the address at once, and a first exchange when the model is ready."""

    def __init__(
        self, config: uvicorn.Config, service: Service, url: str, say: Say, open_browser: bool
    ) -> None:
        super().__init__(config)
        self._service, self._url, self._say, self._open_browser = service, url, say, open_browser
        self.failure: ListenwellError | None = None
        """The error of loading the first model; it ends the server."""
        self._greeting: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting requests."""
        await super().startup(sockets)
        if self.started:
            self._say(f"listenwell is at {self._url} (Ctrl-C stops it). Loading the model …")
            self._greeting = asyncio.create_task(self._greet())

    async def _greet(self) -> None:
        try:
            await asyncio.wrap_future(self._service.models.start())
            ticket = self._service.ask(None, Dialogue((Turn(SPEAKER, FIRST_WORDS),)))
            await ticket.result
            self._say(f"you › {FIRST_WORDS}\nlistener › {finished(ticket).text}")
        except ListenwellError as error:
            self.failure, self.should_exit = error, True
            return
        except Exception as error:
            log_failure("the first exchange", error)
        if self._open_browser:
            with suppress(webbrowser.Error):
                await asyncio.to_thread(webbrowser.open, self._url)


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; an address that is not available is an error."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        raise InputError(
            f"Cannot listen on {host} port {port}: {error.strerror or error}.",
            "Another program may use it: choose another with --port, or 0 for any free one.",
        ) from None


def address(host: str, sock: socket.socket) -> str:
    """The URL for a browser on this computer."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{sock.getsockname()[1]}"
