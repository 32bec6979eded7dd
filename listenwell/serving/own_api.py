"""`/api`: listenwell's own endpoints, with everything a `Reply` knows."""

from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from listenwell.dialogue import Dialogue
from listenwell.labels import ACTS, EMOTIONS, MECHANISMS, TONES
from listenwell.serving.api_errors import Json, api_error_of
from listenwell.serving.models import Models
from listenwell.serving.request_queue import Place
from listenwell.serving.schemas import (
    LINE,
    MOST_CHARACTERS,
    MOST_LINES,
    MOST_REPLIES,
    MOST_TURNS,
    AboutOut,
    AnnotateIn,
    AnnotateOut,
    HealthOut,
    RankIn,
    RankOut,
    ReplyIn,
    ReplyOut,
    errors,
)
from listenwell.serving.service import Service, finished
from listenwell.serving.settings import NOTICE, Settings, is_loopback
from listenwell.serving.streaming import Events, answered, pieces, sent_event, until_answered
from listenwell.version import __version__

STREAMED: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/event-stream": {}},
        "description": (
            "The reply. With stream: events `waiting` (how many are ahead), `text` (a piece of the reply), "
            "`reply` (all of it, as without stream), or `error`."
        ),
    }
}


def own_routes(service: Service) -> APIRouter:
    """The endpoints that keep nothing."""
    router = APIRouter(prefix="/api", tags=["listenwell"])

    @router.post("/reply", response_model=ReplyOut, responses=errors(404, 502, 503) | STREAMED)
    async def reply(request: Request, asked: ReplyIn) -> Response:
        """Answer what was said, with what was heard, meant and could have been said; nothing is kept."""
        place = service.ask(asked.model, asked.dialogue(), asked.wish(), asked.seed, asked.candidates)
        if asked.stream:
            return Events(_reply_events(service, place))
        await answered(request, service.line, place)
        return Json(finished(place).to_dict())

    @router.post("/annotate", response_model=AnnotateOut, responses=errors(503))
    async def annotate(request: Request, asked: AnnotateIn) -> Response:
        """Read what every turn of a dialogue feels and does, with calibrated probabilities."""
        place = service.ask_readings(asked.dialogue(), asked.top)
        await answered(request, service.line, place)
        found: Dialogue = place.result.result()
        return Json({"turns": [turn.to_dict() for turn in found.turns]})

    @router.post("/rank", response_model=RankOut, responses=errors(503))
    async def rank(request: Request, asked: RankIn) -> Response:
        """Put replies in order, the best first."""
        place = service.ask_ranks(asked.dialogue(), asked.replies)
        await answered(request, service.line, place)
        name, scores = place.result.result()
        order = sorted(range(len(scores)), key=lambda number: -scores[number])
        ranked = [
            {"text": asked.replies[number], "score": scores[number], "place": number} for number in order
        ]
        return Json({"ranker": name, "replies": ranked})

    @router.get("/health", response_model=HealthOut, responses=errors())
    async def health() -> Response:
        """Whether the model is ready, and how many wait for it."""
        return Json(_health(service))

    @router.get("/about", response_model=AboutOut, responses=errors())
    async def about() -> Response:
        """What this is and what it is not, what is kept, and what can be asked for."""
        return Json(_about(service.settings, service.models))

    return router


async def _reply_events(service: Service, place: Place) -> AsyncIterator[bytes]:
    async for event in waiting_events(service, place):
        yield event
    try:
        reply = finished(place)
    except Exception as error:  # the status was sent: only the stream can tell
        yield sent_event(api_error_of(error).content(), "error")
        return
    for piece in pieces(reply.text):
        yield sent_event({"text": piece}, "text")
    yield sent_event(reply.to_dict(), "reply")


async def waiting_events(service: Service, place: Place) -> AsyncIterator[bytes]:
    """How many are ahead, at once and with every heartbeat, until there is an answer."""
    yield sent_event({"ahead": service.line.ahead(place)}, "waiting")
    async for ahead in until_answered(service.line, place, service.settings.heartbeat):
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
        "waiting": service.line.waiting,
        "running": service.line.running,
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
            "tone": list(TONES),
        },
        "limits": {
            "text": MOST_CHARACTERS,
            "history": MOST_TURNS,
            "persona_lines": MOST_LINES,
            "persona_line": LINE,
            "replies": MOST_REPLIES,
        },
    }


def _stored(settings: Settings) -> str:
    if settings.store is None:
        return "Nothing you write is kept: when you close this page, it is gone."
    where = "on this computer" if is_loopback(settings.host) else "on this server"
    return f"What you write is kept {where}, for this browser only, until you delete it."
