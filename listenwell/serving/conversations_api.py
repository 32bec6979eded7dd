"""`/api/conversations`: stored conversations, each visible to its visitor only.

A message is stored before it is processed and a reply before it is sent: nothing acknowledged is lost. A
visitor is identified by a cookie or the header X-Listenwell-Visitor; the first response sets both.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from listenwell.dialogue import Factors
from listenwell.serving import schemas
from listenwell.serving.api_errors import GONE, ApiError, Json, api_error_of
from listenwell.serving.conversation import Conversation, Exchange, Version
from listenwell.serving.own_api import STREAMED, waiting_events
from listenwell.serving.request_queue import Ticket
from listenwell.serving.security import new_visitor, owner_of, remember, visitor_of
from listenwell.serving.service import Service, finished
from listenwell.serving.streaming import Events, chunks, disconnected, sent_event

Storing = asyncio.Task[tuple[int, Version]]
"""A reply in progress: its version number and itself, once it is stored."""
JSON_LINES = "application/x-ndjson"
EXPORTED: dict[int | str, dict[str, Any]] = {
    200: {"content": {JSON_LINES: {}}, "description": "One dialogue per line."}
}


def _owner(request: Request) -> str:
    """The visitor, as the store identifies them; a new one owns nothing."""
    return owner_of(visitor_of(request) or new_visitor())


Id = Annotated[str, Path(max_length=64)]
Number = Annotated[int, Path(ge=1, le=100_000)]
Owner = Annotated[str, Depends(_owner)]


def conversation_routes(service: Service) -> APIRouter:
    """The endpoints."""
    router = APIRouter(prefix="/api/conversations", tags=["conversations"], responses=schemas.errors(404))

    @router.post("", status_code=201, response_model=schemas.ConversationOut, responses=schemas.errors(409))
    async def create(request: Request, body: schemas.ConversationIn) -> Response:
        """Start a conversation; sets a new visitor's cookie. The same key returns the same one."""
        if body.model is not None:
            service.models.name_of(body.model)
        token = visitor_of(request) or new_visitor()
        store, owner = service.store, owner_of(token)
        created = await run_in_threadpool(store.create, owner, body.model, body.persona, body.key)
        response = Json(as_json(created), 201)
        remember(response, token, request.url.scheme == "https")
        return response

    @router.get("", response_model=schemas.SummariesOut)
    async def listed(owner: Owner) -> Response:
        """Your conversations, the latest first."""
        summaries = [
            as_json(conversation) | {"exchanges": count, "begins": beginning}
            for conversation, count, beginning in await run_in_threadpool(service.store.listed, owner)
        ]
        return Json({"conversations": summaries})

    @router.delete("", response_model=schemas.DeletedOut)
    async def delete_all(owner: Owner) -> Response:
        """Delete all your conversations."""
        return Json({"deleted": await run_in_threadpool(service.store.delete_all, owner)})

    @router.get("/export", response_class=Response, responses=EXPORTED)
    async def export_all(owner: Owner) -> Response:
        """All your conversations as JSON lines, one dialogue each, in listenwell's format."""
        return _exported(await run_in_threadpool(service.store.everything, owner))

    _add_single(router, service)
    _add_replying(router, service)
    return router


def _add_single(router: APIRouter, service: Service) -> None:
    """The endpoints of a single conversation."""

    @router.get("/{id}", response_model=schemas.ConversationOut)
    async def get(id: Id, owner: Owner) -> Response:
        """A conversation with every reply."""
        return Json(as_json(await run_in_threadpool(service.store.get, owner, id)))

    @router.patch("/{id}", response_model=schemas.ConversationOut)
    async def change(id: Id, body: schemas.ConversationChange, owner: Owner) -> Response:
        """Set another persona or model from now on."""
        if body.model is not None:
            service.models.name_of(body.model)
        changed = await run_in_threadpool(service.store.change, owner, id, body.persona, body.model)
        return Json(as_json(changed))

    @router.delete("/{id}", status_code=204)
    async def delete(id: Id, owner: Owner) -> Response:
        """Delete a conversation."""
        await run_in_threadpool(service.store.delete, owner, id)
        return Response(status_code=204)

    @router.get("/{id}/export", response_class=Response, responses=EXPORTED)
    async def export(id: Id, owner: Owner) -> Response:
        """A conversation as one line of JSON."""
        return _exported([await run_in_threadpool(service.store.get, owner, id)])

    @router.put("/{id}/exchanges/{number}/current", response_model=schemas.ConversationOut)
    async def choose(id: Id, number: Number, body: schemas.CurrentIn, owner: Owner) -> Response:
        """Continue from another reply to an exchange."""
        changed = await run_in_threadpool(service.store.set_current, owner, id, number, body.version)
        return Json(as_json(changed))


def _add_replying(router: APIRouter, service: Service) -> None:
    """The endpoints that need the model."""
    statuses = schemas.errors(409, 502, 503) | STREAMED

    @router.post("/{id}/messages", response_model=schemas.AnsweredOut, responses=statuses)
    async def say(request: Request, id: Id, body: schemas.MessageIn, owner: Owner) -> Response:
        """Send a message and get a reply; both are stored."""
        body.target_factors()  # an invalid target is an error before anything is stored
        number = await run_in_threadpool(service.store.add_message, owner, id, body.text, body.key)
        return await _Replying(service, owner, id).answer(request, body, number)

    @router.post("/{id}/again", response_model=schemas.AnsweredOut, responses=statuses)
    async def again(request: Request, id: Id, body: schemas.AgainIn, owner: Owner) -> Response:
        """Reply to the last message again, for instance with another target; every reply is stored."""
        return await _Replying(service, owner, id).answer(request, body)


class _Replying:
    """One reply within a conversation."""

    def __init__(self, service: Service, owner: str, id: str) -> None:
        self._service, self._owner, self._id = service, owner, id

    async def answer(self, request: Request, body: schemas.AgainIn, number: int | None = None) -> Response:
        """Reply to an exchange, or to the last one again."""
        service = self._service
        conversation = await run_in_threadpool(service.store.get, self._owner, self._id)
        if number is None and body.key and (known := conversation.named(body.key)):  # a repeated request
            return self._response(body, known[0].number, known[1], known[0].versions[known[1] - 1])
        exchange = conversation.exchange(number) if number else (conversation.exchanges or (None,))[-1]
        if exchange is None:
            raise ApiError(404, "not_found", "This conversation has no message yet.")
        if number and exchange.current:  # a repeated message
            return self._response(body, exchange.number, len(exchange.versions), exchange.versions[-1])
        # A repeated request shares the first reply to an exchange, or the reply with its key.
        name = exchange.number if number else body.key
        ticket, storing = self._start(conversation, exchange, body, name)
        if body.stream:
            return Events(self._events(ticket, storing, exchange.number))
        leaving = asyncio.ensure_future(disconnected(request))
        await asyncio.wait({leaving, storing}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        service.queue.leave(ticket)
        if not storing.done():
            raise ApiError(GONE, "gone", "The client disconnected.")
        return self._response(body, exchange.number, *storing.result())

    def _start(
        self, conversation: Conversation, exchange: Exchange, body: schemas.AgainIn, name: int | str | None
    ) -> "tuple[Ticket, Storing]":
        """Queue a request; one with the same name that is in progress is shared.

        The reply is stored even if the client disconnects meanwhile.
        """
        service, shared = self._service, (self._id, name)
        if name is not None and shared in service.under_way:
            ticket, storing = service.under_way[shared]
            ticket.watchers += 1
            return ticket, storing
        dialogue = conversation.dialogue(exchange.number, schemas.MOST_TURNS + 1)
        assert dialogue is not None
        model = body.model or conversation.model
        ticket = service.ask(model, dialogue, body.target_factors(), body.seed, body.candidates)
        own_name = name if isinstance(name, str) else None
        storing = service.in_background(
            self._stored(ticket, exchange.number, body.target_factors(), own_name)
        )
        if name is not None:
            service.under_way[shared] = (ticket, storing)
            storing.add_done_callback(lambda _: service.under_way.pop(shared, None))
        return ticket, storing

    async def _stored(
        self, ticket: Ticket, number: int, target: Factors | None, name: str | None
    ) -> tuple[int, Version]:
        await asyncio.wait({ticket.result})
        if ticket.result.cancelled():
            raise ApiError(GONE, "gone", "The client disconnected.")
        added, store = Version(finished(ticket), target, name), self._service.store
        version = await run_in_threadpool(store.add_reply, self._owner, self._id, number, added)
        if name is not None:  # a faster request may have stored one under this name
            conversation = await run_in_threadpool(store.get, self._owner, self._id)
            exchange = conversation.exchange(number)
            added = exchange.versions[version - 1] if exchange else added
        return version, added

    def _response(self, body: schemas.ReplyOptions, number: int, version: int, kept: Version) -> Response:
        if body.stream:
            return Events(_reply_events(number, version, kept))
        return Json(_answer(number, version, kept))

    async def _events(self, ticket: Ticket, storing: Storing, number: int) -> AsyncIterator[bytes]:
        async for event in waiting_events(self._service, ticket):
            yield event
        try:
            version, kept = await asyncio.shield(storing)
        except Exception as error:  # the status line was sent already
            yield sent_event(api_error_of(error).content(), "error")
            return
        async for event in _reply_events(number, version, kept):
            yield event


async def _reply_events(number: int, version: int, kept: Version) -> AsyncIterator[bytes]:
    for chunk in chunks(kept.reply.text):
        yield sent_event({"text": chunk}, "text")
    yield sent_event(_answer(number, version, kept), "reply")


def _answer(number: int, version: int, kept: Version) -> dict[str, Any]:
    return {"number": number, "version": version, "reply": _reply(kept)}


def _reply(kept: Version) -> dict[str, Any]:
    return kept.reply.to_dict() | {"target": kept.target.to_dict() if kept.target else None}


def as_json(conversation: Conversation) -> dict[str, Any]:
    """A conversation as JSON values."""
    return {
        **vars(conversation),
        "exchanges": [
            {
                "number": exchange.number,
                "said": exchange.message,
                "created": exchange.created,
                "current": exchange.current,
                "replies": [_reply(version) for version in exchange.versions],
            }
            for exchange in conversation.exchanges
        ],
    }


def _exported(conversations: list[Conversation]) -> Response:
    dialogues = [conversation.dialogue() for conversation in conversations]
    lines = "".join(f"{dialogue.to_json()}\n" for dialogue in dialogues if dialogue)
    disposition = 'attachment; filename="listenwell.jsonl"'
    return Response(lines, media_type=JSON_LINES, headers={"Content-Disposition": disposition})
