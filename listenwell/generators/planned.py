"""The planned generator: it predicts a plan as tokens, then generates the reply's text after them.

A plan is the user's emotion, mechanisms, act and expressed emotion (plans.py). Forcing a part of it steers
the reply, reading it explains the reply. Replies under several plans are generated in one batch that shares
the dialogue's prefix cache.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path

import numpy as np

from listenwell.checkpoint import find_checkpoint, open_checkpoint
from listenwell.dialogue import CAREFUL, MANNER, OPEN_LOSS, STATE, Candidate, Dialogue, Example, Factors
from listenwell.errors import InputError
from listenwell.generators.base import Capabilities, Generator, Prefix, Prompt
from listenwell.generators.decoding import Decoding
from listenwell.generators.generation import Generation, generate_rows, tidy
from listenwell.generators.persona import Relevance
from listenwell.generators.planned_config import PlannedConfig
from listenwell.generators.planner import Care, Draw, Planner
from listenwell.generators.plans import CROWD, LEVELS, PlanTokens, is_whole, plan_of
from listenwell.generators.prefix_cache import PrefixCache, Tokens
from listenwell.generators.prompt_template import PromptTemplate
from listenwell.generators.reward_model import RewardModel
from listenwell.generators.vanilla import runtime_of
from listenwell.labels import EMOTIONS
from listenwell.metrics import Perplexity, perplexity_of
from listenwell.pipeline import Emotions, GenerateRequest, GeneratorOutput, OnText, Plan, PlanRequest
from listenwell.runtime.base import Runtime, State

KIND = "planned"
SHIPPED = Path(__file__).parents[1] / "pretrained" / "generator"
MARGINAL_PLANS = 16
"""The marginal likelihood is the mean over this many sampled plans."""


@dataclass(frozen=True)
class Conditioning:
    """How replies are generated: with the soft prompt, or without."""

    soft_prompt: Tokens
    decoding: Decoding
    reward_model: RewardModel | None = None
    """Scores the replies' hidden states; each conditioning has its own, since a soft prompt changes them."""


class PlannedGenerator(Generator, Plan):
    """Fills the stages *plan* and *generate* with one causal language model."""

    Config = PlannedConfig
    capabilities = Capabilities(parts=(("soft_prompt", "use_soft_prompt"), ("state", "use_state")))

    def __init__(self, config: PlannedConfig, runtime: Runtime, name: str = "planned") -> None:
        self.config, self.runtime, self.name = config, runtime, name
        tokens = PlanTokens.of(runtime.vocabulary)
        self._template = PromptTemplate(runtime.vocabulary, tokens, config.manner)
        self._planner = Planner(runtime, tokens)
        self._prefix_cache = PrefixCache(runtime, tokens)
        self._conditioning = self._plain = Conditioning((), config.decoding)
        if config.use_soft_prompt and runtime.soft_prompt:
            decoding = replace(config.decoding, temperature=config.soft_prompt_temperature)
            self.config = replace(config, decoding=decoding)
            self._conditioning = Conditioning(runtime.soft_prompt, decoding)
        self._relevance = Relevance(config.prompt_tokens // 3)
        self._last_prompts: tuple[tuple[int, ...], tuple[Dialogue, ...], list[Prompt]] | None = None

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
        """Whether replies are generated with a soft prompt."""
        return bool(self._conditioning.soft_prompt)

    def plan(
        self, dialogue: Dialogue, emotion: Emotions | None, target: Factors, seed: int
    ) -> tuple[Factors, ...]:
        """Different plans for the next reply, the likeliest first; `target` fixes parts of them."""
        return self.plan_batch([(dialogue, emotion, target, seed)])[0]

    def plan_batch(self, requests: Sequence[PlanRequest]) -> list[tuple[Factors, ...]]:
        """`plan` for several dialogues in one batch."""
        if all(is_whole(target) for _, _, target, _ in requests):
            return [(target,) for _, _, target, _ in requests]
        config = self.config
        prompts, state = self._read([dialogue for dialogue, _, _, _ in requests])
        annotated = [emotion or () for _, emotion, *_ in requests]
        emotions = self._planner.emotions(state, annotated, config.annotator_weight)
        targets = [
            replace(target, emotion=target.emotion or EMOTIONS[int(probabilities.argmax())])
            for (_, _, target, _), probabilities in zip(requests, emotions, strict=True)
        ]
        care = [_care(dialogue) for dialogue, *_ in requests]
        drafts = self._planner.draft(state, targets, [seed for *_, seed in requests], config.draw(), care)
        plans = [tuple(planned.plan for planned in drafted) for drafted in drafts.plans]
        self._prefix_cache.keep(tokens_of(prompts), plans, drafts.state)
        return plans

    def generate(
        self, dialogue: Dialogue, plans: Sequence[Factors], seed: int, on_text: OnText | None = None
    ) -> GeneratorOutput:
        """Replies under whole plans, in one batch; no two have the same text.

        Without plans, the reply depends on the dialogue alone.
        """
        return self.generate_batch([(dialogue, plans, seed)], on_text)[0]

    def generate_batch(
        self, requests: Sequence[GenerateRequest], on_text: OnText | None = None
    ) -> list[GeneratorOutput]:
        """`generate` for several dialogues in one batch."""
        return self._generate(requests, self._conditioning, on_text)

    def retry_batch(self, requests: Sequence[GenerateRequest]) -> list[GeneratorOutput]:
        """Replies without the soft prompt, which follow their plans more often; none where it is off."""
        if not self.use_soft_prompt:
            return super().retry_batch(requests)
        return self._generate(requests, self._plain)

    def _generate(
        self, requests: Sequence[GenerateRequest], conditioning: Conditioning, on_text: OnText | None = None
    ) -> list[GeneratorOutput]:
        config = self.config
        prompts = self._prompts([dialogue for dialogue, _, _ in requests])
        # Each reply's request and the number of its plan there.
        branches = [
            (row, number)
            for row, (_, plans, _) in enumerate(requests)
            for number, count in enumerate(_shares(config.candidates, len(plans)))
            for _ in range(count)
        ]
        planned = [(row, requests[row][1][number] if requests[row][1] else None) for row, number in branches]
        state = self._prefix_cache.after(tokens_of(prompts), conditioning.soft_prompt, planned)
        seeds = [
            int(drawn)
            for row, (_, _, seed) in enumerate(requests)
            for drawn in np.random.SeedSequence([seed, 29]).generate_state(
                sum(own == row for own, _ in branches)
            )
        ]
        longest = max(len(prompt.tokens) for prompt in prompts)
        room = self.runtime.context_length - longest - len(conditioning.soft_prompt) - len(LEVELS)
        prefix = Prefix(
            state,
            prompts[0].stop,
            room,
            keeps_hidden_states=conditioning.reward_model is not None,
            starts=tuple(branches),
        )
        generations = generate_rows(self.runtime, prefix, conditioning.decoding, seeds, on_text)
        candidates: list[dict[str, Candidate]] = [{} for _ in requests]
        for (row, plan), generation in zip(planned, generations, strict=True):
            scores = {"likelihood": round(generation.log_likelihood / generation.tokens, 4)}
            if conditioning.reward_model:
                scores["reward"] = self._reward(conditioning, prompts[row].tokens, plan, generation)
            # What was streamed stays as it was shown.
            text = tidy(generation.text) if config.tidy and on_text is None else generation.text
            candidates[row].setdefault(text, Candidate(text, plan, scores))
        return [
            GeneratorOutput(tuple(proposed.values()), prompt.notices)
            for proposed, prompt in zip(candidates, prompts, strict=True)
        ]

    def hidden_states_of(self, dialogue: Dialogue, plan: Factors, replies: Sequence[str]) -> np.ndarray:
        """The mean hidden states of replies under a plan, for the reward model: (replies, width) float32."""
        prompt = self._prompts([dialogue])[0].tokens
        prefix = self._prefix_cache.before(prompt, self._conditioning.soft_prompt, plan)
        # Without the end token: its state does not exist during generation.
        words = [self._template.words(reply)[:-1] for reply in replies]
        return np.asarray(self.runtime.mean_hidden_states(prefix, words))

    def with_rewards(self, dialogue: Dialogue, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Candidates with the reward model's score, computed anew from their texts.

        Those without a plan stay as they are.
        """
        scored, reward_model = list(candidates), self._conditioning.reward_model
        for index, candidate in enumerate(candidates):
            if reward_model and candidate.plan and "reward" not in candidate.scores:
                hidden_state = self.hidden_states_of(dialogue, candidate.plan, [candidate.text])[0]
                reward = round(reward_model.score(hidden_state), 4)
                scored[index] = replace(candidate, scores={**candidate.scores, "reward": reward})
        return scored

    def factor_probabilities(self, dialogue: Dialogue, known: Factors) -> dict[str, np.ndarray]:
        """The probabilities of the first factor that `known` leaves open."""
        return self._planner.factor_probabilities(self._read([dialogue])[1], known)

    def perplexity(
        self, examples: Iterable[Example], factors: str = "gold", seeds: Iterable[int] | None = None
    ) -> Perplexity:
        """The perplexity of human replies by token (end tokens included), by word and by byte.

        Args:
            examples: with annotated replies, unless `factors` is none, predicted or marginal.
            factors: gold: after the reply's own plan; predicted: after the likeliest plan; none: after the
                dialogue alone, given that no plan follows; marginal: the mean over MARGINAL_PLANS sampled
                plans.
            seeds: of each reply's sampled plans; 0, 1, 2 and so on by default.
        """
        if factors not in ("gold", "predicted", "none", "marginal"):
            raise InputError(f"factors is {factors!r}.", "Give gold, predicted, none or marginal.")
        nlls, counts, texts = list[float](), list[int](), list[str]()
        numbers, remaining = iter(seeds if seeds is not None else count()), iter(examples)
        while batch := list(map(_in_own_manner, islice(remaining, self.runtime.batch_size))):
            words = [self._template.words(example.reply.text) for example in batch]
            likelihoods = self._likelihoods(batch, words, factors, list(islice(numbers, len(batch))))
            nlls += [-float(np.logaddexp.reduce(each) - np.log(len(each))) for each in likelihoods]
            counts += map(len, words)
            texts += [example.reply.text for example in batch]
        return perplexity_of(
            nlls, counts, texts, f"the generator's own, {len(self.runtime.vocabulary):,} tokens"
        )

    def conditions(self) -> dict[str, str]:
        """Settings in words, for result files."""
        config = self.config
        others = (
            f", the others sampled at temperature {config.plan_temperature:g}" if config.plans > 1 else ""
        )
        return {
            "plans": f"{config.plans}: the best one{others}; "
            f"{config.mechanism_bias:g} nats more for each mechanism, "
            f"{config.interpretation_bias:g} besides for interpretation, "
            f"{config.others_penalty:g} less for the act others, "
            f"{config.opposite_penalty:g} less for an expressed emotion that contradicts the user's; "
            f"annotator weight {config.annotator_weight:g}",
            "text": "tidied: capitals, apostrophes, full stops" if config.tidy else "as generated",
            **(
                {"soft_prompt": f"{len(self._conditioning.soft_prompt)} tokens before the plan"}
                if self.use_soft_prompt
                else {}
            ),
        }

    def _likelihoods(
        self, examples: Sequence[Example], words: Sequence[list[int]], factors: str, seeds: Sequence[int]
    ) -> list[np.ndarray]:
        """log P(reply | dialogue, plan) under each of a reply's plans, or after the dialogue alone."""
        prompts, state = self._read([example.context for example in examples])
        starts = [list(prompt.tokens) for prompt in prompts]
        if factors == "none":
            replies = [(start, [reply]) for start, reply in zip(starts, words, strict=True)]
            no_plan = self._planner.plan_dropout(state)
            return [
                each.astype(np.float64) - probability
                for each, probability in zip(self.runtime.log_likelihoods_each(replies), no_plan, strict=True)
            ]
        plans = self._conditions_of(examples, state, factors, seeds)
        # log P(plan, reply) − log P(plan).
        both = [
            (start, [[*plan, *reply] for plan in own] + own)
            for start, own, reply in zip(starts, plans, words, strict=True)
        ]
        joint = [each.astype(np.float64) for each in self.runtime.log_likelihoods_each(both)]
        return [each[: len(own)] - each[len(own) :] for each, own in zip(joint, plans, strict=True)]

    def _conditions_of(
        self, examples: Sequence[Example], state: State, factors: str, seeds: Sequence[int]
    ) -> list[list[list[int]]]:
        """The tokens of each reply's plans: one, or several to average over."""
        if factors == "marginal":
            return self._planner.sample(state, MARGINAL_PLANS, seeds)
        if factors == "predicted":
            emotions = [Factors(emotion=EMOTIONS[int(row.argmax())]) for row in self._planner.emotions(state)]
            drafts = self._planner.draft(state, emotions, [0] * len(emotions), Draw())
            return [[self._template.plans.encode(plans[0].plan)] for plans in drafts.plans]
        tokens = []
        for example in examples:
            if (plan := plan_of(example)) is None:
                raise InputError("A reply has no plan to be measured with.", "Annotate the corpus first.")
            tokens.append([self._template.plans.encode(plan)])
        return tokens

    def _read(self, dialogues: Sequence[Dialogue]) -> tuple[list[Prompt], State]:
        """The prompts of dialogues, and the engine's state after them, a row each."""
        prompts = self._prompts(dialogues)
        return prompts, self._prefix_cache.read(tokens_of(prompts))

    def _prompts(self, dialogues: Sequence[Dialogue]) -> list[Prompt]:
        """The prompt of each dialogue's next reply, up to its plan.

        The last ones are kept: *plan* and *generate* ask for the same dialogues.
        """
        last = self._last_prompts  # read once: another thread may replace it
        if last is not None and last[0] == tuple(map(id, dialogues)):
            return last[2]
        room = (
            self.runtime.context_length
            - self.config.decoding.max_tokens
            - len(self._conditioning.soft_prompt)
            - 8
        )
        budget = min(self.config.prompt_tokens, room)
        prompts = list[Prompt]()
        for dialogue in dialogues:
            if not self.config.use_state:
                notes = tuple(note for note in dialogue.notes if note[0] not in (STATE, OPEN_LOSS))
                dialogue = replace(dialogue, notes=notes)  # noqa: PLW2901
            kept, notices = self._relevance.keep(dialogue, lambda line: len(self.runtime.encode(line)) + 1)
            prompt = self._template.prompt(kept, budget)
            prompts.append(replace(prompt, notices=(*notices, *prompt.notices)))
        # The dialogues are kept too, so that their ids stay theirs.
        self._last_prompts = (tuple(map(id, dialogues)), tuple(dialogues), prompts)
        return prompts

    def _reward(
        self, conditioning: Conditioning, prompt: Tokens, plan: Factors | None, generation: Generation
    ) -> float:
        """The reward model's score; beam search keeps no hidden states, so its replies are encoded again."""
        hidden_state = generation.hidden_state
        if hidden_state is None:
            prefix = self._prefix_cache.before(prompt, conditioning.soft_prompt, plan)
            words = self._template.words(generation.text)[:-1]
            hidden_state = self.runtime.mean_hidden_states(prefix, [words])[0]
        assert conditioning.reward_model is not None
        return round(conditioning.reward_model.score(hidden_state), 4)


def _care(dialogue: Dialogue) -> Care:
    if dialogue.note(CAREFUL) is not None:
        return "risk"
    return "loss" if dialogue.note(OPEN_LOSS) is not None else ""


def _in_own_manner(example: Example) -> Example:
    """A corpus's reply after a context that names its manner: the crowd's, unless the corpus notes one."""
    context = example.context
    if context.note(MANNER):
        return example
    return replace(example, context=replace(context, notes=(*context.notes, (MANNER, CROWD))))


def tokens_of(prompts: Sequence[Prompt]) -> tuple[Tokens, ...]:
    """The tokens of each prompt."""
    return tuple(prompt.tokens for prompt in prompts)


def _shares(total: int, plans: int) -> list[int]:
    """How many replies each plan gets; the first ones get the remainder. No plan counts as one."""
    plans = max(1, plans)
    return [max(1, total // plans + (number < total % plans)) for number in range(plans)]
