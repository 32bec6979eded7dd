"""`/api`: listenwell's own endpoints, with all fields of a `Reply`."""

from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from listenwell.dialogue import Dialogue
from listenwell.labels import ACTS, EMOTIONS, EXPRESSED_EMOTIONS, MECHANISMS
from listenwell.serving import schemas
from listenwell.serving.api_errors import Json, api_error_of
from listenwell.serving.models import Models
from listenwell.serving.request_queue import Ticket
from listenwell.serving.service import Service, finished
from listenwell.serving.settings import NOTICE, Settings, is_loopback
from listenwell.serving.streaming import Events, answered, chunks, sent_event, until_answered
from listenwell.version import __version__

STREAMED: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/event-stream": {}},
        "description": (
            "The reply. With stream: events `waiting` (requests ahead), `text` (a part of the reply), "
            "`reply` (the whole response, as without stream), or `error`."
        ),
    }
}


def own_routes(service: Service) -> APIRouter:
    """The endpoints that store nothing."""
    router = APIRouter(prefix="/api", tags=["listenwell"], responses=schemas.errors())

    statuses = schemas.errors(404, 502, 503) | STREAMED

    @router.post("/reply", response_model=schemas.ReplyOut, responses=statuses)
    async def reply(request: Request, body: schemas.ReplyIn) -> Response:
        """Reply to a message, with emotion, plan and candidates; nothing is stored."""
        ticket = service.ask(body.model, body.dialogue(), body.target_factors(), body.seed, body.candidates)
        if body.stream:
            return Events(_reply_events(service, ticket))
        await answered(request, service.queue, ticket)
        return Json(finished(ticket).to_dict())

    @router.post("/annotate", response_model=schemas.AnnotateOut, responses=schemas.errors(503))
    async def annotate(request: Request, body: schemas.AnnotateIn) -> Response:
        """Predict the emotion and the factors of every turn, with calibrated probabilities."""
        ticket = service.ask_readings(body.dialogue(), body.top)
        await answered(request, service.queue, ticket)
        dialogue: Dialogue = ticket.result.result()
        return Json({"turns": [turn.to_dict() for turn in dialogue.turns]})

    @router.post("/rank", response_model=schemas.RankOut, responses=schemas.errors(503))
    async def rank(request: Request, body: schemas.RankIn) -> Response:
        """Rank replies, the best first."""
        ticket = service.ask_ranks(body.dialogue(), body.replies)
        await answered(request, service.queue, ticket)
        name, scores = ticket.result.result()
        order = sorted(range(len(scores)), key=lambda index: -scores[index])
        ranked = [
            {"text": body.replies[index], "score": scores[index], "index": index, "place": index}
            for index in order
        ]
        return Json({"ranker": name, "replies": ranked})

    @router.get("/health", response_model=schemas.HealthOut)
    async def health() -> Response:
        """Whether the model is ready, and the length of the queue."""
        return Json(_health(service))

    @router.get("/about", response_model=schemas.AboutOut)
    async def about() -> Response:
        """What this service is, what it stores, and which targets it accepts."""
        return Json(_about(service.settings, service.models))

    return router


async def _reply_events(service: Service, ticket: Ticket) -> AsyncIterator[bytes]:
    async for event in waiting_events(service, ticket):
        yield event
    try:
        reply = finished(ticket)
    except Exception as error:  # the status line was sent already
        yield sent_event(api_error_of(error).content(), "error")
        return
    for chunk in chunks(reply.text):
        yield sent_event({"text": chunk}, "text")
    yield sent_event(reply.to_dict(), "reply")


async def waiting_events(service: Service, ticket: Ticket) -> AsyncIterator[bytes]:
    """How many requests are ahead: at once, and with every heartbeat until there is a result."""
    yield sent_event({"ahead": service.queue.ahead(ticket)}, "waiting")
    async for ahead in until_answered(service.queue, ticket, service.settings.heartbeat):
        yield sent_event({"ahead": ahead}, "waiting")


def _health(service: Service) -> dict[str, Any]:
    first = service.models.names[0]
    state = service.models.state(first)
    messages = {
        "ready": "Ready.",
        "failed": f"The model {first} could not be loaded; the log says why.",
    }
    return {
        "status": "loading" if state == "asleep" else state,
        "message": messages.get(state, f"The model {first} is being loaded. Try again in a moment."),
        "models": [{"name": name, "state": service.models.state(name)} for name in service.models.names],
        "waiting": service.queue.waiting,
        "running": service.queue.running,
        "version": __version__,
    }


def _about(settings: Settings, models: Models) -> dict[str, Any]:
    return {
        "name": "listenwell",
        "version": __version__,
        "notice": NOTICE,
        "stored": _stored(settings),
        "is_stored": settings.store is not None,
        "country": settings.country,
        "needs_key": settings.api_key is not None,
        "models": [{"name": name, "plans": models.can_plan(name)} for name in models.names],
        "labels": {
            "emotion": list(EMOTIONS),
            "mechanisms": list(MECHANISMS),
            "act": list(ACTS),
            "expressed_emotion": list(EXPRESSED_EMOTIONS),
        },
        "limits": {
            "text": schemas.MOST_CHARACTERS,
            "history": schemas.MOST_TURNS,
            "persona_lines": schemas.MOST_LINES,
            "persona_line": schemas.LINE,
            "replies": schemas.MOST_REPLIES,
        },
    }


def _stored(settings: Settings) -> str:
    if settings.store is None:
        return "Nothing you write is stored: it is gone when you close this page."
    where = "on this computer" if is_loopback(settings.host) else "on this server"
    return f"What you write is stored {where}, for this browser only, until you delete it."
