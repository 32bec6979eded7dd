"""The listener: understand → plan → speak → choose → guard.

Each place is a protocol (places.py) that any object with the method fills; a place left empty is passed over.
The order and the bookkeeping (seed, timings, notices) are here, the abilities are elsewhere.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from listenwell.dialogue import (
    SPEAKER,
    Candidate,
    Dialogue,
    Factors,
    Persona,
    Reply,
    Scored,
    Turn,
)
from listenwell.errors import InputError, unknown_name
from listenwell.generators import DEFAULT, GENERATORS
from listenwell.generators.base import GeneratorOutput
from listenwell.pipeline import Generate, Guard, Plan, Rerank, Understand
from listenwell.recipe import read_recipe
from listenwell.reranking.config import READ

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator

RETRIEVAL = "retrieval"
PLACES = ("understand", "plan", "rerank", "guard")
"""What can be left empty, in the order of their work."""
SOFT_PROMPT = "soft_prompt"
"""What a generator learned from raters, as a part that can be switched off."""
MAX_CHARACTERS = 20_000
"""A longer text is cut before anything reads it; the model's own token budget is far below."""


@dataclass(frozen=True)
class Asked:
    """A dialogue that waits for a reply."""

    dialogue: Dialogue
    want: Factors | None = None
    seed: int = 0


@dataclass(frozen=True)
class Listener:
    """Someone to talk to. `Listener.load()` gives the default one."""

    generate: Generate
    understand: Understand | None = None
    plan: Plan | None = None
    rerank: Rerank | None = None
    guard: Guard | None = None

    @classmethod
    def load(  # noqa: PLR0913 - named settings that users give one or two of, and never by place
        cls,
        model: str = DEFAULT,
        *,
        recipe: Path | str | None = None,
        weights: Path | str | None = None,
        pool: Path | str | None = None,
        plans: int | None = None,
        candidates: int | None = None,
        precision: str | None = None,
        country: str | None = None,
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
            precision: int8, or fp32 for exact numbers at twice the time and memory.
            country: two letters, for the help lines that are named in a crisis.
            without: parts that are switched off: places of the listener (understand, plan, choose, guard),
                the speaker's voice, or judges of its choice (`reranking.config.JUDGES`), such as
                ("reader", "realized").
        """
        off = _switched_off(without)
        generator: Any = GENERATORS.load(model)
        config = read_recipe(generator.Config, Path(recipe)) if recipe else generator.Config()
        config = _with_settings(
            model,
            config,
            pool=str(pool) if pool else None,
            plans=plans,
            candidates=candidates,
            precision=precision,
            use_soft_prompt=False if SOFT_PROMPT in off else None,
        )
        generate = generator.load(config, Path(weights) if weights else None)
        # A pool's replies are ranked already; of one reply there is nothing to choose.
        several = model != RETRIEVAL and getattr(config, "candidates", 1) > 1
        plan = generate if hasattr(generate, "plan") and "plan" not in off else None
        if plan is None:
            off |= {"plan", *READ}  # what was not planned cannot be weighed
        if not several or "rerank" in off:
            off |= {"rerank", *READ}
        annotators = _annotators(off)
        return cls(
            generate=generate,
            understand=None if "understand" in off else annotators,
            plan=plan,
            rerank=None if "rerank" in off else _choice(off, annotators, generate),
            guard=None if "guard" in off else _guard(country),
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
        reply = self._answer([Asked(dialogue, want, seed)], on_text)[0]
        return replace(reply, notices=tuple(dict.fromkeys((*notices, *reply.notices))))

    def reply_many(self, asked: Sequence[Asked]) -> list[Reply]:
        """Answer several dialogues at once, each as it would be answered alone; in all, sooner."""
        for one in asked:
            _as_dialogue(one.dialogue, None, ())
        return self._answer(asked, None) if asked else []

    def _answer(self, asked: Sequence[Asked], on_text: Callable[[str], None] | None) -> list[Reply]:
        if self.plan is None and any(one.want is not None for one in asked):
            raise InputError(
                f"The model {self.generate.name} makes no plans, so none can be asked for.",
                "Use the model planned, or leave the wish out.",
            )
        clock, dialogues = _Clock(), [one.dialogue for one in asked]
        with clock.measured("understand"):
            heard = self._understood(dialogues)
        with clock.measured("guard"):
            stopped = [self.guard.check(dialogue) if self.guard else None for dialogue in dialogues]
        going_on = [place for place, verdict in enumerate(stopped) if verdict is None]
        with clock.measured("plan"):
            plans = self._planned([asked[place] for place in going_on], [heard[place] for place in going_on])
        # Words can only be shown while they are made if nothing after them may change or replace them.
        certain = self.rerank is None and self.guard is None
        waiting = [
            (dialogues[place], made, asked[place].seed) for place, made in zip(going_on, plans, strict=True)
        ]
        with clock.measured("generate"):
            spoken = self._spoken(waiting, on_text if certain else None)
        wants = [asked[place].want for place in going_on]
        chosen = dict(zip(going_on, self._chosen(waiting, wants, spoken, clock), strict=True))
        notices = {place: speech.notices for place, speech in zip(going_on, spoken, strict=True)}
        found = list[Reply]()
        for place, one in enumerate(asked):
            candidates, verdict = chosen.get(place, ()), stopped[place]
            with clock.measured("guard"):
                if self.guard and verdict is None:
                    verdict = self.guard.guard(one.dialogue, candidates)
            said = verdict.candidate if verdict else candidates[0]
            found.append(
                Reply(
                    text=verdict.text if verdict else candidates[0].text,
                    model=self.generate.name,
                    seed=one.seed,
                    emotion=heard[place],
                    plan=said.plan if said else None,
                    candidates=candidates,
                    safety=verdict.safety if verdict else None,
                    notices=tuple(dict.fromkeys(notices.get(place, ()))),
                )
            )
        if on_text and not (certain and going_on):
            on_text(found[0].text)
        return [replace(reply, timings=clock.timings()) for reply in found]

    def _understood(self, dialogues: Sequence[Dialogue]) -> list[tuple[Scored, ...] | None]:
        if self.understand is None:
            return [None] * len(dialogues)
        if many := getattr(self.understand, "understand_batch", None):
            return list(many(dialogues))
        return [self.understand.understand(dialogue) for dialogue in dialogues]

    def _planned(
        self, asked: Sequence[Asked], heard: Sequence[tuple[Scored, ...] | None]
    ) -> list[tuple[Factors, ...]]:
        if self.plan is None:
            return [()] * len(asked)
        given = [
            (one.dialogue, emotion, one.want or Factors(), one.seed)
            for one, emotion in zip(asked, heard, strict=True)
        ]
        many = getattr(self.plan, "plan_batch", None)
        if many and len(given) > 1:
            return list(many([(dialogue, emotion or (), *rest) for dialogue, emotion, *rest in given]))
        return [self.plan.plan(*one) for one in given]

    def _spoken(
        self,
        asked: Sequence[tuple[Dialogue, Sequence[Factors], int]],
        on_text: Callable[[str], None] | None,
    ) -> list[GeneratorOutput]:
        many = getattr(self.generate, "generate_batch", None)
        if many and len(asked) > 1:
            return list(many(asked))
        return [self.generate.generate(*one, on_text) for one in asked]

    def _chosen(
        self,
        waiting: Sequence[tuple[Dialogue, Sequence[Factors], int]],
        wants: Sequence[Factors | None],
        spoken: Sequence[GeneratorOutput],
        clock: "_Clock",
    ) -> list[tuple[Candidate, ...]]:
        """Each one's candidates, the best first. Where not even that one does what was asked for, the generator
        says it once more without its voice, if it has one, and the best of all is chosen."""
        chooser, proposed = self.rerank, [speech.candidates for speech in spoken]
        with clock.measured("rerank"):
            if chooser is None:
                return proposed
            found = [
                chooser.rerank(dialogue, candidates, want) if candidates else ()
                for (dialogue, _, _), candidates, want in zip(waiting, proposed, wants, strict=True)
            ]
        misses_target = getattr(chooser, "misses_target", None)
        plainly = getattr(self.generate, "generate_without_soft_prompt", None)
        if not (misses_target and plainly):
            return found
        amiss = [place for place, best in enumerate(found) if best and misses_target(best, wants[place])]
        with clock.measured("generate"):
            more = plainly([waiting[place] for place in amiss]) if amiss else []
        with clock.measured("rerank"):
            for place, speech in zip(amiss, more, strict=True):
                if speech.candidates:
                    every = proposed[place] + speech.candidates
                    found[place] = chooser.rerank(waiting[place][0], every, wants[place])
        return found


def _with_settings(model: str, config: Any, **settings: object) -> Any:  # noqa: ANN401
    """A generator's settings with those that were asked for; one that it does not have is an error."""
    asked = {name: value for name, value in settings.items() if value is not None}
    if model == RETRIEVAL and "candidates" in asked:
        asked["top"] = asked.pop("candidates")  # there, candidates are what the quick search hands on
    for name in asked:
        if not hasattr(config, "engine" if name == "precision" else name):
            called = SOFT_PROMPT if name == "use_soft_prompt" else name
            raise InputError(
                f"The model {model} has no {called}.", f"Leave {called} out, or name another model."
            )
    if "precision" in asked:
        asked["engine"] = replace(config.engine, precision=asked.pop("precision"))
    return replace(config, **asked)


def _switched_off(names: Sequence[str]) -> frozenset[str]:
    """What is to be left out; an unknown name is an error that shows the known ones."""
    from listenwell.reranking.config import FEATURES

    known = (*PLACES, SOFT_PROMPT, *(feature for feature in FEATURES if feature not in PLACES))
    for name in names:
        if name not in known:
            raise unknown_name("part of the listener", name, known)
    return frozenset(names)


def _choice(off: frozenset[str], annotators: "Annotator | None", generate: Generate) -> Rerank:
    from listenwell.reranking.config import FEATURES, RerankerConfig
    from listenwell.reranking.reranker import Reranker

    config = RerankerConfig(without=tuple(feature for feature in FEATURES if feature in off))
    return Reranker.load(config, annotators, getattr(generate, "priors", None))


def _guard(country: str | None) -> Guard:
    from listenwell.safety.guard import Guard as Safety

    return Safety.load(country)


def _annotators(off: frozenset[str]) -> "Annotator | None":
    """One for all that is read: what the other person feels, and whether replies do what was planned."""
    from listenwell.annotators.annotator import Annotator
    from listenwell.annotators.replies import REPLY_HEADS

    heads = (() if "understand" in off else ("emotion",)) + (() if off.issuperset(READ) else REPLY_HEADS)
    return Annotator.load(heads=heads) if heads else None


class _Clock:
    """Seconds spent in each place."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def measured(self, place: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self._seconds[place] = self._seconds.get(place, 0.0) + time.perf_counter() - begin

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
