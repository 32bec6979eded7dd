"""The prefix cache: the engine's states after dialogue, soft prompt and plan; nothing is encoded twice.

A soft prompt is a few trained embeddings that stand for no word (prompt tuning, Lester et al. 2021), learned
from raters' preferences by DPO while the model's own weights stay as they are. It comes between dialogue and
plan, and only where replies are generated: plans and the perplexity of human replies do not depend on it.
`training.soft_prompt` trains one.
"""

from collections.abc import Sequence

from listenwell.dialogue import Factors
from listenwell.generators.plans import LEVELS, PlanTokens
from listenwell.runtime.base import Runtime, State

Tokens = tuple[int, ...]


class PrefixCache:
    """The states that a generator needs again."""

    def __init__(self, runtime: Runtime, plans: PlanTokens) -> None:
        self._runtime, self._plans = runtime, plans
        self._last: tuple[tuple[Tokens, ...], State] | None = None
        self._drafted: tuple[tuple[Tokens, ...], dict[tuple[int, Tokens], int], State] | None = None

    def read(self, prompts: tuple[Tokens, ...]) -> State:
        """The state after each prompt, a row each; the last is kept, since two stages need the same."""
        last = self._last  # read once: another thread may replace it
        if last is None or last[0] != prompts:
            last = (prompts, self._runtime.prefill_many(prompts))
            self._last = last
        return last[1]

    def keep(self, prompts: tuple[Tokens, ...], plans: Sequence[Sequence[Factors]], state: State) -> None:
        """Keep the state of all dialogues' plans, a row each, that were encoded up to their last token."""
        # A plan's stem: all its tokens but the expressed emotion's.
        stems = [
            (row, tuple(self._plans.encode(plan))[: len(LEVELS) - 1])
            for row, own in enumerate(plans)
            for plan in own
        ]
        self._drafted = (prompts, {stem: index for index, stem in enumerate(stems)}, state)

    def before(self, prompt: Tokens, soft_prompt: Tokens, plan: Factors | None) -> list[int]:
        """All tokens before a reply's text."""
        return [*prompt, *soft_prompt, *(self._plans.encode(plan) if plan else ())]

    def after(
        self, prompts: tuple[Tokens, ...], soft_prompt: Tokens, planned: Sequence[tuple[int, Factors | None]]
    ) -> State:
        """The state before the text of each reply, a row each.

        `planned` has the number of each reply's dialogue, and its plan; all have one, or none has.
        """
        state, rows = self.read(prompts), [row for row, _ in planned]
        tokens = [tuple(self._plans.encode(plan)) if plan else () for _, plan in planned]
        if not soft_prompt:
            return self._after_plans(prompts, state, rows, tokens)
        every = range(len(prompts))
        prompted = self._runtime.step(self._runtime.pick(state, every), [soft_prompt for _ in every])
        if not tokens[0]:
            return self._runtime.pick(prompted, rows)
        # Several replies continue one plan: it is encoded once.
        unique = list(dict.fromkeys(zip(rows, tokens, strict=True)))
        branched = self._runtime.branch(prompted, [row for row, _ in unique], [plan for _, plan in unique])
        index_of = {branch: index for index, branch in enumerate(unique)}
        return self._runtime.pick(branched, [index_of[branch] for branch in zip(rows, tokens, strict=True)])

    def _after_plans(
        self, prompts: tuple[Tokens, ...], state: State, rows: Sequence[int], tokens: Sequence[Tokens]
    ) -> State:
        """The same without a soft prompt: reuses the state of plans that the planner has just encoded."""
        runtime, drafted = self._runtime, self._drafted  # read once, as above
        if not tokens[0]:
            return runtime.pick(state, rows)
        if drafted is not None and drafted[0] == prompts:
            indices = [drafted[1].get((row, plan[:-1])) for row, plan in zip(rows, tokens, strict=True)]
            known = [index for index in indices if index is not None]
            if len(known) == len(indices):
                return runtime.step(runtime.pick(drafted[2], known), [plan[-1:] for plan in tokens])
        return runtime.step(runtime.pick(state, rows), tokens)
