"""What comes in and goes out, with its limits: the source of the OpenAPI page."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Factors, Persona, Turn
from listenwell.generators.plans import wanted
from listenwell.labels import ACTS, EMOTIONS, MECHANISMS, TONES

MOST_CHARACTERS = 20_000
"""Of one turn; the listener would cut a longer one."""
MOST_TURNS = 200
"""Before what is said."""
MOST_LINES = 100
"""Sentences of a persona."""
LINE = 500
"""Characters of one of them."""
MOST_REPLIES = 100
"""Ranked at once."""
SEEDS = 2**31
KEY = r"^[A-Za-z0-9_-]{8,64}$"


def _said(text: str) -> str:
    if not text or text.isspace():
        raise ValueError("the text is empty")
    return text


Text = Annotated[str, StringConstraints(min_length=1, max_length=MOST_CHARACTERS), AfterValidator(_said)]
Line = Annotated[str, StringConstraints(min_length=1, max_length=LINE), AfterValidator(_said)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=40)]
PersonaLines = Annotated[
    list[Line],
    Field(max_length=MOST_LINES, description="Sentences about the listener, in the first person."),
]
ModelName = Annotated[
    str | None, Field(max_length=100, description="One of /v1/models; the first of them otherwise.")
]
Seed = Annotated[
    int | None, Field(ge=0, lt=SEEDS, description="The same seed gives the same reply, asked alone.")
]
Candidates = Annotated[
    int | None,
    Field(
        ge=1,
        le=64,
        description="Choose the reply from so many at most, and never from fewer because others wait.",
    ),
]
Key = Annotated[str | None, Field(pattern=KEY)]
Stream = Annotated[bool, Field(description="Answer as server-sent events.")]


class In(BaseModel):
    """A request: an unknown field is an error, so that a mistyped one never passes in silence."""

    model_config = ConfigDict(extra="forbid")


class TurnIn(In):
    """One utterance."""

    speaker: Literal["speaker", "listener"] = Field(description="speaker is who is listened to.")
    text: Text

    def turn(self) -> Turn:
        """As listenwell's own."""
        return Turn(self.speaker, self.text)


class Want(In):
    """What the reply must do; what is left out is decided as usual."""

    emotion: Label | None = Field(None, description=f"What the person feels: {', '.join(EMOTIONS)}.")
    mechanisms: list[Label] | None = Field(
        None, max_length=3, description=f"Exactly these of {', '.join(MECHANISMS)}; an empty list for none."
    )
    act: Label | None = Field(None, description=f"What it does: {', '.join(ACTS)}.", examples=["questioning"])
    tone: Label | None = Field(None, description=f"What it expresses: {', '.join(TONES)}.")

    def factors(self) -> Factors | None:
        """As a plan; None where nothing is asked for. An unknown label is an error with the near ones."""
        if all(part is None for part in (self.emotion, self.mechanisms, self.act, self.tone)):
            return None
        return wanted(self.emotion, self.mechanisms, self.act, self.tone)


class Steered(In):
    """How to answer."""

    want: Want | None = None
    seed: Seed = None
    model: ModelName = None
    candidates: Candidates = None
    stream: Stream = False

    def wish(self) -> Factors | None:
        """What the reply must do, if anything."""
        return self.want.factors() if self.want else None


class Talk(In):
    """What was said, and what is known."""

    text: Text = Field(description="What the person says.", examples=["I finally got promoted today!"])
    history: list[TurnIn] = Field([], max_length=MOST_TURNS, description="The turns before, in order.")
    persona: PersonaLines = []

    def dialogue(self) -> Dialogue:
        """As listenwell's own."""
        turns = (*(turn.turn() for turn in self.history), Turn(SPEAKER, self.text))
        return Dialogue(turns, personas=personas(self.persona))


class ReplyIn(Talk, Steered):
    """One question to the listener; nothing of it is kept."""


class AnnotateIn(In):
    """A dialogue to be read."""

    turns: list[TurnIn] = Field(min_length=1, max_length=MOST_TURNS)
    top: int = Field(5, ge=1, le=41, description="How many labels of each head to give.")

    def dialogue(self) -> Dialogue:
        """As listenwell's own."""
        return Dialogue(tuple(turn.turn() for turn in self.turns))


class RankIn(Talk):
    """Replies to be put in order."""

    replies: list[Text] = Field(min_length=1, max_length=MOST_REPLIES)


class ConversationIn(In):
    """A new conversation."""

    persona: PersonaLines = []
    model: ModelName = None
    key: Key = Field(
        None,
        description="Your own name for it: begun again under it after a lost connection, it is the same.",
    )


class ConversationChange(In):
    """What to change of a conversation; what is left out stays."""

    persona: PersonaLines | None = None
    model: ModelName = None


class MessageIn(Steered):
    """What the person says in a conversation."""

    text: Text
    key: Key = Field(
        None,
        description="Your own name for this message: sent again after a lost connection, it is kept once.",
    )


class AgainIn(Steered):
    """How to answer the last message again."""

    key: Key = Field(
        None,
        description="Your own name for this reply: asked for again after a lost connection, it is the same.",
    )


class CurrentIn(In):
    """Which of several replies the conversation goes on from."""

    version: int = Field(ge=1, le=10_000)


class ScoredOut(BaseModel):
    """A label and how likely it is."""

    label: str
    probability: float | None


class PlanOut(BaseModel):
    """What a reply was meant to do; what was not decided is left out."""

    emotion: str | None = None
    mechanisms: list[str] | None = None
    act: str | None = None
    tone: str | None = None


class CandidateOut(BaseModel):
    """Something the listener could have said."""

    text: str
    plan: PlanOut | None = None
    scores: dict[str, float | None] = {}


class ReplyOut(BaseModel):
    """A reply with everything the listener knows about why."""

    reply: str
    model: str
    seed: int
    emotion: list[ScoredOut] | None = Field(description="What it heard, the most likely first.")
    plan: PlanOut | None = Field(description="What it meant to do.")
    candidates: list[CandidateOut] = Field(description="What else it could have said, the best first.")
    safety: dict[str, str] | None = Field(description="Why the reply was stopped or replaced, if it was.")
    timings: dict[str, float | None] = Field(description="Seconds by part; queue is the wait before them.")
    notices: list[str] = []


class KeptReplyOut(ReplyOut):
    """A reply of a conversation."""

    want: PlanOut | None = Field(description="What it was asked to do, if anything.")


class RankedOut(BaseModel):
    """A reply in its order."""

    text: str
    score: float | None = Field(description="The higher the better.")
    place: int = Field(description="Its number in what was sent, from 0.")


class RankOut(BaseModel):
    """Replies, the best first."""

    ranker: str
    replies: list[RankedOut]


class ReadingOut(BaseModel):
    """What one annotator makes of a turn."""

    head: str
    scores: list[ScoredOut]
    words: list[str] = []


class TurnOut(BaseModel):
    """A turn with what was read in it."""

    speaker: str
    text: str
    factors: dict[str, Any] | None = None
    readings: list[ReadingOut] = []


class AnnotateOut(BaseModel):
    """The dialogue, read."""

    turns: list[TurnOut]


class ExchangeOut(BaseModel):
    """What was said and every reply to it."""

    number: int = Field(description="From 1.")
    said: str
    created: float = Field(description="Seconds since 1970.")
    current: int | None = Field(description="The version that the conversation goes on from.")
    replies: list[KeptReplyOut] = Field(description="Version 1 first.")


class SummaryOut(BaseModel):
    """A conversation, without its turns."""

    id: str
    model: str | None
    persona: list[str]
    created: float
    changed: float
    exchanges: int
    begins: str = Field(description="Its first words.")


class SummariesOut(BaseModel):
    """A visitor's conversations, the latest first."""

    conversations: list[SummaryOut]


class ConversationOut(BaseModel):
    """A conversation."""

    id: str
    model: str | None
    persona: list[str]
    created: float
    changed: float
    exchanges: list[ExchangeOut]


class AnsweredOut(BaseModel):
    """A reply that is kept."""

    number: int = Field(description="Of the exchange, from 1.")
    version: int = Field(description="Of the reply, from 1.")
    reply: KeptReplyOut


class DeletedOut(BaseModel):
    """How many conversations were deleted."""

    deleted: int


class ModelState(BaseModel):
    """A model that may be chosen."""

    name: str
    state: Literal["asleep", "loading", "ready", "failed"]


class ModelAbout(BaseModel):
    """What a model can do."""

    name: str
    plans: bool | None = Field(
        description="Whether it makes plans, so that it can be steered; null until it is loaded."
    )


class HealthOut(BaseModel):
    """How the service is."""

    status: Literal["loading", "ready", "failed"] = Field(description="Of the first model.")
    message: str
    models: list[ModelState]
    waiting: int = Field(description="Requests in the line.")
    running: int = Field(description="Requests that are being answered.")
    version: str


class AboutOut(BaseModel):
    """What a page needs to know."""

    name: str
    version: str
    notice: str
    stored: str = Field(description="What is kept and where, in one sentence.")
    is_stored: bool
    country: str | None
    needs_key: bool
    models: list[ModelAbout] = Field(description="The first is used where none is named.")
    labels: dict[str, list[str]] = Field(description="What can be asked for, by part of a plan.")
    limits: dict[str, int]


class ErrorDetail(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorOut(BaseModel):
    """Every error has this shape."""

    error: ErrorDetail


def personas(lines: list[str]) -> tuple[Persona, ...]:
    """The listener's persona, if there is any."""
    return (Persona(LISTENER, tuple(lines)),) if lines else ()


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors an endpoint can answer with, for the OpenAPI page; those of every endpoint included."""
    meaning = {
        400: "The body is no JSON.",
        401: "The API key is missing or wrong.",
        404: "There is no such thing here.",
        408: "The body took too long to arrive.",
        409: "There is no room for more.",
        413: "The body is too large.",
        421: "The service is called by a name it does not have.",
        422: "A value cannot be used; the message says which and why.",
        429: "Too many requests; Retry-After says when to come back.",
        500: "Something went wrong here.",
        502: "The endpoint behind this service failed.",
        503: "The model is being loaded or the queue is full; Retry-After says when to come back.",
    }
    every = (400, 401, 408, 413, 421, 422, 429, 500)
    return {
        status: {"model": ErrorOut, "description": meaning[status]} for status in sorted({*every, *statuses})
    }
