"""`/v1`: what clients of OpenAI's chat completions know, so that they work unchanged.

Sentences of a system message in the first person are the listener's persona; its other instructions are not
followed, and a notice says so. What a reply knows beside its words stands under `listenwell`.
"""

import re
import secrets
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import BaseModel, Field, StringConstraints

from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Reply, Turn
from listenwell.errors import InputError
from listenwell.serving.api_errors import ApiError, Json, api_error_of
from listenwell.serving.models import Models
from listenwell.serving.request_queue import Place
from listenwell.serving.schemas import (
    LINE,
    MOST_CHARACTERS,
    MOST_LINES,
    MOST_TURNS,
    SEEDS,
    Candidates,
    PersonaLines,
    Want,
    errors,
    personas,
)
from listenwell.serving.service import Service, finished
from listenwell.serving.streaming import (
    KEEP_ALIVE,
    Events,
    answered,
    pieces,
    sent_event,
    until_answered,
)

MOST_MESSAGES = 1000
NOT_FOLLOWED = (
    "Instructions in system messages are not followed; sentences in the first person are the persona."
)
_FIRST_PERSON = re.compile(r"(?:I|I['’]\w+|My|We|Our)\b")
_SENTENCE = re.compile(r"\n+|(?<=[.!?])\s+")
_CREATED = 1_700_000_000
"""Of every model: clients want a number, and nothing depends on it."""
Long = Annotated[str, StringConstraints(max_length=MOST_CHARACTERS)]


class Part(BaseModel):
    """A part of a message; only text is heard."""

    type: Literal["text"]
    text: Long


class Message(BaseModel):
    """One message."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Long | list[Part] | None = None

    def text(self) -> str:
        """Its words."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(BaseModel):
    """What a stream holds."""

    include_usage: bool | None = None


class ChatIn(BaseModel):
    """A request of OpenAI's clients; settings of sampling are accepted and passed over."""

    model: str = Field(max_length=100, description="One of /v1/models, or listenwell for the first of them.")
    messages: list[Message] = Field(
        min_length=1,
        max_length=MOST_MESSAGES,
        examples=[[{"role": "user", "content": "I finally got promoted today!"}]],
    )
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    n: Literal[1] | None = Field(None, description="One reply; the others are listenwell.candidates.")
    persona: PersonaLines = []
    want: Want | None = None
    candidates: Candidates = None

    def dialogue(self) -> tuple[Dialogue, tuple[str, ...]]:
        """The talk, and what the user should know."""
        turns, lines, is_followed, notices = list[Turn](), list(self.persona), True, list[str]()
        for message in self.messages:
            text = message.text()
            if message.role in ("user", "assistant"):
                if text.strip():
                    turns.append(Turn(SPEAKER if message.role == "user" else LISTENER, text))
                continue
            own, others = own_sentences(text)
            lines += own
            is_followed = is_followed and not others
        if self.messages[-1].role != "user" or not self.messages[-1].text().strip():
            raise InputError("The last message is not the user's, or is empty.", "End with what they said.")
        if not is_followed:
            notices.append(NOT_FOLLOWED)
        if len(turns) > MOST_TURNS + 1:
            notices.append(f"Only the last {MOST_TURNS + 1} messages were read.")
        return Dialogue(tuple(turns[-MOST_TURNS - 1 :]), personas=personas(lines[:MOST_LINES])), tuple(
            notices
        )


class Reranker(BaseModel):
    """The reply."""

    index: int
    message: dict[str, Any]
    finish_reason: str
    logprobs: None = None


class ChatOut(BaseModel):
    """A chat completion."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Reranker]
    usage: dict[str, int]
    listenwell: dict[str, Any]


class ModelOut(BaseModel):
    """A model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelsOut(BaseModel):
    """All models."""

    object: Literal["list"]
    data: list[ModelOut]


def own_sentences(text: str) -> tuple[list[str], int]:
    """Of a system message the sentences about the listener itself, and how many others there are."""
    sentences = [part.strip() for part in _SENTENCE.split(text) if part.strip()]
    own = [part for part in sentences if _FIRST_PERSON.match(part) and len(part) <= LINE]
    return own, len(sentences) - len(own)


def openai_routes(service: Service) -> APIRouter:
    """The endpoints."""
    router = APIRouter(prefix="/v1", tags=["OpenAI-compatible"])

    @router.get("/models", response_model=ModelsOut, responses=errors())
    async def models() -> Response:
        """The models that can be named in a request."""
        return Json({"object": "list", "data": [_model(name) for name in service.models.names]})

    @router.get("/models/{name}", response_model=ModelOut, responses=errors(404))
    async def model(name: Annotated[str, Path(max_length=100)]) -> Response:
        """One model."""
        return Json(_model(service.models.name_of(name)))

    @router.post(
        "/chat/completions",
        response_model=ChatOut,
        responses=errors(404, 502, 503)
        | {200: {"content": {"text/event-stream": {}}, "description": "The reply; with stream, in pieces."}},
    )
    async def chat_completions(request: Request, asked: ChatIn) -> Response:
        """A reply to a conversation, as OpenAI's clients ask for it."""
        dialogue, notices = asked.dialogue()
        seed = None if asked.seed is None else asked.seed % SEEDS
        want = asked.want.factors() if asked.want else None
        place = service.ask(asked.model, dialogue, want, seed, asked.candidates)
        answer = _Answer(service, asked, dialogue, notices, place)
        if asked.stream:
            return Events(answer.events())
        await answered(request, service.line, place)
        return Json(await run_in_threadpool(answer.whole))

    return router


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": _CREATED, "owned_by": "listenwell"}


class _Answer:
    """One completion, whole or in chunks."""

    def __init__(
        self, service: Service, asked: ChatIn, dialogue: Dialogue, notices: tuple[str, ...], place: Place
    ) -> None:
        self._service, self._asked, self._dialogue = service, asked, dialogue
        self._notices, self._place = notices, place
        self._head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": service.models.name_of(asked.model),
        }

    def whole(self) -> dict[str, Any]:
        """The completion at once."""
        reply = finished(self._place)
        message = {"role": "assistant", "content": reply.text}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return self._head | {
            "object": "chat.completion",
            "choices": [choice],
            "usage": self._usage(reply),
            "listenwell": self._known(reply),
        }

    async def events(self) -> AsyncIterator[bytes]:
        """The completion in chunks; while the reply is made, comments."""
        yield self._chunk({"role": "assistant", "content": ""})
        async for _ in until_answered(self._service.line, self._place, self._service.settings.heartbeat):
            yield KEEP_ALIVE
        try:
            reply = finished(self._place)
        except Exception as error:  # the status was sent: only the stream can tell
            yield sent_event(api_error_of(error).content())
            return
        for piece in pieces(reply.text):
            yield self._chunk({"content": piece})
        yield self._chunk({}, "stop", {"listenwell": self._known(reply)})
        if self._asked.stream_options and self._asked.stream_options.include_usage:
            usage = await run_in_threadpool(self._usage, reply)
            yield sent_event(self._head | {"object": _CHUNK, "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    def _chunk(
        self, delta: dict[str, str], finish: str | None = None, more: dict[str, Any] | None = None
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return sent_event(self._head | {"object": _CHUNK, "choices": [choice]} | (more or {}))

    def _known(self, reply: Reply) -> dict[str, Any]:
        known = reply.to_dict()
        known["notices"] = [*self._notices, *reply.notices]
        return known

    def _usage(self, reply: Reply) -> dict[str, int]:
        prompt = sum(self._count(turn.text) for turn in self._dialogue.turns)
        completion = self._count(reply.text)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }

    def _count(self, text: str) -> int:
        """Tokens, by the model's own vocabulary where it has one, else words."""
        return count_tokens(self._service.models, self._asked.model, text)


_CHUNK = "chat.completion.chunk"


def count_tokens(models: Models, model: str, text: str) -> int:
    """How many tokens a text has for a model; words where it has no vocabulary."""
    try:
        runtime = getattr(getattr(models.get(model)[1], "generate", None), "runtime", None)
    except ApiError:
        runtime = None
    return len(runtime.encode(text)) if runtime else len(text.split())
