"""The service as one ASGI application."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.middleware.cors import CORSMiddleware

from listenwell.listener import Listener
from listenwell.serving.api_errors import Json, add_handlers
from listenwell.serving.conversations_api import conversation_routes
from listenwell.serving.docs_page import docs_page
from listenwell.serving.limits import LimitBody, LimitRate
from listenwell.serving.logs import LogRequests
from listenwell.serving.openai_api import openai_routes
from listenwell.serving.own_api import own_routes
from listenwell.serving.security import (
    VISITOR_HEADER,
    AuthMiddleware,
    SecureHeaders,
    new_visitor,
    remember,
    visitor_of,
)
from listenwell.serving.service import Service, shipped_annotator, shipped_ranker
from listenwell.serving.settings import NOTICE, Settings
from listenwell.version import __version__

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator
    from listenwell.rankers.ranker import Ranker

STATIC = Path(__file__).parent / "static"
DESCRIPTION = (
    f"{NOTICE} Send a message to /api/reply, or use any client of OpenAI's chat completions with this "
    "address and /v1. If an API key is set, send Authorization: Bearer KEY. Every error has the form "
    '{"error": {"message", "type", "param", "code"}}; 429 and 503 carry Retry-After.'
)
NO_PAGE = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>listenwell</title>"
    "<h1>listenwell is running</h1><p>The page is not installed. "
    "<a href=/docs>The API</a> is here.</p></html>"
)


def make_app(
    settings: Settings,
    listener_factory: Callable[[str], Listener],
    annotator_factory: "Callable[[], Annotator]" = shipped_annotator,
    ranker_factory: "Callable[[], Ranker]" = shipped_ranker,
    static: Path = STATIC,
) -> FastAPI:
    """The application; its `state.service` is the running service.

    Args:
        settings: of the service.
        listener_factory: a listener by its name; called once for each, in the background.
        annotator_factory: reads dialogues for /api/annotate; called when first needed.
        ranker_factory: ranks replies for /api/rank; called when first needed.
        static: the page's files; `index.html` is the page, the others are under /static/.
    """
    service = Service(settings, listener_factory, annotator_factory, ranker_factory)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        await service.open()
        yield
        await service.close()

    app = FastAPI(
        title="listenwell",
        version=__version__,
        description=DESCRIPTION,
        lifespan=running,
        docs_url=None,  # FastAPI's own pages load scripts from elsewhere
        redoc_url=None,
        default_response_class=Json,
    )
    app.state.service = service
    add_handlers(app)
    app.include_router(openai_routes(service))
    app.include_router(own_routes(service))
    app.include_router(conversation_routes(service))
    _add_pages(app, static, is_stored=settings.store is not None)
    _add_layers(app, settings)
    return app


def _add_pages(app: FastAPI, static: Path, is_stored: bool) -> None:
    @app.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        file = static / "index.html"
        if not file.is_file():
            return HTMLResponse(NO_PAGE)
        response = FileResponse(file, headers={"Cache-Control": "no-cache"})
        if is_stored and visitor_of(request) is None:
            # Set before the first message, so that a lost response does not lose the visitor.
            remember(response, new_visitor(), request.url.scheme == "https")
        return response

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(docs_page(app.openapi()))

    app.mount("/static", _Files(directory=static, check_dir=False))


class _Files(StaticFiles):
    """Static files that browsers revalidate, so that a new version is used at once."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers["Cache-Control"] = "no-cache"
        return response


def _add_layers(app: FastAPI, settings: Settings) -> None:
    """Add the middleware from the innermost to the outermost."""
    limits = settings.limits
    app.add_middleware(LimitBody, most=limits.body_bytes, seconds=limits.body_seconds)
    app.add_middleware(AuthMiddleware, api_key=settings.api_key, hosts=settings.hosts)
    app.add_middleware(LimitRate, a_minute=limits.requests_a_minute)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.origins,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key", VISITOR_HEADER],
            expose_headers=["Retry-After", VISITOR_HEADER],
        )
    app.add_middleware(LogRequests)
    app.add_middleware(SecureHeaders)
