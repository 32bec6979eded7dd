"""Where replies begin: dialogues that were read, then the voice, then plans; nothing is read twice.

A voice is a few tokens that stand for no word (prompt tuning, Lester et al. 2021): what raters liked better
of two replies taught their embeddings how to speak, while the speaker's own weights stayed as they were. It
stands between dialogue and plan, only where replies are made: what the generator plans, and how likely it finds
what people said, does not change. `training.soft_prompt` learns one.
"""

from collections.abc import Sequence

from listenwell.dialogue import Factors
from listenwell.generators.plans import LEVELS, PlanTokens
from listenwell.runtime.base import Runtime, State

Tokens = tuple[int, ...]


class PrefixCache:
    """What a generator has read, as far as it may be asked for again.

    Args:
        runtime: the engine.
        plans: the plan tokens.
    """

    def __init__(self, runtime: Runtime, plans: PlanTokens) -> None:
        self._runtime, self._plans = runtime, plans
        self._last: tuple[tuple[Tokens, ...], State] | None = None
        self._drafted: tuple[tuple[Tokens, ...], dict[tuple[int, Tokens], int], State] | None = None

    def read(self, prompts: tuple[Tokens, ...]) -> State:
        """Dialogues, read up to where a plan begins, a row each.

        The last ones are remembered, since planning, speaking and explaining ask for the same.
        """
        last = self._last  # taken once: another thread may put its own there
        if last is None or last[0] != prompts:
            last = (prompts, self._runtime.prefill_many(prompts))
            self._last = last
        return last[1]

    def keep(self, prompts: tuple[Tokens, ...], plans: Sequence[Sequence[Factors]], state: State) -> None:
        """Remember plans that were read all but their last token.

        Args:
            prompts: of the dialogues.
            plans: of each dialogue.
            state: a row for each of them all.
        """
        rows = [(row, self._stem(plan)) for row, some in enumerate(plans) for plan in some]
        self._drafted = (prompts, {one: place for place, one in enumerate(rows)}, state)

    def before(self, prompt: Tokens, soft_prompt: Tokens, plan: Factors | None) -> list[int]:
        """All that stands before a reply's words."""
        return [*prompt, *soft_prompt, *(self._plans.encode(plan) if plan else ())]

    def after(
        self, prompts: tuple[Tokens, ...], soft_prompt: Tokens, meant: Sequence[tuple[int, Factors | None]]
    ) -> State:
        """A row for each reply to be made, read up to where its words begin.

        Args:
            prompts: of the dialogues.
            voice: the tokens of the voice; none to speak without.
            meant: the number of each reply's dialogue, and its plan; all have one, or none has.
        """
        state, rows = self.read(prompts), [row for row, _ in meant]
        tokens = [tuple(self._plans.encode(plan)) if plan else () for _, plan in meant]
        if not soft_prompt:
            return self._after_plans(prompts, state, rows, tokens)
        every = range(len(prompts))
        use_soft_prompt = self._runtime.step(self._runtime.pick(state, every), [soft_prompt for _ in every])
        if not tokens[0]:
            return self._runtime.pick(use_soft_prompt, rows)
        # Several replies go on from one plan: it is read once.
        once = list(dict.fromkeys(zip(rows, tokens, strict=True)))
        grown = self._runtime.branch(use_soft_prompt, [row for row, _ in once], [plan for _, plan in once])
        places = {one: place for place, one in enumerate(once)}
        return self._runtime.pick(grown, [places[one] for one in zip(rows, tokens, strict=True)])

    def _after_plans(
        self, prompts: tuple[Tokens, ...], state: State, rows: Sequence[int], tokens: Sequence[Tokens]
    ) -> State:
        """The same without a voice: what the planner has just read of a plan is not read again."""
        runtime, drafted = self._runtime, self._drafted  # taken once, as above
        if not tokens[0]:
            return runtime.pick(state, rows)
        if drafted is not None and drafted[0] == prompts:
            places = [drafted[1].get((row, plan[:-1])) for row, plan in zip(rows, tokens, strict=True)]
            known = [place for place in places if place is not None]
            if len(known) == len(places):
                return runtime.step(runtime.pick(drafted[2], known), [plan[-1:] for plan in tokens])
        return runtime.step(runtime.pick(state, rows), tokens)

    def _stem(self, plan: Factors) -> Tokens:
        """What a planner has read of a plan: all but its tone."""
        return tuple(self._plans.encode(plan))[: len(LEVELS) - 1]
