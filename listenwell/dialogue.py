"""The one typed dialogue that every part of listenwell reads and writes.

All types are frozen and validated when they are made, compare by value, pickle (for process pools) and go
to JSON and back without loss for any Unicode text, NUL and lone surrogates included.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from listenwell.errors import InputError
from listenwell.labels import (
    ACTS,
    EMOTIONS,
    EMOTIONS_AND_INTENTS,
    EXPRESSED_EMOTIONS,
    MECHANISMS,
    STRATEGIES,
    LabelSet,
    current_factor,
    expresses,
)
from listenwell.serialization import ALWAYS, FrozenMapping, Record, also_read_as, frozen, pairs, strings

SPEAKER = "speaker"
"""The person who is listened to, where a corpus gives no other name."""
LISTENER = "listener"
"""The one who replies, where a corpus gives no other name."""

INSTRUCTION = "instruction"
"""The note of a dialogue that holds a system message which is not a persona."""
CAREFUL = "careful"
"""The note of a dialogue whose reply must not cheer or advise: the person may be at risk."""
MANNER = "manner"
"""The note of a dialogue that says in which manner the listener replies, one of `labels.MANNERS`."""
STATE = "state"
"""The note of a dialogue that holds its state in a line; see conversation_state.py."""
OPEN_LOSS = "open loss"
"""The note of a dialogue in which a loss was told and no good news since: no glad tone fits."""
FIRST_PERSON = ("i ", "i'", "i’", "my ", "im ", "we ", "our ", "me ")
"""How the lines of a persona begin."""

Notes = tuple[tuple[str, str], ...]
"""What a corpus holds beside the text, as sorted (name, value) pairs; a mapping is accepted and frozen."""
NOTHING: FrozenMapping[float] = FrozenMapping()
Message = Mapping[str, str]
"""A chat message: {"role": "system" | "user" | "assistant", "content": text}."""


@dataclass(frozen=True, slots=True)
class Factors(Record):
    """What an utterance does and expresses; None means unknown.

    As labels they describe a reply, as a plan they say what it should do:
    CoMAE's hierarchy CM → DA → EM (§3), with the user's emotion before it.
    """

    emotion: str | None = None
    """What the other person feels: one of the 32 emotions."""
    mechanisms: tuple[str, ...] | None = None
    """Which of ER, IP, EX the utterance uses (CM); () means none of them."""
    act: str | None = None
    """Dialogue act (DA): one of 9."""
    expressed_emotion: str | None = field(default=None, metadata=also_read_as("tone"))
    """Expressed emotion (EM): one of 10."""
    intent: str | None = None
    """Emotion or intent of the utterance itself: one of 41 (EmpatheticIntents)."""
    strategy: str | None = None
    """ESConv's support strategy: one of 8."""
    levels: tuple[int, int, int] | None = None
    """EPITOME's levels 0, 1, 2 of ER, IP, EX, where they are known; they fix the mechanisms."""

    def __post_init__(self) -> None:
        checks: tuple[tuple[str, LabelSet], ...] = (
            ("emotion", EMOTIONS),
            ("act", ACTS),
            ("expressed_emotion", EXPRESSED_EMOTIONS),
            ("intent", EMOTIONS_AND_INTENTS),
            ("strategy", STRATEGIES),
        )
        for name, labels in checks:
            if (value := getattr(self, name)) is not None:
                labels.check(value)
        if self.mechanisms is not None:
            chosen = {MECHANISMS.check(name) for name in strings("mechanisms", self.mechanisms)}
            object.__setattr__(self, "mechanisms", tuple(name for name in MECHANISMS if name in chosen))
        if self.levels is not None:
            self._settle_levels()

    def _settle_levels(self) -> None:
        levels = tuple(self.levels or ())
        if len(levels) != len(MECHANISMS):
            raise InputError(f"Factors need three levels, not {len(levels)}.", "Give them for ER, IP and EX.")
        present = tuple(name for name, level in zip(MECHANISMS, levels, strict=True) if expresses(level))
        if self.mechanisms not in (None, present):
            raise InputError(
                f"The mechanisms {self.mechanisms} contradict the levels {levels}.", "Give one of the two."
            )
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "mechanisms", present)


@dataclass(frozen=True, slots=True)
class Scored(Record):
    """A label and how likely it is."""

    label: str
    probability: float


@dataclass(frozen=True, slots=True)
class Prediction(Record):
    """The output of one annotator head for a turn."""

    head: str
    """The head's name, such as "act"; `annotators.heads.HEADS` lists them."""
    scores: tuple[Scored, ...]
    """Labels with calibrated probabilities, the most likely first."""
    words: tuple[str, ...] = ()
    """The parts of the text that show it, where the annotator can mark them (EPITOME's rationales)."""

    def __post_init__(self) -> None:
        if type(self.head) is not str or not self.head:
            raise InputError(f"A prediction needs a head's name, not {self.head!r}.", "Name the head.")
        object.__setattr__(self, "head", current_factor(self.head))
        if not self.scores:
            raise InputError(f"The prediction {self.head!r} has no scores.", "Give it at least one.")
        for score in self.scores:
            if not 0 <= score.probability <= 1:  # NaN is none either
                raise InputError(
                    f"The prediction {self.head!r} has the probability {score.probability}.",
                    "Give numbers from 0 to 1.",
                )


Reading = Prediction
"""The name in earlier releases."""


@dataclass(frozen=True, slots=True)
class Turn(Record):
    """One utterance of one person."""

    speaker: str
    text: str
    factors: Factors | None = None
    notes: Notes = ()
    readings: tuple[Prediction, ...] = ()
    """The annotators' predictions; `factors` holds the labels that follow from them."""

    def __post_init__(self) -> None:
        # Readers make one of these for every line of a corpus: the common case is two quick tests.
        if type(self.text) is not str or not self.text or self.text.isspace():
            raise InputError(f"A turn needs text, not {self.text!r}.", "Leave empty turns out.")
        if type(self.speaker) is not str or not self.speaker:
            raise InputError(f"A turn needs a speaker's name, not {self.speaker!r}.", "Name who said it.")
        if self.notes != ():
            object.__setattr__(self, "notes", pairs("notes", self.notes, str))

    def note(self, name: str) -> str | None:
        """The corpus's note of that name, if there is one."""
        return dict(self.notes).get(name)

    def reading(self, head: str) -> Prediction | None:
        """The prediction of one head, if there is one."""
        return next((reading for reading in self.readings if reading.head == head), None)


@dataclass(frozen=True, slots=True)
class Persona(Record):
    """What is known of a person, as sentences in the first person (PEC §3)."""

    speaker: str
    lines: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", strings("persona lines", self.lines))
        if type(self.speaker) is not str or not self.speaker:
            raise InputError(f"A persona needs a speaker's name, not {self.speaker!r}.", "Name whose it is.")


@dataclass(frozen=True, slots=True)
class Dialogue(Record):
    """Turns in order, and what is known of the people in it."""

    turns: tuple[Turn, ...]
    id: str = ""
    personas: tuple[Persona, ...] = ()
    listener: str = LISTENER
    """Whose replies are learned, ranked or generated."""
    situation: str | None = None
    """What happened, in the speaker's own words, written before the dialogue (EmpatheticDialogues)."""
    emotion: str | None = None
    """What the speaker felt: one of the 32 emotions."""
    notes: Notes = ()

    def __post_init__(self) -> None:
        if type(self.turns) is not tuple:
            object.__setattr__(self, "turns", tuple(self.turns))
        if not self.turns:
            raise InputError(f"The dialogue {self.id!r} has no turns.", "Give it at least one.")
        if self.emotion is not None:
            EMOTIONS.check(self.emotion)
        if self.notes != ():
            object.__setattr__(self, "notes", pairs("notes", self.notes, str))
        if self.personas != ():
            object.__setattr__(self, "personas", tuple(self.personas))
            names = [persona.speaker for persona in self.personas]
            if len(set(names)) != len(names):
                raise InputError(f"The dialogue {self.id!r} has two personas of one person.", "Join them.")

    @classmethod
    def from_messages(cls, messages: Sequence[Message], persona: Sequence[str] = ()) -> "Dialogue":
        """A dialogue from chat messages; user is the speaker, assistant the listener.

        A system message whose lines are all written in the first person is the listener's persona; any other
        one is kept as the note `instruction`.

        Args:
            messages: dicts with "role" and "content".
            persona: more sentences about the listener, in the first person.
        """
        turns, lines, instructions = list[Turn](), list[str](), list[str]()
        for message in messages:
            if not isinstance(message, Mapping) or not {"role", "content"} <= set(message):
                raise InputError(
                    "A message lacks its role or content.", 'Give {"role": ..., "content": ...}.'
                )
            role, content = message["role"], message["content"]
            if role in ROLES:
                turns.append(Turn(ROLES[role], content))
            elif role != "system":
                raise InputError(f"A message has the role {role!r}.", "Use system, user or assistant.")
            elif is_persona(content):
                lines += [line.strip() for line in content.splitlines() if line.strip()]
            elif content.strip():
                instructions.append(content.strip())
        lines += persona
        return cls(
            tuple(turns),
            personas=(Persona(LISTENER, tuple(lines)),) if lines else (),
            notes=((INSTRUCTION, "\n".join(instructions)),) if instructions else (),
        )

    def to_messages(self) -> list[dict[str, str]]:
        """The dialogue as chat messages: everyone but the listener is the user."""
        persona = self.persona_of(self.listener)
        system = ["\n".join(persona.lines) if persona else None, self.note(INSTRUCTION)]
        messages = [{"role": "system", "content": text} for text in system if text]
        for turn in self.turns:
            role = "assistant" if turn.speaker == self.listener else "user"
            messages.append({"role": role, "content": turn.text})
        return messages

    def persona_of(self, speaker: str) -> Persona | None:
        """What is known of one of the people, if anything is."""
        return next((persona for persona in self.personas if persona.speaker == speaker), None)

    def note(self, name: str) -> str | None:
        """The corpus's note of that name, if there is one."""
        return dict(self.notes).get(name)

    def examples(self, everyone: bool = False) -> Iterator["Example"]:
        """Each reply with the turns before it: the listener's, or with `everyone` all but the first turn."""
        for position in range(1, len(self.turns)):
            reply = self.turns[position]
            if everyone or reply.speaker == self.listener:
                yield Example(replace(self, turns=self.turns[:position], listener=reply.speaker), reply)


ROLES = {"user": SPEAKER, "assistant": LISTENER}
"""Who says a chat message of each role."""


def is_persona(text: str) -> bool:
    """Whether every line of a system message is a sentence in the first person, as a persona's lines are."""
    lines = [line.strip().casefold() for line in text.splitlines() if line.strip()]
    return bool(lines) and all(line.startswith(FIRST_PERSON) for line in lines)


@dataclass(frozen=True, slots=True)
class Example(Record):
    """A reply to be learned or ranked, and the dialogue before it; `context.listener` is who replies."""

    context: Dialogue
    reply: Turn


@dataclass(frozen=True, slots=True)
class LabelledText(Record):
    """A text with its labels, from corpora that have no conversations."""

    text: str
    labels: tuple[str, ...]
    id: str = ""

    def __post_init__(self) -> None:
        if type(self.text) is not str or not self.text or self.text.isspace():
            raise InputError(f"A labelled text needs text, not {self.text!r}.", "Leave empty lines out.")
        if type(self.labels) is not tuple:
            object.__setattr__(self, "labels", strings("labels", self.labels))


@dataclass(frozen=True, slots=True)
class ConversationState(Record):
    """What was said before the last message and still matters."""

    event: str = ""
    """The gravest sentence of the person so far, in their own words; the first one where none is grave."""
    gravity: int = 0
    """0 for everyday matters, 1 for troubles, 2 and 3 for losses."""
    feeling: str = ""
    """What the person felt then: one of the 32 emotions, where the annotators were asked."""
    names: tuple[str, ...] = ()
    """Names, with who they are where that was said: "Milo (dog)"."""
    asked: tuple[str, ...] = ()
    """The listener's last questions."""

    def line(self) -> str:
        """What the generator reads before its reply."""
        parts = [f"Earlier: {self.event}"] if self.event else []
        if self.feeling:
            parts.append(f"Felt: {self.feeling}.")
        if self.names:
            parts.append(f"Names: {', '.join(self.names)}.")
        if self.asked:
            parts.append(f"Asked: {' '.join(self.asked)}")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Candidate(Record):
    """A reply the listener could give, the plan behind it and its scores by feature."""

    text: str
    plan: Factors | None = None
    scores: Mapping[str, float] = NOTHING
    """Also accepted as (name, value) pairs."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", frozen("scores", self.scores, float))


@dataclass(frozen=True, slots=True)
class Reply(Record):
    """What the listener replies, and how it came to it."""

    text: str = field(metadata={"key": "reply"})
    model: str
    seed: int
    emotion: tuple[Scored, ...] | None = field(default=None, metadata=ALWAYS)
    """What the other person feels, the most likely first."""
    plan: Factors | None = field(default=None, metadata=ALWAYS)
    """What the reply was planned to do."""
    candidates: tuple[Candidate, ...] = field(default=(), metadata=ALWAYS)
    """All replies that were considered, the best first."""
    safety: Mapping[str, str] | None = field(default=None, metadata=ALWAYS)
    """The guard's notes; see `safety.guard.NOTES`."""
    timings: Mapping[str, float] = field(default=NOTHING, metadata=ALWAYS)
    """Seconds by pipeline stage."""
    notices: tuple[str, ...] = ()
    """What the user should know, such as that a long text was cut."""
    state: ConversationState | None = None
    """What was said before and still matters, after a second message."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "timings", frozen("timings", self.timings, float))
        if self.safety is not None:
            object.__setattr__(self, "safety", frozen("safety", self.safety, str))
