"""`/v1`: OpenAI's chat completions, for unchanged clients.

Honoured: `n` (the reranked candidates that pass the guard), `max_tokens`, `seed`, `stream` and system
messages: sentences in the first person are the persona, others an instruction for generators that follow
one. What is not honoured is named in `listenwell.warnings`, or is an error where ignoring it would mislead
the client.
"""

import re
import secrets
import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from listenwell.dialogue import INSTRUCTION, LISTENER, SPEAKER, Dialogue, Reply, Turn
from listenwell.errors import InputError
from listenwell.safety.replies import faults
from listenwell.serving import schemas
from listenwell.serving.api_errors import ApiError, Json, api_error_of
from listenwell.serving.request_queue import Ticket
from listenwell.serving.service import Service, finished
from listenwell.serving.streaming import KEEP_ALIVE, Events, answered, chunks, sent_event, until_answered

MOST_MESSAGES = 1000
MOST_CHOICES = 64
NOT_FOLLOWED = (
    "This model does not follow instructions in system messages; sentences in the first person are used as "
    "the persona."
)
NOT_TRUNCATED = "The reply is a fixed safety answer, which max_tokens does not truncate."
UNNOTICED = frozenset({"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"})
"""Parameters that change no reply; they are ignored without a warning."""
_FIRST_PERSON = re.compile(r"(?:I|I['’]\w+|My|We|Our)\b")
_SENTENCE = re.compile(r"\n+|(?<=[.!?])\s+")
_ENDS = (re.compile(r"[.!?…]+[\"'”’)]*(?=\s)"), re.compile(r"\S+(?=\s)"))
"""Where a reply may be truncated: after a sentence, otherwise after a word."""
_CREATED = 1_700_000_000
"""Creation time of every model; the format requires one."""
_CHUNK = "chat.completion.chunk"
Long = Annotated[str, StringConstraints(max_length=schemas.MOST_CHARACTERS)]
Tokens = Annotated[int | None, Field(ge=1, description="The reply ends with a sentence or word before.")]


class Part(BaseModel):
    """A part of a message; only text is supported."""

    type: Literal["text"]
    text: Long


class Message(BaseModel):
    """One message."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Long | list[Part] | None = None

    def text(self) -> str:
        """The text of all parts."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(BaseModel):
    """Options of a stream."""

    include_usage: bool | None = None


class ChatIn(BaseModel):
    """A request for a chat completion; parameters that are not listed are ignored with a warning."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(max_length=100, description="One of /v1/models, or listenwell for the first.")
    messages: list[Message] = Field(
        min_length=1,
        max_length=MOST_MESSAGES,
        examples=[[{"role": "user", "content": "I finally got promoted today!"}]],
    )
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    n: int | None = Field(
        None, ge=1, le=MOST_CHOICES, description="At most this many candidates, the best first."
    )
    max_tokens: Tokens = None
    max_completion_tokens: Tokens = None
    persona: schemas.PersonaLines = []
    target: schemas.TargetField = None
    candidates: schemas.Candidates = None

    @property
    def limit(self) -> int | None:
        """The token limit of the reply."""
        return self.max_completion_tokens or self.max_tokens

    def dialogue(self) -> tuple[Dialogue, str, tuple[str, ...]]:
        """The conversation, the instruction of its system messages, and notices for the user."""
        turns, lines, instructions, notices = list[Turn](), list(self.persona), list[str](), list[str]()
        for message in self.messages:
            text = message.text()
            if message.role in ("user", "assistant"):
                if text.strip():
                    turns.append(Turn(SPEAKER if message.role == "user" else LISTENER, text))
            else:
                own, others = split_system_message(text)
                lines += own
                instructions += others
        if self.messages[-1].role != "user" or not self.messages[-1].text().strip():
            raise InputError("The last message is not the user's, or is empty.", "End with a user message.")
        if len(turns) > schemas.MOST_TURNS + 1:
            notices.append(f"Only the last {schemas.MOST_TURNS + 1} messages were read.")
        personas = schemas.personas(lines[: schemas.MOST_LINES])
        dialogue = Dialogue(tuple(turns[-schemas.MOST_TURNS - 1 :]), personas=personas)
        return dialogue, " ".join(instructions), tuple(notices)

    def warnings(self) -> list[str]:
        """A sentence for each parameter that is ignored; 400 where ignoring it would mislead."""
        extra = {name: value for name, value in (self.model_extra or {}).items() if value not in _EMPTY}
        for name in ("response_format", "tool_choice", "function_call", "audio"):
            if name in extra and extra[name] not in _HARMLESS:
                problem = f"{name} is not supported: replies are plain text without tool calls. Leave it out."
                raise ApiError(400, "unsupported_parameter", problem, param=name)
        return [
            f"{name[:40]} is not supported and was ignored."
            for name in extra
            if name not in UNNOTICED and extra[name] not in _HARMLESS
        ]


_EMPTY: tuple[Any, ...] = (None, False, [], {}, "")
_HARMLESS: tuple[Any, ...] = ("none", "auto", {"type": "text"}, ["text"])
"""Values of unsupported parameters that ask for what is done anyway."""


class Choice(BaseModel):
    """One of the replies."""

    index: int
    message: dict[str, Any]
    finish_reason: Literal["stop", "length"]
    logprobs: None = None


class ChatOut(BaseModel):
    """A chat completion."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: dict[str, int]
    listenwell: dict[str, Any] = Field(description="The fields of /api/reply, and warnings.")


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


def split_system_message(text: str) -> tuple[list[str], list[str]]:
    """The sentences in the first person (persona lines), and the others (an instruction)."""
    sentences = [part.strip() for part in _SENTENCE.split(text) if part.strip()]
    persona = [part for part in sentences if _FIRST_PERSON.match(part) and len(part) <= schemas.LINE]
    return persona, [part for part in sentences if part not in persona]


def truncated(text: str, limit: int, count: Callable[[str], int]) -> str:
    """The beginning of a reply within a token limit: whole sentences, or else whole words.

    A cut may change what a reply says, so it is filtered again and shortened until it passes.
    """
    if count(text) <= limit:
        return text
    for pattern in _ENDS:
        ends = [match.end() for match in pattern.finditer(text)]
        for end in reversed(ends[: bisect_right(ends, limit, key=lambda end: count(text[:end]))]):
            if not faults(text[:end]):
                return text[:end]
    return ""


def choices_of(reply: Reply, n: int) -> tuple[str, ...]:
    """Up to n replies that may be shown, the best first; a text of the guard's own has no alternatives."""
    others = [candidate.text for candidate in reply.candidates if candidate.text != reply.text]
    if n == 1 or is_replaced(reply):
        return (reply.text,)
    allowed = [text for text in dict.fromkeys(others) if text.strip() and not faults(text)]
    return (reply.text, *allowed)[:n]


def is_replaced(reply: Reply) -> bool:
    """Whether the text is the guard's own, such as the answer to a crisis, and no candidate."""
    return reply.text not in [candidate.text for candidate in reply.candidates]


def openai_routes(service: Service) -> APIRouter:
    """The endpoints."""
    router = APIRouter(prefix="/v1", tags=["OpenAI-compatible"], responses=schemas.errors())
    streamed = {200: {"content": {"text/event-stream": {}}, "description": "The completion, or its chunks."}}

    @router.get("/models", response_model=ModelsOut)
    async def models() -> Response:
        """List the models."""
        return Json({"object": "list", "data": [_model(name) for name in service.models.names]})

    @router.get("/models/{name}", response_model=ModelOut, responses=schemas.errors(404))
    async def model(name: Annotated[str, Path(max_length=100)]) -> Response:
        """Describe one model."""
        return Json(_model(service.models.name_of(name)))

    statuses = schemas.errors(404, 502, 503) | streamed

    @router.post("/chat/completions", response_model=ChatOut, responses=statuses)
    async def chat_completions(request: Request, body: ChatIn) -> Response:
        """Reply to a conversation in OpenAI's format."""
        warnings = body.warnings()
        dialogue, instruction, notices = body.dialogue()
        if instruction and service.follows_instructions(body.model):
            dialogue = replace(dialogue, notes=((INSTRUCTION, instruction),))
        elif instruction:
            warnings.append(NOT_FOLLOWED)
        seed = None if body.seed is None else body.seed % schemas.SEEDS
        target = body.target.factors() if body.target else None
        ticket = service.ask(body.model, dialogue, target, seed, body.candidates, body.n or 1)
        completion = _Completion(service, body, dialogue, (notices, warnings), ticket)
        if body.stream:
            return Events(completion.events())
        await answered(request, service.queue, ticket)
        return Json(await run_in_threadpool(completion.whole))

    return router


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": _CREATED, "owned_by": "listenwell"}


class _Completion:
    """One completion, whole or in chunks."""

    def __init__(
        self,
        service: Service,
        body: ChatIn,
        dialogue: Dialogue,
        remarks: tuple[tuple[str, ...], list[str]],
        ticket: Ticket,
    ) -> None:
        self._service, self._body, self._dialogue, self._ticket = service, body, dialogue, ticket
        self._notices, self._warnings = remarks
        self._head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": service.models.name_of(body.model),
        }

    def whole(self) -> dict[str, Any]:
        """The completion at once."""
        reply = finished(self._ticket)
        choices = self._choices(reply)
        return self._head | {
            "object": "chat.completion",
            "choices": [
                {
                    "index": index,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": reason,
                    "logprobs": None,
                }
                for index, (text, reason) in enumerate(choices)
            ],
            "usage": self._usage(choices),
            "listenwell": self._details(reply),
        }

    async def events(self) -> AsyncIterator[bytes]:
        """The completion in chunks; comments until the reply is generated and guarded."""
        yield self._chunk(0, {"role": "assistant", "content": ""})
        async for _ in until_answered(self._service.queue, self._ticket, self._service.settings.heartbeat):
            yield KEEP_ALIVE
        try:
            reply = finished(self._ticket)
            choices = await run_in_threadpool(self._choices, reply)
        except Exception as error:  # the status line was sent already
            yield sent_event(api_error_of(error).content())
            return
        for index, (text, reason) in enumerate(choices):
            if index:
                yield self._chunk(index, {"role": "assistant", "content": ""})
            for chunk in chunks(text):
                yield self._chunk(index, {"content": chunk})
            is_last = index == len(choices) - 1
            yield self._chunk(index, {}, reason, **({"listenwell": self._details(reply)} if is_last else {}))
        if self._body.stream_options and self._body.stream_options.include_usage:
            usage = await run_in_threadpool(self._usage, choices)
            yield sent_event(self._head | {"object": _CHUNK, "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    def _chunk(self, index: int, delta: dict[str, str], reason: str | None = None, **extra: object) -> bytes:
        choice = {"index": index, "delta": delta, "finish_reason": reason, "logprobs": None}
        return sent_event(self._head | {"object": _CHUNK, "choices": [choice]} | extra)

    def _choices(self, reply: Reply) -> list[tuple[str, str]]:
        """Texts with their finish reasons."""
        texts, limit = choices_of(reply, self._body.n or 1), self._body.limit
        if limit is None or is_replaced(reply):
            if limit is not None and self._count(reply.text) > limit:
                self._warnings.append(NOT_TRUNCATED)
            return [(text, "stop") for text in texts]
        cuts = [truncated(text, limit, self._count) for text in texts]
        return [(cut, "stop" if cut == text else "length") for cut, text in zip(cuts, texts, strict=True)]

    def _details(self, reply: Reply) -> dict[str, Any]:
        return reply.to_dict() | {"notices": [*self._notices, *reply.notices], "warnings": self._warnings}

    def _usage(self, choices: list[tuple[str, str]]) -> dict[str, int]:
        prompt = sum(self._count(turn.text) for turn in self._dialogue.turns)
        completion = sum(self._count(text) for text, _ in choices)
        total = prompt + completion
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}

    def _count(self, text: str) -> int:
        """The number of tokens for the model; of words if it has no vocabulary here."""
        # A remote generator has no runtime here, so it is no part of the protocol.
        runtime = getattr(self._service.models.get(self._body.model)[1].generate, "runtime", None)
        return len(runtime.encode(text)) if runtime else len(text.split())
