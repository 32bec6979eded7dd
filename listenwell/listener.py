"""The listener: understand → plan → speak → choose → guard.

Each place is a protocol that any object with the method fills; a place left empty is passed over. The
order and the bookkeeping (seed, timings, notices) are here, the abilities are elsewhere.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from listenwell.dialogue import (
    SPEAKER,
    Candidate,
    Dialogue,
    Factors,
    Notes,
    Persona,
    Reply,
    Scored,
    Turn,
)
from listenwell.errors import InputError, unknown_name
from listenwell.generators import GENERATORS
from listenwell.generators.base import Speech
from listenwell.recipe import read_recipe

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator

RETRIEVAL = "retrieval"
PLACES = ("understand", "plan", "choose", "guard")
"""What can be left empty, in the order of their work."""
MAX_CHARACTERS = 20_000
"""A longer text is cut before anything reads it; the model's own token budget is far below."""


class Understand(Protocol):
    """Hears what the other person feels."""

    def understand(self, dialogue: Dialogue) -> tuple[Scored, ...]:
        """Emotions with probabilities, the most likely first."""
        ...


class Plan(Protocol):
    """Decides what replies should do before any is worded."""

    def plan(
        self, dialogue: Dialogue, emotion: tuple[Scored, ...] | None, want: Factors, seed: int
    ) -> tuple[Factors, ...]:
        """One plan or several to try, the likeliest first; all have the parts that are wanted."""
        ...


class Speak(Protocol):
    """Words replies."""

    name: str

    def speak(
        self,
        dialogue: Dialogue,
        plans: Sequence[Factors],
        seed: int,
        on_text: Callable[[str], None] | None = None,
    ) -> Speech:
        """Replies under several plans, or under none; `on_text` hears the first of them as it is made."""
        ...


class Choose(Protocol):
    """Picks among the replies that were proposed."""

    def choose(self, dialogue: Dialogue, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """The candidates with their scores, the best first."""
        ...


@dataclass(frozen=True)
class Verdict:
    """What a guard says of a reply: the text that may be said, and why."""

    text: str
    safety: Notes


class Guard(Protocol):
    """Has the last word: whether what was chosen may be said."""

    def guard(self, dialogue: Dialogue, reply: str) -> Verdict:
        """The reply itself, or another in its place."""
        ...


@dataclass(frozen=True)
class Listener:
    """Someone to talk to. `Listener.load()` gives the default one."""

    speak: Speak
    understand: Understand | None = None
    plan: Plan | None = None
    choose: Choose | None = None
    guard: Guard | None = None

    @classmethod
    def load(  # noqa: PLR0913 - named settings that users give one or two of, and never by place
        cls,
        model: str = "prompted",
        *,
        recipe: Path | str | None = None,
        weights: Path | str | None = None,
        pool: Path | str | None = None,
        plans: int | None = None,
        candidates: int | None = None,
        without: Sequence[str] = (),
    ) -> "Listener":
        """A listener ready to talk.

        Args:
            model: the name of a generator; an unknown one is an error with the near names.
            recipe: a YAML file with the generator's settings; its defaults otherwise.
            weights: your own folder with base weights (or a GGUF file), instead of the installed ones.
            pool: of the model retrieval, the replies to choose from: a file, a corpus, or CORPUS:SPLIT.
            plans: how many different plans are tried; the model's own number otherwise.
            candidates: how many replies are proposed; the model's own number otherwise.
            without: parts that are switched off: places of the listener (understand, plan, choose, guard) or
                judges of its choice (`choosing.config.JUDGES`), such as ("ranker", "realized").
        """
        off = _switched_off(without)
        generator: Any = GENERATORS.load(model)
        config = read_recipe(generator.Config, Path(recipe)) if recipe else generator.Config()
        settings = {"pool": str(pool) if pool else None, "plans": plans, "candidates": candidates}
        config = _with_settings(model, config, **settings)
        speak = generator.load(config, Path(weights) if weights else None)
        # A pool's replies are ranked already; of one reply there is nothing to choose.
        several = model != RETRIEVAL and getattr(config, "candidates", 1) > 1
        plan = speak if hasattr(speak, "plan") and "plan" not in off else None
        if plan is None:
            off |= {"plan", "realized"}  # what was not planned cannot be weighed
        if not several or "choose" in off:
            off |= {"choose", "realized"}
        annotators = _annotators(off)
        return cls(
            speak=speak,
            understand=None if "understand" in off else annotators,
            plan=plan,
            choose=None if "choose" in off else _choice(off, annotators),
        )

    def reply(  # noqa: PLR0913 - as above
        self,
        said: str | Dialogue,
        *,
        history: Dialogue | None = None,
        persona: Sequence[str] = (),
        want: Factors | None = None,
        seed: int | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        """Answer what was said.

        Args:
            said: the other person's words, or a whole dialogue that ends with them.
            history: the talk before `said`, where that is a text.
            persona: sentences about the listener, in the first person.
            want: what the reply must do, such as Factors(act="questioning"); the rest is decided as usual.
            seed: the same seed gives the same reply; without one, each call draws its own.
            on_text: called with each piece of the reply as soon as it is certain to be said.
        """
        dialogue, notices = _as_dialogue(said, history, persona)
        seed = secrets.randbelow(2**31) if seed is None else seed
        if seed < 0:
            raise InputError(f"The seed is {seed}.", "Give a whole number from 0 up.")
        if want is not None and self.plan is None:
            raise InputError(
                f"The model {self.speak.name} makes no plans, so none can be asked for.",
                "Use the model planned, or leave the wish out.",
            )
        clock = _Clock()
        with clock.measured("understand"):
            emotion = self.understand.understand(dialogue) if self.understand else None
        with clock.measured("plan"):
            plans = self.plan.plan(dialogue, emotion, want or Factors(), seed) if self.plan else ()
        # Words can only be shown while they are made if nothing after them may change or replace them.
        certain = self.choose is None and self.guard is None
        with clock.measured("speak"):
            speech = self.speak.speak(dialogue, plans, seed, on_text if certain else None)
        with clock.measured("choose"):
            candidates = self.choose.choose(dialogue, speech.candidates) if self.choose else speech.candidates
        with clock.measured("guard"):
            verdict = self.guard.guard(dialogue, candidates[0].text) if self.guard else None
        text = verdict.text if verdict else candidates[0].text
        if on_text and not certain:
            on_text(text)
        return Reply(
            text=text,
            model=self.speak.name,
            seed=seed,
            emotion=emotion,
            plan=candidates[0].plan,
            candidates=candidates,
            safety=verdict.safety if verdict else None,
            timings=clock.timings(),
            notices=tuple(dict.fromkeys((*notices, *speech.notices))),
        )


def _with_settings(model: str, config: Any, **settings: object) -> Any:  # noqa: ANN401
    """A generator's settings with those that were asked for; one that it does not have is an error."""
    asked = {name: value for name, value in settings.items() if value is not None}
    if model == RETRIEVAL and "candidates" in asked:
        asked["top"] = asked.pop("candidates")  # there, candidates are what the quick search hands on
    for name in asked:
        if not hasattr(config, name):
            raise InputError(f"The model {model} has no {name}.", f"Leave {name} out, or name another model.")
    return replace(config, **asked)


def _switched_off(names: Sequence[str]) -> frozenset[str]:
    """What is to be left out; an unknown name is an error that shows the known ones."""
    from listenwell.choosing.config import JUDGES

    known = (*PLACES, *(judge for judge in JUDGES if judge not in PLACES))
    for name in names:
        if name not in known:
            raise unknown_name("part of the listener", name, known)
    return frozenset(names)


def _choice(off: frozenset[str], annotators: "Annotator | None") -> Choose:
    from listenwell.choosing.choice import Choice
    from listenwell.choosing.config import JUDGES, ChoiceConfig

    return Choice.load(ChoiceConfig(without=tuple(judge for judge in JUDGES if judge in off)), annotators)


def _annotators(off: frozenset[str]) -> "Annotator | None":
    """One for all that is read: what the other person feels, and whether replies do what was planned."""
    from listenwell.annotators.annotator import Annotator
    from listenwell.annotators.replies import REPLY_HEADS

    heads = (() if "understand" in off else ("emotion",)) + (() if "realized" in off else REPLY_HEADS)
    return Annotator.load(heads=heads) if heads else None


class _Clock:
    """Seconds spent in each place."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def measured(self, place: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self._seconds[place] = time.perf_counter() - begin

    def timings(self) -> tuple[tuple[str, float], ...]:
        rounded = {place: round(seconds, 4) for place, seconds in self._seconds.items()}
        return tuple((rounded | {"total": round(sum(self._seconds.values()), 4)}).items())


def _as_dialogue(
    said: str | Dialogue, history: Dialogue | None, persona: Sequence[str]
) -> tuple[Dialogue, tuple[str, ...]]:
    """What was said as one dialogue, and a notice if it had to be cut."""
    notices: tuple[str, ...] = ()
    if isinstance(said, str):
        if not said.strip():
            raise InputError("There is nothing to reply to: the text is empty.", "Say something.")
        if len(said) > MAX_CHARACTERS:
            left_out = len(said) - MAX_CHARACTERS
            notices = (f"The text was too long: its first {left_out} characters were left out.",)
            said = said[left_out:]
            if not said.strip():
                raise InputError("The end of this long text is blank.", "Send the part that matters.")
        turn = Turn(SPEAKER, said)
        dialogue = replace(history, turns=(*history.turns, turn)) if history else Dialogue((turn,))
    elif history is not None:
        raise InputError("Both a dialogue and a history were given.", "Put all turns into one of them.")
    else:
        dialogue = said
    if dialogue.turns[-1].speaker == dialogue.listener:
        raise InputError("The last turn is the listener's own.", "End the dialogue with the other person's.")
    if persona:
        others = tuple(known for known in dialogue.personas if known.speaker != dialogue.listener)
        own = Persona(dialogue.listener, tuple(persona))
        dialogue = replace(dialogue, personas=(*others, own))
    return dialogue, notices
