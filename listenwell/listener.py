"""The listener: understand → plan → generate → rerank → guard.

Each stage is a Protocol of pipeline.py; a stage that is None is skipped. The order of the stages, seeds,
timings and notices are here, everything else is in the stages.
"""

import secrets
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

from listenwell.clock import Clock
from listenwell.conversation_state import understood, with_state
from listenwell.dialogue import (
    SPEAKER,
    Candidate,
    ConversationState,
    Dialogue,
    Factors,
    Message,
    Persona,
    Reply,
    Scored,
    Turn,
)
from listenwell.errors import InputError
from listenwell.generators import DEFAULT, GENERATORS
from listenwell.generators.base import Generator
from listenwell.loading import (
    load_annotator,
    load_guard,
    load_reranker,
    resolve,
    switched_off,
    with_settings,
)
from listenwell.pipeline import (
    Generate,
    GeneratorOutput,
    Guard,
    OnText,
    Plan,
    Rerank,
    Understand,
    with_care,
)
from listenwell.recipe import read_recipe
from listenwell.reranking.config import ANNOTATED
from listenwell.streams import CheckedText, ReplyStream

MAX_CHARACTERS = 20_000
"""A longer text is cut before any model sees it; the models' own token budgets are far below."""

Context = str | Dialogue | Sequence[Message]
"""What can be replied to: the other person's text, a dialogue, or chat messages."""


@dataclass(frozen=True)
class Request:
    """A dialogue that waits for a reply."""

    dialogue: Dialogue
    target: Factors | None = None
    seed: int = 0

    @property
    def want(self) -> Factors | None:
        """The target by its name in earlier releases."""
        return self.target


@dataclass(frozen=True)
class Listener:
    """Replies to dialogues. `Listener.from_pretrained()` gives the default one."""

    generate: Generate
    understand: Understand | None = None
    plan: Plan | None = None
    rerank: Rerank | None = None
    guard: Guard | None = None

    @classmethod
    def from_pretrained(  # noqa: PLR0913 - named settings, of which users give one or two
        cls,
        name_or_folder: str | Path = DEFAULT,
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
        """A listener that is ready to reply.

        Args:
            name_or_folder: the name of a model, or the folder of a checkpoint or a training run.
            recipe: a YAML file with the generator's settings.
            weights: your own folder with base weights, a GGUF file, or a checkpoint of the named model.
            pool: for the model retrieval, the replies to select from: a file, a corpus, or CORPUS:SPLIT.
            plans: how many different plans are tried.
            candidates: how many replies are generated and reranked.
            precision: int8 or fp32, which is exact and takes twice the time and memory.
            country: two letters, for the help lines that a crisis answer names.
            without: what is switched off: stages (understand, plan, rerank, guard), parts of the generator
                (soft_prompt), or reranking features (`reranking.config.FEATURES`).
        """
        model, weights = resolve(name_or_folder, weights)
        generator_class: type[Generator] = GENERATORS.load(model)
        parts = dict(generator_class.capabilities.parts)
        off = switched_off(without, parts)
        config = generator_class.Config()
        if recipe:
            config = read_recipe(generator_class.Config, Path(recipe))
        settings = {"pool": str(pool) if pool else None, "plans": plans, "candidates": candidates}
        settings |= {setting: False for part, setting in parts.items() if part in off}
        config = with_settings(model, config, precision, settings)
        generator = generator_class.load(config, Path(weights) if weights else None)
        plan = generator if isinstance(generator, Plan) and "plan" not in off else None
        if generator_class.capabilities.ranked or config.candidates == 1:
            off |= {"rerank"}
        if plan is None or "rerank" in off:
            off |= set(ANNOTATED)  # these features compare replies with their plans
        annotator = load_annotator(off)
        return cls(
            generate=generator,
            understand=None if "understand" in off else annotator,
            plan=plan,
            rerank=None if "rerank" in off else load_reranker(off, annotator),
            guard=None if "guard" in off else load_guard(country),
        )

    @classmethod
    def load(cls, model: str = DEFAULT, **settings: Any) -> "Listener":  # noqa: ANN401
        """Deprecated: use `from_pretrained`."""
        _deprecated("Listener.load", "Listener.from_pretrained")
        return cls.from_pretrained(model, **settings)

    @overload
    def reply(  # type: ignore[overload-overlap]  # a str is a sequence too
        self,
        context: str | Dialogue | Sequence[Message],
        *,
        history: Dialogue | None = ...,
        persona: Sequence[str] = ...,
        target: Factors | None = ...,
        seed: int | None = ...,
        on_text: OnText | None = ...,
        want: Factors | None = ...,
    ) -> Reply: ...

    @overload
    def reply(
        self,
        context: Sequence[Context],
        *,
        persona: Sequence[str] = ...,
        target: Factors | None = ...,
        seed: int | None = ...,
    ) -> list[Reply]: ...

    def reply(  # noqa: PLR0913 - as above
        self,
        context: Context | Sequence[Context],
        *,
        history: Dialogue | None = None,
        persona: Sequence[str] = (),
        target: Factors | None = None,
        seed: int | None = None,
        on_text: OnText | None = None,
        want: Factors | None = None,
    ) -> Reply | list[Reply]:
        """Reply to one context, or to a list of them in one batch.

        Args:
            context: the other person's text, a dialogue or a list of chat messages that end with it; or a
                list of these, which gives a list of replies, each as it would be alone.
            history: the dialogue before `context`, where that is a text.
            persona: sentences about the listener, in the first person.
            target: what the reply must do, such as Factors(act="questioning"); the rest is planned as usual.
            seed: the same seed gives the same reply; by default each reply draws its own.
            on_text: is called with each chunk of the reply as soon as it is certain.
            want: deprecated name of `target`.
        """
        if want is not None:
            _deprecated("want=", "target=")
            target = target or want
        if seed is not None and seed < 0:
            raise InputError(f"The seed is {seed}.", "Give a whole number from 0 up.")
        is_batch = _is_batch(context)
        if is_batch and (on_text or history):
            raise InputError("A batch has no history and is not streamed.", "Reply to each context alone.")
        contexts: Sequence[Context] = context if is_batch else [context]  # type: ignore[assignment,list-item]
        prepared = [_as_dialogue(each, history, persona) for each in contexts]
        requests = [
            Request(dialogue, target, secrets.randbelow(2**31) if seed is None else seed)
            for dialogue, _ in prepared
        ]
        replies = [
            replace(reply, notices=tuple(dict.fromkeys((*notices, *reply.notices))))
            for reply, (_, notices) in zip(self._answer(requests, on_text), prepared, strict=True)
        ]
        return replies if is_batch else replies[0]

    def stream(
        self,
        context: Context,
        *,
        history: Dialogue | None = None,
        persona: Sequence[str] = (),
        target: Factors | None = None,
        seed: int | None = None,
    ) -> ReplyStream:
        """An iterator over the chunks of a reply; its attribute `reply` is the whole `Reply`.

        Without rerank, as with a single candidate, it comes while it is generated: token by token, or with
        the guard on, sentence by sentence. With rerank, the text is certain when that has finished.
        """
        return ReplyStream(
            lambda on_text: self.reply(
                context, history=history, persona=persona, target=target, seed=seed, on_text=on_text
            )
        )

    def reply_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Reply to several dialogues, each with its own target and seed, in one batch."""
        for request in requests:
            _as_dialogue(request.dialogue, None, ())
        return self._answer(requests, None)

    def reply_many(self, requests: Sequence[Request]) -> list[Reply]:
        """Deprecated: use `reply_batch`."""
        _deprecated("Listener.reply_many", "Listener.reply_batch")
        return self.reply_batch(requests)

    def _answer(self, requests: Sequence[Request], on_text: OnText | None) -> list[Reply]:
        if self.plan is None and any(request.target is not None for request in requests):
            raise InputError(
                f"The model {self.generate.name} makes no plans, so it cannot follow a target.",
                "Use the model planned, or leave the target out.",
            )
        clock, dialogues = Clock(), [request.dialogue for request in requests]
        with clock.measure("understand"):
            annotate = self.understand.understand_batch if self.understand else None
            emotions, states = understood(dialogues, annotate)
        with clock.measure("guard"):
            guard = self.guard
            assessments = [guard.assess(dialogue) if guard else None for dialogue in dialogues]
            fixed = [assessment.verdict if assessment else None for assessment in assessments]
        rows = [row for row, verdict in enumerate(fixed) if verdict is None]
        feelings = [emotion[0].label if emotion else None for emotion in emotions]
        known = list(map(with_state, dialogues, states, feelings))
        for row, assessment in enumerate(assessments):
            if assessment is not None and assessment.careful:
                known[row] = with_care(known[row])
        # Text can only be streamed while it is generated if no later stage may reorder the candidates.
        stream = on_text if self.rerank is None and rows else None
        if stream and guard:
            allows, first = guard.allows, assessments[rows[0]]
            stream = CheckedText(stream, lambda text: allows(text, first))
        proposed = self._propose(
            [replace(requests[row], dialogue=known[row]) for row in rows],
            [emotions[row] for row in rows],
            stream,
            clock,
        )
        outputs = dict(zip(rows, proposed, strict=True))
        replies = list[Reply]()
        for row, request in enumerate(requests):
            output = outputs.get(row, GeneratorOutput(()))
            verdict = fixed[row]
            with clock.measure("guard"):
                if guard and verdict is None:
                    verdict = guard.select(request.dialogue, output.candidates, assessments[row])
            selected = verdict.candidate if verdict else output.candidates[0]
            text = verdict.text if verdict else output.candidates[0].text
            if isinstance(stream, CheckedText):
                text = stream.finish(text)
            replies.append(
                Reply(
                    text=text,
                    model=self.generate.name,
                    seed=request.seed,
                    emotion=emotions[row],
                    state=states[row] if states[row] != ConversationState() else None,
                    plan=selected.plan if selected else None,
                    candidates=output.candidates,
                    safety=dict(verdict.safety) if verdict else None,
                    notices=tuple(dict.fromkeys(output.notices)),
                )
            )
        if on_text and not stream:
            on_text(replies[0].text)
        return [replace(reply, timings=clock.timings()) for reply in replies]

    def _propose(
        self,
        requests: Sequence[Request],
        emotions: Sequence[tuple[Scored, ...] | None],
        on_text: OnText | None,
        clock: Clock,
    ) -> list[GeneratorOutput]:
        """Plan, generate and rerank: the candidates of each request, the best first."""
        with clock.measure("plan"):
            plans: Sequence[tuple[Factors, ...]] = [()] * len(requests)
            if self.plan and requests:
                plans = self.plan.plan_batch(
                    [
                        (request.dialogue, emotion, request.target or Factors(), request.seed)
                        for request, emotion in zip(requests, emotions, strict=True)
                    ]
                )
        planned = [
            (request.dialogue, own, request.seed) for request, own in zip(requests, plans, strict=True)
        ]
        with clock.measure("generate"):
            outputs = self.generate.generate_batch(planned, on_text) if planned else []
        with clock.measure("rerank"):
            if self.rerank is None:
                return outputs
            ranked = [
                self._ranked(request, output.candidates)
                for request, output in zip(requests, outputs, strict=True)
            ]
            missed = [
                row
                for row, (request, best) in enumerate(zip(requests, ranked, strict=True))
                if best and self.rerank.misses_target(best, request.target)
            ]
        with clock.measure("generate"):
            retried = self.generate.retry_batch([planned[row] for row in missed]) if missed else []
        with clock.measure("rerank"):
            for row, retry in zip(missed, retried, strict=True):
                if retry.candidates:
                    ranked[row] = self._ranked(requests[row], outputs[row].candidates + retry.candidates)
        return [
            replace(output, candidates=candidates) for output, candidates in zip(outputs, ranked, strict=True)
        ]

    def _ranked(self, request: Request, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        if self.rerank is None or not candidates:
            return tuple(candidates)
        return self.rerank.rerank(request.dialogue, candidates, request.target)


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name == "Asked":
        _deprecated("listenwell.listener.Asked", "listenwell.listener.Request")
        return Request
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _deprecated(old: str, new: str) -> None:
    warnings.warn(f"{old} is deprecated; use {new}.", DeprecationWarning, stacklevel=3)


def _is_batch(context: object) -> bool:
    """Whether a list holds several contexts, and is not one conversation of messages."""
    return isinstance(context, list | tuple) and not (
        context and all(isinstance(item, Mapping) for item in context)
    )


def _as_dialogue(
    context: Context, history: Dialogue | None, persona: Sequence[str]
) -> tuple[Dialogue, tuple[str, ...]]:
    """A context as a dialogue, and a notice if it had to be cut."""
    notices: tuple[str, ...] = ()
    if isinstance(context, str):
        if not context.strip():
            raise InputError("There is nothing to reply to: the text is empty.", "Give a text.")
        if len(context) > MAX_CHARACTERS:
            left_out = len(context) - MAX_CHARACTERS
            notices = (f"The text was too long: its first {left_out} characters were left out.",)
            context = context[left_out:]
            if not context.strip():
                raise InputError("The end of this long text is blank.", "Send the part that matters.")
        turn = Turn(SPEAKER, context)
        dialogue = replace(history, turns=(*history.turns, turn)) if history else Dialogue((turn,))
    elif history is not None:
        raise InputError("Both a dialogue and a history were given.", "Put all turns into one of them.")
    else:
        dialogue = context if isinstance(context, Dialogue) else Dialogue.from_messages(context)
    if dialogue.turns[-1].speaker == dialogue.listener:
        raise InputError("The last turn is the listener's own.", "End the dialogue with the other person's.")
    if persona:
        others = tuple(known for known in dialogue.personas if known.speaker != dialogue.listener)
        dialogue = replace(dialogue, personas=(*others, Persona(dialogue.listener, tuple(persona))))
    return dialogue, notices
