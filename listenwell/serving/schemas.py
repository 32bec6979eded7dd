"""Request and response bodies with their limits: the source of the OpenAPI description."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, StringConstraints

from listenwell.dialogue import LISTENER, SPEAKER, ConversationState, Dialogue, Factors, Persona, Turn
from listenwell.generators.plans import wanted
from listenwell.labels import ACTS, EMOTIONS, EXPRESSED_EMOTIONS, MECHANISMS

MOST_CHARACTERS = 20_000
"""Characters of one turn; the listener would truncate a longer one."""
MOST_TURNS = 200
"""Turns before the message."""
MOST_LINES = 100
"""Sentences of a persona."""
LINE = 500
"""Characters of such a sentence."""
MOST_REPLIES = 100
"""Replies per ranking request."""
SEEDS = 2**31


def _not_blank(text: str) -> str:
    if text.isspace():
        raise ValueError("the text is empty")
    return text


Text = Annotated[str, StringConstraints(min_length=1, max_length=MOST_CHARACTERS), AfterValidator(_not_blank)]
PersonaLine = Annotated[str, StringConstraints(min_length=1, max_length=LINE), AfterValidator(_not_blank)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=40)]
PersonaLines = Annotated[
    list[PersonaLine],
    Field(max_length=MOST_LINES, description="Sentences about the listener, in the first person."),
]
ModelName = Annotated[
    str | None, Field(max_length=100, description="One of /v1/models; the first by default.")
]
Seed = Annotated[
    int | None,
    Field(ge=0, lt=SEEDS, description="The same seed gives the same reply when no other request waits."),
]
Candidates = Annotated[
    int | None, Field(ge=1, le=64, description="Generate at most this many candidates, whatever the load.")
]
Key = Annotated[
    str | None,
    Field(
        pattern=r"^[A-Za-z0-9_-]{8,64}$",
        description="Idempotency key: a repeated request returns the first result and stores nothing.",
    ),
]
Stream = Annotated[bool, Field(description="Respond with server-sent events.")]


class In(BaseModel):
    """A request body. Unknown fields are errors, so that no typo is ignored silently."""

    model_config = ConfigDict(extra="forbid")


class TurnIn(In):
    """One utterance."""

    speaker: Literal["speaker", "listener"] = Field(description="speaker: the user. listener: the model.")
    text: Text

    def turn(self) -> Turn:
        """Convert to a `Turn`."""
        return Turn(self.speaker, self.text)


class Target(In):
    """Factors that the reply must have; the planner decides the others."""

    emotion: Label | None = Field(None, description=f"The user's emotion: {', '.join(EMOTIONS)}.")
    mechanisms: list[Label] | None = Field(
        None, max_length=3, description=f"Exactly these of {', '.join(MECHANISMS)}; an empty list for none."
    )
    act: Label | None = Field(
        None, description=f"The dialogue act: {', '.join(ACTS)}.", examples=["questioning"]
    )
    expressed_emotion: Label | None = Field(
        None,
        validation_alias=AliasChoices("expressed_emotion", "tone"),
        description=f"The expressed emotion: {', '.join(EXPRESSED_EMOTIONS)}.",
    )

    def factors(self) -> Factors | None:
        """The factors; None if there are none. An unknown label is an error that names similar ones."""
        factors = wanted(self.emotion, self.mechanisms, self.act, self.expressed_emotion)
        return None if factors == Factors() else factors


TargetField = Annotated[Target | None, Field(validation_alias=AliasChoices("target", "want"))]
"""`want` is the name of earlier versions."""


class ReplyOptions(In):
    """How to reply."""

    target: TargetField = None
    seed: Seed = None
    model: ModelName = None
    candidates: Candidates = None
    stream: Stream = False

    def target_factors(self) -> Factors | None:
        """The factors that the reply must have, if any."""
        return self.target.factors() if self.target else None


class DialogueIn(In):
    """A message with its history and persona."""

    text: Text = Field(description="The user's message.", examples=["I finally got promoted today!"])
    history: list[TurnIn] = Field([], max_length=MOST_TURNS, description="The previous turns, in order.")
    persona: PersonaLines = []

    def dialogue(self) -> Dialogue:
        """Convert to a `Dialogue`."""
        turns = (*(turn.turn() for turn in self.history), Turn(SPEAKER, self.text))
        return Dialogue(turns, personas=personas(self.persona))


class ReplyIn(DialogueIn, ReplyOptions):
    """A request for one reply; nothing is stored."""


class AnnotateIn(In):
    """A dialogue to annotate."""

    turns: list[TurnIn] = Field(min_length=1, max_length=MOST_TURNS)
    top: int = Field(5, ge=1, le=41, description="How many labels to return per head.")

    def dialogue(self) -> Dialogue:
        """Convert to a `Dialogue`."""
        return Dialogue(tuple(turn.turn() for turn in self.turns))


class RankIn(DialogueIn):
    """Replies to rank."""

    replies: list[Text] = Field(min_length=1, max_length=MOST_REPLIES)


class ConversationIn(In):
    """A new conversation."""

    persona: PersonaLines = []
    model: ModelName = None
    key: Key = None


class ConversationChange(In):
    """Changes to a conversation; omitted fields stay as they are."""

    persona: PersonaLines | None = None
    model: ModelName = None


class AgainIn(ReplyOptions):
    """How to reply to the last message again."""

    key: Key = None


class MessageIn(AgainIn):
    """A message of the user in a conversation."""

    text: Text


class CurrentIn(In):
    """Which of several replies the conversation continues from."""

    version: int = Field(ge=1, le=10_000)


class ScoredOut(BaseModel):
    """A label and its probability."""

    label: str
    probability: float | None


class PlanOut(BaseModel):
    """The planned factors of a reply; undecided ones are left out."""

    emotion: str | None = None
    mechanisms: list[str] | None = None
    act: str | None = None
    expressed_emotion: str | None = None


class CandidateOut(BaseModel):
    """A candidate reply."""

    text: str
    plan: PlanOut | None = None
    scores: dict[str, float | None] = {}


class ReplyOut(BaseModel):
    """A reply with its emotion, plan, candidates, safety notes and timings."""

    reply: str
    model: str
    seed: int
    emotion: list[ScoredOut] | None = Field(
        description="The user's predicted emotion, the most probable first."
    )
    state: ConversationState | None = None
    plan: PlanOut | None = Field(description="The plan of the reply.")
    candidates: list[CandidateOut] = Field(description="All candidates, the best first.")
    safety: dict[str, str] | None = Field(description="The guard's notes.")
    timings: dict[str, float | None] = Field(description="Seconds per stage; queue is the time in the queue.")
    notices: list[str] = []


class KeptReplyOut(ReplyOut):
    """A reply of a conversation."""

    target: PlanOut | None = Field(description="The requested factors, if any.")


class RankedOut(BaseModel):
    """A ranked reply."""

    text: str
    score: float | None = Field(description="Higher is better.")
    index: int = Field(description="Its index in the request, from 0.")
    old_index: int = Field(alias="place", description="The same as index; deprecated.")


class RankOut(BaseModel):
    """Replies, the best first."""

    ranker: str
    replies: list[RankedOut]


class ReadingOut(BaseModel):
    """The prediction of one annotator head for a turn."""

    head: str
    scores: list[ScoredOut]
    words: list[str] = []


class TurnOut(BaseModel):
    """An annotated turn."""

    speaker: str
    text: str
    factors: dict[str, Any] | None = None
    readings: list[ReadingOut] = []


class AnnotateOut(BaseModel):
    """The annotated dialogue."""

    turns: list[TurnOut]


class ExchangeOut(BaseModel):
    """A message and every reply to it."""

    number: int = Field(description="From 1.")
    said: str
    created: float = Field(description="Seconds since 1970.")
    current: int | None = Field(description="The version that the conversation continues from.")
    replies: list[KeptReplyOut] = Field(description="Version 1 first.")


class ConversationBase(BaseModel):
    """What every description of a conversation has."""

    id: str
    model: str | None
    persona: list[str]
    created: float
    changed: float


class SummaryOut(ConversationBase):
    """A conversation, without its turns."""

    exchanges: int
    begins: str = Field(description="The beginning of its first message.")


class SummariesOut(BaseModel):
    """A visitor's conversations, the latest first."""

    conversations: list[SummaryOut]


class ConversationOut(ConversationBase):
    """A conversation."""

    exchanges: list[ExchangeOut]


class AnsweredOut(BaseModel):
    """A stored reply."""

    number: int = Field(description="Of the exchange, from 1.")
    version: int = Field(description="Of the reply, from 1.")
    reply: KeptReplyOut


class DeletedOut(BaseModel):
    """How many conversations were deleted."""

    deleted: int


class ModelState(BaseModel):
    """The state of a model."""

    name: str
    state: Literal["asleep", "loading", "ready", "failed"]


class ModelAbout(BaseModel):
    """The abilities of a model."""

    name: str
    plans: bool | None = Field(description="Whether it plans and can be steered; null until it is loaded.")


class HealthOut(BaseModel):
    """The state of the service."""

    status: Literal["loading", "ready", "failed"] = Field(description="State of the first model.")
    message: str
    models: list[ModelState]
    waiting: int = Field(description="Requests in the queue.")
    running: int = Field(description="Requests being processed.")
    version: str


class AboutOut(BaseModel):
    """What the web page needs to know."""

    name: str
    version: str
    notice: str
    stored: str = Field(description="What is stored and where, in one sentence.")
    is_stored: bool
    country: str | None
    needs_key: bool
    models: list[ModelAbout] = Field(description="The first is the default.")
    labels: dict[str, list[str]] = Field(description="Labels of each factor of a target.")
    limits: dict[str, int]


class ErrorDetail(BaseModel):
    """The error."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorOut(BaseModel):
    """The body of every error response."""

    error: ErrorDetail


def personas(lines: list[str]) -> tuple[Persona, ...]:
    """The listener's persona, if it has lines."""
    return (Persona(LISTENER, tuple(lines)),) if lines else ()


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of an endpoint for OpenAPI, with those that every endpoint has."""
    meaning = {
        400: "The body is not valid JSON, or asks for something that cannot be done.",
        401: "The API key is missing or wrong.",
        404: "Not found.",
        408: "Receiving the body timed out.",
        409: "A limit is reached.",
        413: "The body is too large.",
        421: "The Host header names another host.",
        422: "A value is invalid; the message says which and why.",
        429: "Too many requests; see Retry-After.",
        500: "Internal error.",
        502: "The remote generator failed.",
        503: "The model is loading or the queue is full; see Retry-After.",
    }
    every = (400, 401, 408, 413, 421, 422, 429, 500)
    return {
        status: {"model": ErrorOut, "description": meaning[status]} for status in sorted({*every, *statuses})
    }
