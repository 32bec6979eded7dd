"""CoMAE as a generator: it predicts mechanisms, act and expressed emotion, then generates the reply."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from listenwell.checkpoint import find_checkpoint
from listenwell.dialogue import Candidate, Dialogue, Example, Factors
from listenwell.errors import InputError, WeightsError
from listenwell.generators.base import Generator, Prefix
from listenwell.generators.decoding import Decoding, probabilities, sample
from listenwell.generators.generation import generate_rows
from listenwell.metrics import Perplexity, perplexity_of
from listenwell.papers.comae.config import SHORT, SLOT_COUNT, SLOTS, ComaeConfig
from listenwell.papers.comae.inputs import NOTHING, Context, Inputs, TrainingExample
from listenwell.pipeline import Emotions, GenerateRequest, GeneratorOutput, OnText, Plan

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator
    from listenwell.papers.comae.runtime import ComaeRuntime, ComaeState

MOST = 64
_DRAWS = 4
"""Plans are drawn so many times as often as there are to be different ones."""
_OF_PLANS = 17
"""Keeps the draws of plans apart from those of words, which have the same seeds."""


@dataclass(frozen=True)
class ComaeSettings:
    """How a trained CoMAE model generates; as the paper decodes (§6.2, §6.4) where nothing else is said."""

    plans: int = 1
    """How many different plans a listener tries."""
    candidates: int = 1
    """How many replies in all, shared out evenly among the plans; one at least of each."""
    sampled: bool = True
    """Draw the factors by their probabilities; otherwise take the likeliest, one after the other."""
    factor_top_p: float = 0.9
    """Act and expressed emotion are drawn among the likeliest that hold this share (§6.4)."""
    annotate: bool = True
    """Let the shipped annotators label act and expressed emotion of turns where they are not known."""
    prompt_tokens: int = 512
    """Budget of the context."""
    decoding: Decoding = field(default_factory=lambda: Decoding(repetition_penalty=1.0))

    def __post_init__(self) -> None:
        for name in ("plans", "candidates"):
            if not 1 <= (count := getattr(self, name)) <= MOST:
                raise InputError(f"{name} is {count}.", f"Give 1 to {MOST}.")
        if self.prompt_tokens < 64 or not 0 < self.factor_top_p <= 1:
            raise InputError("prompt_tokens or factor_top_p is too small.", "Give 64 or more, and 0 to 1.")


class Comae(Generator, Plan):
    """Generates with any model of the family."""

    Config = ComaeSettings
    runtime: "ComaeRuntime"

    def __init__(self, config: ComaeSettings, runtime: "ComaeRuntime", name: str = "comae") -> None:
        self.config, self.runtime, self.name = config, runtime, name
        self._last: tuple[Dialogue, Context, ComaeState] | None = None

    @classmethod
    def load(cls, config: ComaeSettings, weights: Path | None = None) -> "Comae":
        """Load a run, or a checkpoint that it wrote; on a GPU where there is one."""
        if weights is None:
            raise WeightsError(
                "The model comae has no weights of its own.",
                "Train some with `listenwell train recipes/comae/comae.yaml`, then: --weights runs/comae",
            )
        from listenwell.papers.comae.checkpoint import load_model
        from listenwell.papers.comae.runtime import ComaeRuntime

        folder = find_checkpoint(weights)
        runtime = ComaeRuntime(*load_model(folder))
        runtime.use_gpu()
        generator = cls(
            config, runtime, f"comae {runtime.model.config.title} ({folder.resolve().parent.name})"
        )
        generator._folder = folder
        return generator

    @property
    def model_config(self) -> ComaeConfig:
        """Which model of the family it is."""
        return self._inputs.config

    def plan(
        self, dialogue: Dialogue, emotion: Emotions | None, target: Factors, seed: int
    ) -> tuple[Factors, ...]:
        """Different plans for the next reply, the likeliest first; `target` fixes parts of them.

        The user's emotion is none of CoMAE's factors, so the predicted one has no effect.
        """
        if not self.model_config.factors:
            return ()
        seeds = _seeds(seed, _DRAWS * self.config.plans)
        _, state = self._read([dialogue])
        state = self.runtime.pick(state, [0] * len(seeds))
        numbers, likely = self._decide(state, self._inputs.numbers(target)[None].repeat(len(seeds), 0), seeds)
        by_plan = dict(zip(map(tuple, numbers.tolist()), likely.tolist(), strict=True))
        drawn = sorted(list(by_plan)[: self.config.plans], key=lambda chosen: -by_plan[chosen])
        return tuple(self._inputs.plan(chosen, target.emotion) for chosen in drawn)

    def generate(
        self, dialogue: Dialogue, plans: Sequence[Factors], seed: int, on_text: OnText | None = None
    ) -> GeneratorOutput:
        """Replies under plans, which share the candidates; what a plan leaves open is decided here.

        No two have the same words, so they can be fewer than asked for.
        """
        return self.generate_batch([(dialogue, plans, seed)], on_text)[0]

    def generate_batch(
        self, requests: Sequence[GenerateRequest], on_text: OnText | None = None
    ) -> list[GeneratorOutput]:
        """The same for many dialogues in one batch: dialogue, plans and seed of each."""
        contexts, state = self._read([dialogue for dialogue, _, _ in requests])
        rows, plans, seeds = list[int](), list[Factors](), list[int]()
        for number, (_, targets, seed) in enumerate(requests):
            own = targets or [Factors()]
            count = max(self.config.candidates, len(own))
            rows += [number] * count
            plans += [own[index % len(own)] for index in range(count)]
            seeds += _seeds(seed, count)
        state = self.runtime.pick(state, rows)
        numbers, likely = self._decide(state, np.stack([self._inputs.numbers(plan) for plan in plans]), seeds)
        state = self.runtime.begin(state, numbers)
        stop = frozenset({self._inputs.end, self._inputs.start})
        starts = tuple((row, *chosen) for row, chosen in zip(rows, numbers.tolist(), strict=True))
        prefix = Prefix(state, stop, self.runtime.context_length - state.known.shape[1], starts=starts)
        generations = generate_rows(self.runtime, prefix, self.config.decoding, seeds, on_text)
        by_text: list[dict[str, Candidate]] = [{} for _ in requests]
        for row, plan, chosen, probability, reply in zip(
            rows, plans, numbers, likely, generations, strict=True
        ):
            scores = [("likelihood", round(reply.log_likelihood / reply.tokens, 4))]
            decided = None
            if self.model_config.factors:
                scores.append(("plan", round(float(probability), 4)))
                decided = self._inputs.plan(chosen, plan.emotion)
            by_text[row].setdefault(reply.text, Candidate(reply.text, decided, dict(scores)))
        return [
            GeneratorOutput(tuple(candidates.values()), (*context.notices, *self._ignored(targets)))
            for candidates, context, (_, targets, _) in zip(by_text, contexts, requests, strict=True)
        ]

    def factor_probabilities(self, dialogue: Dialogue, plan: Factors) -> dict[str, np.ndarray]:
        """How likely the choices are that a plan leaves open (Table 4), each given the factors before it.

        Where such a factor is open itself, its likeliest choice stands for it.

        Returns:
            Some of "mechanisms" (3,), the probability of yes for ER, IP, EX, "act" (9,) and
            "expressed_emotion" (10,).
        """
        _, state = self._read([dialogue])
        plans, by_factor = self._inputs.numbers(plan)[None], {}
        for name in self.model_config.factors:
            if getattr(plan, name) is None:
                choices = self.runtime.factor_probabilities(state, name, plans)
                by_factor[name] = choices[0, :, 1] if name == "mechanisms" else choices[0, 0]
                plans[:, SLOTS[name]] = choices.argmax(-1)
        return by_factor

    def perplexity(
        self, examples: Iterable[Example], factors: str = "gold", seeds: Iterable[int] | None = None
    ) -> Perplexity:
        """How likely the people's own replies are: by token (end marks included), by word and by byte.

        With gold factors each reply's own are on its tokens, with predicted ones the likeliest, one after the
        other. Nothing is drawn, so seeds have no effect.
        """
        from listenwell.papers.comae.scoring import FACTORS, score

        if factors not in FACTORS:
            raise InputError(f"factors is {factors!r}.", f"Give one of: {', '.join(FACTORS)}.")
        known = list(examples)
        contexts = self._annotated([example.context for example in known])
        encoded = [
            self._encode(Example(context, example.reply), factors)
            for context, example in zip(contexts, known, strict=True)
        ]
        nlls = score(self.runtime.model, encoded, (factors,)).nll[factors]
        texts = [example.reply.text for example in known]
        return perplexity_of(
            nlls.tolist(), [reply.weight for reply in encoded], texts, self.model_config.base
        )

    def conditions(self) -> dict[str, str]:
        """What a result says of it."""
        config = self.config
        how = (
            f"drawn, act and expressed emotion with top-p {config.factor_top_p:g}"
            if config.sampled
            else "the likeliest"
        )
        return {
            "model of the family": self.model_config.title,
            "factors that are not given": f"{how}, one after the other"
            if self.model_config.hierarchical
            else f"{how}, each from the context alone",
            "act and expressed emotion of the context": "as annotated, "
            f"{'by the shipped annotators' if config.annotate else 'left out'} where not known",
        }

    @property
    def _inputs(self) -> Inputs:
        return self.runtime.inputs

    @cached_property
    def _annotator(self) -> "Annotator":
        from listenwell.annotators.annotator import Annotator

        return Annotator.load(heads=("act", "expressed_emotion"))

    def _read(self, dialogues: Sequence[Dialogue]) -> tuple[list[Context], "ComaeState"]:
        """The contexts, read; one alone is remembered, since planning and speaking ask for the same."""
        last = self._last  # taken once: another thread may put its own there
        if last is not None and len(dialogues) == 1 and last[0] == dialogues[0]:
            return [last[1]], last[2]
        room = self.runtime.context_length - self.config.decoding.max_tokens - 1
        budget = min(self.config.prompt_tokens, room)
        contexts = [self._inputs.context(dialogue, budget) for dialogue in self._annotated(dialogues)]
        state = self.runtime.read([context.columns for context in contexts])
        if len(dialogues) == 1:
            self._last = (dialogues[0], contexts[0], state)
        return contexts, state

    def _annotated(self, dialogues: Sequence[Dialogue]) -> list[Dialogue]:
        """The dialogues with their turns' acts and expressed emotions, as far as this model reads them."""
        told = [name for name in ("act", "expressed_emotion") if name in self.model_config.factors]
        lacking = [
            index
            for index, dialogue in enumerate(dialogues)
            if any(
                getattr(turn.factors or Factors(), name) is None for turn in dialogue.turns for name in told
            )
        ]
        known = list(dialogues)
        if lacking and self.config.annotate:
            annotated = self._annotator.annotate_all([dialogues[index] for index in lacking], top=1)
            for index, dialogue in zip(lacking, annotated, strict=True):
                known[index] = dialogue
        return known

    def _decide(
        self, state: "ComaeState", plans: np.ndarray, seeds: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Whole plans (rows, SLOT_COUNT), and how likely each is: log P(C, A, E|x) (§3, Eq. 1)."""
        plans, likely = plans.copy(), np.zeros(len(plans))
        draws = np.stack([np.random.default_rng([seed, _OF_PLANS]).random(SLOT_COUNT) for seed in seeds])
        for name in self.model_config.factors:
            choices = self.runtime.factor_probabilities(state, name, plans)
            top_p = 1.0 if name == "mechanisms" else self.config.factor_top_p
            how = Decoding(temperature=float(self.config.sampled), top_p=top_p)
            for column, slot in enumerate(SLOTS[name]):
                for row in np.flatnonzero(plans[:, slot] == NOTHING):
                    weights = probabilities(np.log(choices[row, column] + 1e-30), how)
                    plans[row, slot] = sample(weights, draws[row, slot])
                likely += np.log(choices[np.arange(len(plans)), column, plans[:, slot]] + 1e-30)
        return plans, likely

    def _encode(self, example: Example, factors: str) -> TrainingExample:
        encoded = self._inputs.encode(example, self.runtime.context_length)
        if encoded is None:
            raise InputError("A reply is longer than the model can read.", "Leave it out.")
        if factors == "gold" and not self._inputs.is_known(encoded.factors):
            raise InputError("A reply has no factors to be measured with.", "Annotate the corpus first.")
        return encoded

    def _ignored(self, plans: Sequence[Factors]) -> tuple[str, ...]:
        """A notice of what was asked for that this model cannot be told."""
        used = self.model_config.factors
        unused = [
            name
            for name in SHORT
            if name not in used and any(getattr(plan, name) is not None for plan in plans)
        ]
        return (f"The model {self.model_config.title} is not told: {', '.join(unused)}.",) if unused else ()


def _seeds(seed: int, count: int) -> list[int]:
    """Seeds of several rows; the first ones do not depend on how many there are."""
    return [int(np.random.SeedSequence([seed, index]).generate_state(1)[0]) for index in range(count)]
