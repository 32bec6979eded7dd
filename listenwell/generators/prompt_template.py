"""How a planned reply stands in the model's context: dialogue, plan, words; to learn it and to speak it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from listenwell.dialogue import Dialogue, Example, Factors
from listenwell.generators.base import Prompt
from listenwell.generators.chatml import END, START, build_prompt, reply_head, with_short_persona
from listenwell.generators.plans import PlanTokens
from listenwell.runtime.text import Vocabulary

PERSONA_SHARE = 0.5
"""Of a prompt at most so much is persona."""


@dataclass(frozen=True)
class EncodedPrompt:
    """A reply with all that stands before it, as tokens."""

    tokens: list[int]
    plan: int
    """Where the plan begins; where the words begin, if there is none."""
    words: int
    """Where the reply's words begin; its end mark is the last token."""
    text: str


@dataclass(frozen=True)
class PromptTemplate:
    """Dialogues, plans and replies as one sequence of tokens."""

    vocabulary: Vocabulary
    plans: PlanTokens

    def prompt(self, dialogue: Dialogue, budget: int) -> Prompt:
        """What stands before the plan."""
        short = with_short_persona(self.vocabulary, dialogue, int(PERSONA_SHARE * budget))
        return build_prompt(self.vocabulary, short, "", budget)

    def example(self, example: Example, plan: Factors | None, limit: int) -> EncodedPrompt:
        """A human reply after its context; None for no plan. Too long a talk loses its oldest turns."""
        decided = self.plans.encode(plan) if plan else []
        words = self.words(example.reply.text, limit // 2)
        before = self.prompt(example.context, limit - len(decided) - len(words)).tokens
        return EncodedPrompt(
            [*before, *decided, *words], len(before), len(before) + len(decided), example.reply.text
        )

    def alone(self, text: str, limit: int) -> EncodedPrompt:
        """A reply with nothing before it: what P(y) is learned from."""
        start = len(self.head)
        return EncodedPrompt([*self.head, *self.words(text, limit - start)], start, start, text)

    def words(self, text: str, limit: int = 2**20) -> list[int]:
        """A reply's own tokens and its end mark."""
        return [*self.vocabulary.encode(text)[: max(1, limit - 1)], self.vocabulary.special(END)]

    def theirs(self, tokens: Sequence[int]) -> np.ndarray:
        """Where the other person's words stand, with their end marks: (tokens,) bool."""
        start, end = (self.vocabulary.special(mark) for mark in (START, END))
        role = self.vocabulary.encode("user\n")
        found, inside = np.zeros(len(tokens), bool), False
        for place, token in enumerate(tokens):  # marks are never a part of what somebody wrote
            if token == start:
                inside = list(tokens[place + 1 : place + 1 + len(role)]) == role
                first = place + 1 + len(role)
            elif inside:
                found[place] = place >= first
                inside = token != end
        return found

    def situation(self, dialogue: Dialogue, limit: int) -> EncodedPrompt:
        """What happened, told after the talk, where the corpus knows it: to understand is to retell."""
        told = self.words(dialogue.situation or "", limit // 2)
        head = [self.vocabulary.special(START), *self.vocabulary.encode("situation\n")]
        prompt = self.prompt(dialogue, limit - len(told) - len(head)).tokens
        before = [*prompt[: -len(self.head)], *head]
        return EncodedPrompt([*before, *told], len(before), len(before), dialogue.situation or "")

    @cached_property
    def head(self) -> list[int]:
        """What stands before a reply without context."""
        return reply_head(self.vocabulary)
