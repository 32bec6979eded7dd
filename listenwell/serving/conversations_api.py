"""`/api/conversations`: talks that are kept, each visitor's own.

A message is kept before it is answered, and a reply before it is sent: what was acknowledged is never lost.
A visitor is known by a cookie, or by the header X-Listenwell-Visitor, which the first request is given.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import APIRouter, Depends, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from listenwell.dialogue import Factors
from listenwell.serving.api_errors import GONE, ApiError, Json, api_error_of
from listenwell.serving.conversation import Conversation, Exchange, Version
from listenwell.serving.own_api import STREAMED, waiting_events
from listenwell.serving.request_queue import Place
from listenwell.serving.schemas import (
    MOST_TURNS,
    AgainIn,
    AnsweredOut,
    ConversationChange,
    ConversationIn,
    ConversationOut,
    CurrentIn,
    DeletedOut,
    MessageIn,
    Steered,
    SummariesOut,
    errors,
)
from listenwell.serving.security import new_visitor, owner_of, remember, visitor_of
from listenwell.serving.service import Service, finished
from listenwell.serving.store import Store
from listenwell.serving.streaming import Events, gone, pieces, sent_event

T = TypeVar("T")
Keeping = asyncio.Task[tuple[int, Version]]
"""A reply that is being made and kept: its version, and itself."""
Id = Annotated[str, Path(max_length=64)]
Number = Annotated[int, Path(ge=1, le=100_000)]


class Stored(Protocol):
    """Does something with the store, out of the event loop's way."""

    def __call__(self, work: Callable[[Store], T]) -> Awaitable[T]: ...  # noqa: D102


JSON_LINES = "application/x-ndjson"
_EXPORTED: dict[int | str, dict[str, Any]] = {
    200: {"content": {JSON_LINES: {}}, "description": "A dialogue a line."}
}


def _owner(request: Request) -> str:
    """Who asks, as the store knows them; a stranger has nothing here."""
    return owner_of(visitor_of(request) or new_visitor())


Owner = Annotated[str, Depends(_owner)]


def conversation_routes(service: Service) -> APIRouter:
    """The endpoints."""
    router = APIRouter(prefix="/api/conversations", tags=["conversations"])
    stored = _stored_by(service)

    @router.post("", status_code=201, response_model=ConversationOut, responses=errors(404, 409))
    async def create(request: Request, asked: ConversationIn) -> Response:
        """Begin a conversation; a new visitor is given their cookie. With a key, the same one every time."""
        if asked.model is not None:
            service.models.name_of(asked.model)
        token = visitor_of(request) or new_visitor()
        owner, key = owner_of(token), asked.key
        made = await stored(lambda store: store.create(owner, asked.model, asked.persona, key))
        response = Json(shown(made), 201)
        remember(response, token, request.url.scheme == "https")
        return response

    @router.get("", response_model=SummariesOut, responses=errors(404))
    async def listed(owner: Owner) -> Response:
        """Your conversations, the latest first."""
        found = await stored(lambda store: store.listed(owner))
        summaries = [shown(one) | {"exchanges": count, "begins": words} for one, count, words in found]
        return Json({"conversations": summaries})

    @router.delete("", response_model=DeletedOut, responses=errors(404))
    async def delete_all(owner: Owner) -> Response:
        """Delete all your conversations."""
        return Json({"deleted": await stored(lambda store: store.delete_all(owner))})

    _add_one(router, service)
    _add_speaking(router, service)
    return router


def _stored_by(service: Service) -> "Stored":
    async def stored(work: Callable[[Store], T]) -> T:
        return await run_in_threadpool(work, service.store)

    return stored


def _add_one(router: APIRouter, service: Service) -> None:
    """The endpoints of one conversation, and of all in one file."""
    stored = _stored_by(service)

    @router.get("/export", response_class=Response, responses=errors(404) | _EXPORTED)
    async def export_all(owner: Owner) -> Response:
        """All your conversations, a dialogue a line, as `listenwell` reads them."""
        return _exported(await stored(lambda store: store.everything(owner)))

    @router.get("/{id}", response_model=ConversationOut, responses=errors(404))
    async def get(id: Id, owner: Owner) -> Response:
        """A conversation with every reply."""
        return Json(shown(await stored(lambda store: store.get(owner, id))))

    @router.patch("/{id}", response_model=ConversationOut, responses=errors(404))
    async def change(id: Id, asked: ConversationChange, owner: Owner) -> Response:
        """Give the listener another persona or model from now on."""
        if asked.model is not None:
            service.models.name_of(asked.model)
        return Json(shown(await stored(lambda store: store.change(owner, id, asked.persona, asked.model))))

    @router.delete("/{id}", status_code=204, responses=errors(404))
    async def delete(id: Id, owner: Owner) -> Response:
        """Delete a conversation."""
        await stored(lambda store: store.delete(owner, id))
        return Response(status_code=204)

    @router.get("/{id}/export", response_class=Response, responses=errors(404) | _EXPORTED)
    async def export(id: Id, owner: Owner) -> Response:
        """A conversation as one line of JSON."""
        return _exported([await stored(lambda store: store.get(owner, id))])

    @router.put("/{id}/exchanges/{number}/current", response_model=ConversationOut, responses=errors(404))
    async def choose(id: Id, number: Number, asked: CurrentIn, owner: Owner) -> Response:
        """Go on from another of the replies to an exchange."""
        return Json(shown(await stored(lambda store: store.choose(owner, id, number, asked.version))))


def _add_speaking(router: APIRouter, service: Service) -> None:
    """The endpoints that are answered by the model."""
    statuses = errors(404, 409, 502, 503) | STREAMED

    @router.post("/{id}/messages", response_model=AnsweredOut, responses=statuses)
    async def say(request: Request, id: Id, asked: MessageIn, owner: Owner) -> Response:
        """Say something and be answered; both are kept."""
        asked.wish()  # a wish that cannot be is refused before anything is kept
        number = await run_in_threadpool(service.store.say, owner, id, asked.text, asked.key)
        return await _Speaking(service, owner, id).answer(request, asked, number)

    @router.post("/{id}/again", response_model=AnsweredOut, responses=statuses)
    async def again(request: Request, id: Id, asked: AgainIn, owner: Owner) -> Response:
        """Answer the last message again, perhaps by another plan; every reply is kept, with its wish."""
        return await _Speaking(service, owner, id).answer(request, asked)


class _Speaking:
    """One reply within a conversation."""

    def __init__(self, service: Service, owner: str, id: str) -> None:
        self._service, self._owner, self._id = service, owner, id

    async def answer(
        self, request: Request, asked: MessageIn | AgainIn, number: int | None = None
    ) -> Response:
        """Answer an exchange, or the last one again."""
        service = self._service
        found = await run_in_threadpool(service.store.get, self._owner, self._id)
        if number is None and asked.key and (known := found.named(asked.key)):  # asked for twice
            return self._told(asked, known[0].number, known[1], known[0].versions[known[1] - 1])
        exchange = found.exchange(number) if number else (found.exchanges or (None,))[-1]
        if exchange is None:
            raise ApiError(404, "not_found", "Nothing was said in this conversation yet.")
        if number and exchange.reply:  # a message that was sent twice
            return self._told(asked, exchange.number, len(exchange.versions), exchange.versions[-1])
        # What a second request shares: the first reply to an exchange, the reply of a key, or nothing.
        name = exchange.number if number else asked.key
        place, keeping = self._begin(found, exchange, asked, name)
        if asked.stream:
            return Events(self._events(place, keeping, exchange.number))
        leaving = asyncio.ensure_future(gone(request))
        await asyncio.wait({leaving, keeping}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        service.line.leave(place)
        if not keeping.done():
            raise ApiError(GONE, "gone", "The client went away.")
        return self._told(asked, exchange.number, *keeping.result())

    def _begin(
        self, found: Conversation, exchange: Exchange, asked: MessageIn | AgainIn, name: int | str | None
    ) -> "tuple[Place, Keeping]":
        """Take a place; what is asked for again, under the same name, while it is answered shares it.

        The reply is kept even where the client goes away while it is made.
        """
        service, shared = self._service, (self._id, name)
        if name is not None and shared in service.under_way:
            place, keeping = service.under_way[shared]
            place.watchers += 1
            return place, keeping
        dialogue = found.dialogue(exchange.number, MOST_TURNS + 1)
        assert dialogue is not None
        model = asked.model or found.model
        place = service.ask(model, dialogue, asked.wish(), asked.seed, asked.candidates)
        own_name = name if isinstance(name, str) else None
        keeping = service.keep_going(self._kept(place, exchange.number, asked.wish(), own_name))
        if name is not None:
            service.under_way[shared] = (place, keeping)
            keeping.add_done_callback(lambda _: service.under_way.pop(shared, None))
        return place, keeping

    async def _kept(
        self, place: Place, number: int, want: Factors | None, name: str | None
    ) -> tuple[int, Version]:
        await asyncio.wait({place.result})
        if place.result.cancelled():
            raise ApiError(GONE, "gone", "The client went away.")
        made, store = Version(finished(place), want, name), self._service.store
        version = await run_in_threadpool(store.add_reply, self._owner, self._id, number, made)
        if name is not None:  # one that was quicker may have it already
            found = await run_in_threadpool(store.get, self._owner, self._id)
            exchange = found.exchange(number)
            made = exchange.versions[version - 1] if exchange else made
        return version, made

    def _told(self, asked: Steered, number: int, version: int, kept: Version) -> Response:
        if asked.stream:
            return Events(_said(number, version, kept))
        return Json(_answer(number, version, kept))

    async def _events(self, place: Place, keeping: Keeping, number: int) -> AsyncIterator[bytes]:
        async for event in waiting_events(self._service, place):
            yield event
        try:
            version, kept = await asyncio.shield(keeping)
        except Exception as error:  # the status was sent: only the stream can tell
            yield sent_event(api_error_of(error).content(), "error")
            return
        async for event in _said(number, version, kept):
            yield event


async def _said(number: int, version: int, kept: Version) -> AsyncIterator[bytes]:
    for piece in pieces(kept.reply.text):
        yield sent_event({"text": piece}, "text")
    yield sent_event(_answer(number, version, kept), "reply")


def _answer(number: int, version: int, kept: Version) -> dict[str, Any]:
    return {"number": number, "version": version, "reply": _reply(kept)}


def _reply(kept: Version) -> dict[str, Any]:
    return kept.reply.to_dict() | {"want": kept.want.to_dict() if kept.want else None}


def shown(found: Conversation) -> dict[str, Any]:
    """A conversation as JSON values."""
    return {
        "id": found.id,
        "model": found.model,
        "persona": list(found.persona),
        "created": found.created,
        "changed": found.changed,
        "exchanges": [
            {
                "number": one.number,
                "said": one.said,
                "created": one.created,
                "current": one.current,
                "replies": [_reply(version) for version in one.versions],
            }
            for one in found.exchanges
        ],
    }


def _exported(conversations: list[Conversation]) -> Response:
    dialogues = [one.dialogue() for one in conversations]
    lines = "".join(f"{dialogue.to_json()}\n" for dialogue in dialogues if dialogue)
    disposition = 'attachment; filename="listenwell.jsonl"'
    return Response(lines, media_type=JSON_LINES, headers={"Content-Disposition": disposition})
