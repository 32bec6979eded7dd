"""The planned generator: it decides what a reply should do, writes that down as tokens, then words it.

A plan is the user's emotion, mechanisms, act and expressed emotion (plans.py). Forcing a part of it steers,
reading it explains. Several plans are worded side by side in one batch that shares the dialogue's cache.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from pathlib import Path

import numpy as np

from listenwell.checkpoint import find_checkpoint, open_checkpoint
from listenwell.dialogue import Candidate, Dialogue, Example, Factors, Scored
from listenwell.errors import InputError
from listenwell.generators.base import GeneratorOutput, Prompt
from listenwell.generators.beams import SharedPrefix
from listenwell.generators.decoding import Decoding
from listenwell.generators.ending import Ending
from listenwell.generators.generation import Generation, generate_rows
from listenwell.generators.persona import Relevance, RelevanceConfig
from listenwell.generators.planner import Draw, Planner
from listenwell.generators.plans import LEVELS, PlanTokens, is_whole, plan_of
from listenwell.generators.prefix_cache import PrefixCache, Tokens
from listenwell.generators.prompt_template import PromptTemplate
from listenwell.generators.reward_model import RewardModel
from listenwell.generators.tidy import tidy
from listenwell.generators.vanilla import runtime_of
from listenwell.labels import EMOTIONS
from listenwell.metrics import Perplexity, perplexity_of
from listenwell.runtime.base import Runtime, State
from listenwell.runtime.engines import Engine

KIND = "planned"
SHIPPED = Path(__file__).parents[1] / "pretrained" / "generator"
MOST = 64
MARGINAL_PLANS = 16
"""Over so many sampled plans the marginal likelihood is averaged."""
RARE = 1e-4
"""A plan that is less likely than this is one the generator has hardly ever seen carried out."""


@dataclass(frozen=True)
class PlannedConfig:
    """Settings of the planned generator."""

    plans: int = 4
    """How many different plans are worded."""
    candidates: int = 12
    """How many replies in all, shared out evenly among the plans: the more there are, the better the chosen
    one is liked, and the longer it takes."""
    prompt_tokens: int = 512
    """Budget of the dialogue and the persona."""
    heard: float = 0.5
    """How much the annotators' emotion counts beside the speaker's own."""
    plan_temperature: float = 0.5
    """Below 1 prefers likely plans. At 1, one of four is often a plan of few percent, and "That's great!" is
    said to a loss."""
    mechanism_bias: float = 0.8
    """What a plan gains, in nats, for each mechanism of empathy that it uses: many people use none."""
    interpretation_bias: float = 1.5
    """What it gains besides for interpretation, to say what the other must feel."""
    others_penalty: float = 1.5
    """What a plan loses, in nats, for an act that is none of a listener's: what it says often misses."""
    opposite_penalty: float = 1.5
    """What it loses for a tone on the wrong side of what is felt: gladness at a loss, anger at a joy."""
    plan_beam: int = 16
    """Of so many of the likeliest mechanisms and acts the tones are looked at; 72 are all of them. Fewer cost
    less time and memory, and what is left out is hardly ever drawn."""
    tidy: bool = True
    """Capitals, apostrophes and full stops as in print; the corpus has them or not."""
    use_soft_prompt: bool = True
    """Speak with the voice that raters taught, where the generator has one (starts.py)."""
    soft_prompt_temperature: float = 0.8
    """Of replies with a voice, in place of the decoding's: they differ less, and odd ones are rarer."""
    engine: Engine = field(default_factory=Engine)
    """What runs the model."""
    decoding: Decoding = field(
        default_factory=lambda: Decoding(
            temperature=0.5, repetition_penalty=1.0, no_repeat=4, ending=Ending(max_sentences=3)
        )
    )

    def __post_init__(self) -> None:
        for name in ("plans", "candidates"):
            if not 1 <= getattr(self, name) <= MOST:
                raise InputError(f"{name} is {getattr(self, name)}.", f"Give 1 to {MOST}.")
        if self.prompt_tokens < 64:
            raise InputError(f"prompt_tokens is {self.prompt_tokens}.", "Give at least 64.")
        if not 0 <= self.heard <= 1 or not 0 < self.plan_temperature <= 10:
            raise InputError("heard must be 0 to 1, plan_temperature above 0.", "Correct the recipe.")
        if not 0 <= self.soft_prompt_temperature <= 10:
            raise InputError(f"voice_temperature is {self.soft_prompt_temperature}.", "Give 0 to 10.")


@dataclass(frozen=True)
class Conditioning:
    """How replies are worded: with the voice that raters taught, or without."""

    soft_prompt: Tokens
    decoding: Decoding
    reward_model: RewardModel | None = None
    """Who knows how well they would be liked; states after a voice mean something else than without."""


class PlannedGenerator:
    """Plans, then speaks; fills the listener's places *plan* and *speak*."""

    Config = PlannedConfig

    def __init__(self, config: PlannedConfig, runtime: Runtime, name: str = "planned") -> None:
        self.config, self.runtime, self.name = config, runtime, name
        tokens = PlanTokens.of(runtime.vocabulary)
        self._layout, self._planner = PromptTemplate(runtime.vocabulary, tokens), Planner(runtime, tokens)
        self._prefix_cache = PrefixCache(runtime, tokens)
        self._conditioning = self._plain = Conditioning((), config.decoding)
        if config.use_soft_prompt and runtime.soft_prompt:
            decoding = replace(config.decoding, temperature=config.soft_prompt_temperature)
            self.config = replace(config, decoding=decoding)
            self._conditioning = Conditioning(runtime.soft_prompt, decoding)
        self._relevance = Relevance(RelevanceConfig(tokens=config.prompt_tokens // 3))
        self._folder: Path | None = None

    @classmethod
    def load(cls, config: PlannedConfig, weights: Path | None = None) -> "PlannedGenerator":
        """The shipped generator, or one of your own: a run, or a checkpoint that it wrote."""
        checkpoint = open_checkpoint(find_checkpoint(weights or SHIPPED), KIND)
        run = f" ({checkpoint.folder.resolve().parent.name})" if weights else ""
        generator = cls(config, runtime_of(checkpoint, config.engine), f"planned{run}")
        generator._folder = checkpoint.folder
        generator._conditioning, generator._plain = (
            replace(conditioning, reward_model=RewardModel.of(checkpoint, bool(conditioning.soft_prompt)))
            for conditioning in (generator._conditioning, generator._plain)
        )
        return generator

    @property
    def use_soft_prompt(self) -> bool:
        """Whether it speaks with a voice."""
        return bool(self._conditioning.soft_prompt)

    def plan(
        self, dialogue: Dialogue, emotion: Sequence[Scored] | None, want: Factors, seed: int
    ) -> tuple[Factors, ...]:
        """Different plans for the next reply, the likeliest first; `want` fixes parts of them."""
        if is_whole(want):
            return (want,)
        return self.plan_batch([(dialogue, emotion or (), want, seed)])[0]

    def plan_batch(
        self, asked: Sequence[tuple[Dialogue, Sequence[Scored], Factors, int]]
    ) -> list[tuple[Factors, ...]]:
        """The same for many dialogues in one batch: each with what was heard and is wanted, and its seed."""
        config = self.config
        prompts, state = self._read([dialogue for dialogue, _, _, _ in asked])
        felt = self._planner.emotions(state, [heard for _, heard, _, _ in asked], config.heard)
        wants = [
            replace(want, emotion=want.emotion or EMOTIONS[int(probabilities.argmax())])
            for (_, _, want, _), probabilities in zip(asked, felt, strict=True)
        ]
        seeds = [seed for _, _, _, seed in asked]
        how = Draw(
            count=min(config.plans, config.candidates),
            temperature=config.plan_temperature,
            mechanism_bias=config.mechanism_bias,
            interpretation_bias=config.interpretation_bias,
            others_penalty=config.others_penalty,
            opposite_penalty=config.opposite_penalty,
            beam=config.plan_beam,
        )
        drafts = self._planner.draft(state, wants, seeds, how)
        found = [tuple(one.plan for one in plans) for plans in drafts.plans]
        self._prefix_cache.keep(tokens_of(prompts), found, drafts.state)
        return found

    def generate(
        self,
        dialogue: Dialogue,
        plans: Sequence[Factors],
        seed: int,
        on_text: Callable[[str], None] | None = None,
    ) -> GeneratorOutput:
        """Replies under whole plans, all in one batch; no two have the same words.

        Without plans, the reply comes from the dialogue alone, as a model without plans would give it.
        """
        return self.generate_batch([(dialogue, plans, seed)], on_text)[0]

    def generate_batch(
        self,
        asked: Sequence[tuple[Dialogue, Sequence[Factors], int]],
        on_text: Callable[[str], None] | None = None,
    ) -> list[GeneratorOutput]:
        """The same for many dialogues in one batch, which a GPU likes: each with its plans and its seed."""
        return self._generate(asked, self._conditioning, on_text)

    def generate_without_soft_prompt(
        self, asked: Sequence[tuple[Dialogue, Sequence[Factors], int]]
    ) -> list[GeneratorOutput]:
        """The same without its voice, which has a say of its own: who speaks plainly does as planned more
        often. Nothing, where it has none that it could leave out."""
        return (
            self._generate(asked, self._plain)
            if self.use_soft_prompt
            else [GeneratorOutput(()) for _ in asked]
        )

    def _generate(
        self,
        asked: Sequence[tuple[Dialogue, Sequence[Factors], int]],
        conditioning: Conditioning,
        on_text: Callable[[str], None] | None = None,
    ) -> list[GeneratorOutput]:
        config = self.config
        prompts = self._prompts([dialogue for dialogue, _, _ in asked])
        places = [
            (row, plan)
            for row, (_, plans, _) in enumerate(asked)
            for plan, count in enumerate(_shares(config.candidates, len(plans)))
            for _ in range(count)
        ]
        meant = [(row, asked[row][1][plan] if asked[row][1] else None) for row, plan in places]
        state = self._prefix_cache.after(tokens_of(prompts), conditioning.soft_prompt, meant)
        seeds = [
            int(drawn)
            for row, (_, _, seed) in enumerate(asked)
            for drawn in np.random.SeedSequence([seed, 29]).generate_state(
                sum(place == row for place, _ in places)
            )
        ]
        longest = max(len(prompt.tokens) for prompt in prompts)
        room = self.runtime.context_length - longest - len(conditioning.soft_prompt) - len(LEVELS)
        prefix = SharedPrefix(
            state, prompts[0].stop, room, heard=conditioning.reward_model is not None, starts=tuple(places)
        )
        generations = generate_rows(self.runtime, prefix, conditioning.decoding, seeds, on_text)
        found: list[dict[str, Candidate]] = [{} for _ in asked]
        for (row, under), reply in zip(meant, generations, strict=True):
            scores = {"likelihood": round(reply.log_likelihood / reply.tokens, 4)}
            if conditioning.reward_model:
                scores["reward"] = self._reward(conditioning, prompts[row].tokens, under, reply)
            # What was shown while it was made stays as it was shown.
            text = tidy(reply.text) if config.tidy and on_text is None else reply.text
            found[row].setdefault(text, Candidate(text, under, tuple(scores.items())))
        return [
            GeneratorOutput(tuple(candidates.values()), prompt.notices)
            for candidates, prompt in zip(found, prompts, strict=True)
        ]

    def hidden_states_of(self, dialogue: Dialogue, plan: Factors, replies: Sequence[str]) -> np.ndarray:
        """What it makes of replies under a plan, as `liking` reads it: (replies, width) float32."""
        before = self._prefix_cache.before(
            self._prompts([dialogue])[0].tokens, self._conditioning.soft_prompt, plan
        )
        # Without the end mark: it is never read when a reply is made.
        found: np.ndarray = self.runtime.mean_hidden_states(
            before, [self._layout.words(reply)[:-1] for reply in replies]
        )
        return found

    def with_rewards(self, dialogue: Dialogue, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Replies of its own, read once more, with how well they would be liked among their scores.

        Those without a plan, and all where nobody knows its states, stay as they are.
        """
        found, reward_model = list(candidates), self._conditioning.reward_model
        for place, one in enumerate(candidates):
            if reward_model and one.plan and "reward" not in dict(one.scores):
                hidden_state = self.hidden_states_of(dialogue, one.plan, [one.text])[0]
                scores = (*one.scores, ("reward", round(reward_model.score(hidden_state), 4)))
                found[place] = replace(one, scores=scores)
        return found

    def priors(self, replies: Sequence[str]) -> list[float]:
        """log P(y) of each reply by token, its end mark counted: how likely it is whatever was said."""
        words = [self._layout.words(reply) for reply in replies]
        found = self.runtime.log_likelihoods(self._layout.head, words)
        return [float(value) / len(tokens) for value, tokens in zip(found, words, strict=True)]

    def factor_probabilities(self, dialogue: Dialogue, given: Factors) -> dict[str, np.ndarray]:
        """How likely the choices of the first undecided level are; see `Planner.chances`."""
        return self._planner.factor_probabilities(self._read([dialogue])[1], given)

    def perplexity(
        self, examples: Iterable[Example], factors: str = "gold", seeds: Iterable[int] | None = None
    ) -> Perplexity:
        """How likely the people's own replies are, by token (end marks included), by word and by byte.

        Args:
            examples: with annotated replies, unless `factors` is none, predicted or marginal.
            factors: gold: after the reply's own plan; predicted: after the likeliest plan; none: after the
                dialogue alone, where it is known that no plan is written; marginal: the mean over
                MARGINAL_PLANS plans that were drawn.
            seeds: of each reply's draws; 0, 1, 2 and so on without.
        """
        if factors not in ("gold", "predicted", "none", "marginal"):
            raise InputError(f"factors is {factors!r}.", "Give gold, predicted, none or marginal.")
        nlls, counts, texts = list[float](), list[int](), list[str]()
        numbers, given = iter(seeds if seeds is not None else count()), iter(examples)
        while batch := list(islice(given, self.runtime.batch_size)):
            words = [self._layout.words(example.reply.text) for example in batch]
            found = self._likelihoods(batch, words, factors, list(islice(numbers, len(batch))))
            nlls += [-float(np.logaddexp.reduce(each) - np.log(len(each))) for each in found]
            counts += map(len, words)
            texts += [example.reply.text for example in batch]
        return perplexity_of(
            nlls, counts, texts, f"the speaker's own, {len(self.runtime.vocabulary):,} tokens"
        )

    def conditions(self) -> dict[str, str]:
        """What a result says of it."""
        config = self.config
        others = f", the others drawn at temperature {config.plan_temperature:g}" if config.plans > 1 else ""
        return {
            "plans": f"{config.plans}: the best one{others}; {config.mechanism_bias:g} nats more for each mechanism, "
            f"{config.interpretation_bias:g} besides for interpretation, {config.others_penalty:g} less for the act others, "
            f"{config.opposite_penalty:g} less for a tone on the wrong side of what is felt; "
            f"an emotion half the annotators' at heard 0.5: {config.heard:g}",
            "written": "tidied: capitals, apostrophes, full stops" if config.tidy else "as spoken",
            **(
                {"soft_prompt": f"{len(self._conditioning.soft_prompt)} tokens before the plan"}
                if self.use_soft_prompt
                else {}
            ),
        }

    def files(self) -> Iterator[Path]:
        """The checkpoint's files, for its hash."""
        if self._folder is not None:
            checkpoint = open_checkpoint(self._folder, KIND)
            yield from (checkpoint.path(name) for name in checkpoint.sums)

    def _likelihoods(
        self, examples: Sequence[Example], words: Sequence[list[int]], factors: str, seeds: Sequence[int]
    ) -> list[np.ndarray]:
        """log P(reply | dialogue, plan) under each of a reply's plans, or after the dialogue alone."""
        prompts, state = self._read([example.context for example in examples])
        starts = [list(prompt.tokens) for prompt in prompts]
        if factors == "none":
            alone = [(start, [reply]) for start, reply in zip(starts, words, strict=True)]
            less = self._planner.plan_dropout(state)
            return [
                each.astype(np.float64) - one
                for each, one in zip(self.runtime.log_likelihoods_each(alone), less, strict=True)
            ]
        plans = self._conditions_of(examples, state, factors, seeds)
        # How likely plan and reply are together, less how likely the plan is.
        both = [
            (start, [[*plan, *reply] for plan in own] + own)
            for start, own, reply in zip(starts, plans, words, strict=True)
        ]
        found = [each.astype(np.float64) for each in self.runtime.log_likelihoods_each(both)]
        return [each[: len(own)] - each[len(own) :] for each, own in zip(found, plans, strict=True)]

    def _conditions_of(
        self, examples: Sequence[Example], state: State, factors: str, seeds: Sequence[int]
    ) -> list[list[list[int]]]:
        """The tokens of each reply's plans: one, or several to average over."""
        if factors == "marginal":
            return self._planner.sample(state, MARGINAL_PLANS, seeds)
        if factors == "predicted":
            felt = [Factors(emotion=EMOTIONS[int(row.argmax())]) for row in self._planner.emotions(state)]
            drawn = self._planner.draw(state, felt, [0] * len(felt), Draw())
            return [[self._layout.plans.encode(plans[0].plan)] for plans in drawn]
        found = []
        for example in examples:
            if (plan := plan_of(example)) is None:
                raise InputError("A reply has no plan to be measured with.", "Annotate the corpus first.")
            found.append([self._layout.plans.encode(plan)])
        return found

    def _read(self, dialogues: Sequence[Dialogue]) -> tuple[list[Prompt], State]:
        """Dialogues, read up to where a plan begins, a row each."""
        prompts = self._prompts(dialogues)
        return prompts, self._prefix_cache.read(tokens_of(prompts))

    def _prompts(self, dialogues: Sequence[Dialogue]) -> list[Prompt]:
        """What stands before the plan of each dialogue's next reply."""
        room = (
            self.runtime.context_length
            - self.config.decoding.max_tokens
            - len(self._conditioning.soft_prompt)
            - 8
        )
        budget = min(self.config.prompt_tokens, room)
        prompts = list[Prompt]()
        for dialogue in dialogues:
            kept, notices = self._relevance.keep(dialogue, lambda line: len(self.runtime.encode(line)) + 1)
            prompt = self._layout.prompt(kept, budget)
            prompts.append(replace(prompt, notices=(*notices, *prompt.notices)))
        return prompts

    def _reward(
        self, conditioning: Conditioning, prompt: Tokens, plan: Factors | None, reply: Generation
    ) -> float:
        """How well a reply would be liked; one that was searched for, word by word, is read once more."""
        hidden_state = reply.hidden_state
        if hidden_state is None:
            before = self._prefix_cache.before(prompt, conditioning.soft_prompt, plan)
            hidden_state = self.runtime.mean_hidden_states(before, [self._layout.words(reply.text)[:-1]])[0]
        assert conditioning.reward_model is not None
        return round(conditioning.reward_model.score(hidden_state), 4)


def tokens_of(prompts: Sequence[Prompt]) -> tuple[Tokens, ...]:
    """What stands before the plan of each."""
    return tuple(prompt.tokens for prompt in prompts)


def _shares(total: int, plans: int) -> list[int]:
    """How many replies each plan gets; the first ones get what is left over. No plan is one of its own."""
    plans = max(1, plans)
    return [max(1, total // plans + (number < total % plans)) for number in range(plans)]
