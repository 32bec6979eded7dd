"""The prompt template: dialogues, plans and replies as one sequence of tokens, in the model's chat format.

Special tokens are inserted by number; everything a person wrote is text between them. The system turn with
the persona and the newest turn always stay, the oldest turns go first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np

from listenwell.dialogue import MANNER, STATE, Dialogue, Example, Factors, Turn
from listenwell.errors import InputError
from listenwell.generators.base import Prompt
from listenwell.generators.plans import PlanTokens, manner_tokens
from listenwell.runtime.chat_format import ASSISTANT, Chat
from listenwell.runtime.text import Vocabulary

START, END = "<|im_start|>", "<|im_end|>"
"""ChatML's special tokens, for models that have nothing else of it."""
PERSONA_SHARE = 0.5
"""The largest part of a prompt that a persona may take."""


def build_prompt(  # noqa: PLR0913, PLR0917 - what stands in a prompt
    vocabulary: Vocabulary,
    dialogue: Dialogue,
    system: str,
    budget: int,
    shots: Sequence[tuple[str, str]] = (),
    state: str = "",
) -> Prompt:
    """The prompt for the listener's next turn.

    Args:
        vocabulary: the model's.
        dialogue: ends with somebody else's turn; the listener's own persona goes into the system turn.
        system: who the listener is; empty for no system turn (unless there is a persona).
        budget: how many tokens the prompt may have.
        shots: exchanges that show the model how to answer; they come before the dialogue and always stay.
        state: a line about the conversation so far, right before the reply; it always stays.
    """
    persona = dialogue.persona_of(dialogue.listener)
    if persona and persona.lines:
        system = f"{system}\nAbout you: {' '.join(persona.lines)}".strip()
    chat, instructions = Chat(vocabulary), vocabulary.encode(system)
    shown = [
        (role, vocabulary.encode(text))
        for shot in shots
        for role, text in zip(("user", ASSISTANT), shot, strict=True)
    ]
    remembered = chat.turn("system", vocabulary.encode(state)) if state else []
    head, tail = _conversation(chat, instructions, shown), [*remembered, *chat.head(ASSISTANT)]
    room = budget - len(head) - len(tail)
    frame = len(chat.turn("user", []))
    if room < frame + budget // 4:  # less than a quarter for the turns is too little
        raise InputError(
            f"The persona and the instructions take {len(head)} of the prompt's {budget} tokens.",
            "Give fewer or shorter persona lines, or a larger prompt_tokens in the recipe.",
        )
    notices: list[str] = []
    kept: list[tuple[str, list[int]]] = []
    for turn in reversed(dialogue.turns):
        text = vocabulary.encode(turn.text)
        if not kept and len(text) + frame > room:
            left_out = len(text) - (room - frame)
            text = text[left_out:]
            notices.append(f"The text was too long: its first {left_out} tokens were left out.")
        role = role_of(turn, dialogue)
        room -= len(chat.turn(role, text))
        if room < 0:
            break
        kept.insert(0, (role, text))
    if dropped := len(dialogue.turns) - len(kept):
        notices.append(f"The dialogue is long: the {dropped} oldest turns were left out.")
    tokens = (*_conversation(chat, instructions, [*shown, *kept]), *tail)
    return Prompt(tokens, chat.stop, tuple(notices))


def _conversation(chat: Chat, instructions: list[int], turns: Sequence[tuple[str, list[int]]]) -> list[int]:
    """Turns with their special tokens, after the instructions."""
    turns = list(turns)
    if instructions and chat.format.has_system:
        turns.insert(0, ("system", instructions))
    elif instructions and turns and turns[0][0] == "user":
        turns[0] = ("user", [*instructions, *chat.vocabulary.encode("\n\n"), *turns[0][1]])
    elif instructions:
        turns.insert(0, ("user", instructions))
    return [*chat.begin, *(token for role, text in turns for token in chat.turn(role, text))]


def with_short_persona(vocabulary: Vocabulary, dialogue: Dialogue, tokens: int) -> Dialogue:
    """The dialogue with as many first lines of the listener's persona as fit into this many tokens."""
    persona = dialogue.persona_of(dialogue.listener)
    if persona is None:
        return dialogue
    lengths = [len(line) + 1 for line in vocabulary.encode_many(persona.lines)]
    kept = sum(total <= tokens for total in accumulate(lengths))
    others = (other for other in dialogue.personas if other is not persona)
    return replace(dialogue, personas=(*others, replace(persona, lines=persona.lines[:kept])))


def role_of(turn: Turn, dialogue: Dialogue) -> str:
    """The role of a turn: the listener is the assistant, everybody else the user."""
    return ASSISTANT if turn.speaker == dialogue.listener else "user"


@dataclass(frozen=True)
class EncodedPrompt:
    """A reply and everything before it, as tokens."""

    tokens: list[int]
    plan: int
    """Where the plan begins; where the text begins, if there is none."""
    words: int
    """Where the reply's text begins; its end token is the last one."""
    text: str


@dataclass(frozen=True)
class PromptTemplate:
    """Dialogues, plans and replies as one sequence of tokens."""

    vocabulary: Vocabulary
    plans: PlanTokens
    manner: str | None = None
    """One of `labels.MANNERS`, for dialogues that name none themselves; None for no manner."""

    def prompt(self, dialogue: Dialogue, budget: int) -> Prompt:
        """Everything before the plan: the dialogue, and the token of the manner where there is one."""
        manner = self.manner_tokens(dialogue)
        short = with_short_persona(self.vocabulary, dialogue, int(PERSONA_SHARE * budget))
        state = (dialogue.note(STATE) or "") if self._manners else ""  # earlier generators know no state
        prompt = build_prompt(self.vocabulary, short, "", budget - len(manner), state=state)
        return replace(prompt, tokens=(*prompt.tokens, *manner))

    def manner_tokens(self, dialogue: Dialogue) -> tuple[int, ...]:
        """The token of a dialogue's manner; none where it has none or the vocabulary knows none."""
        manner = dialogue.note(MANNER) or self.manner
        return (self._manners[manner],) if manner in self._manners else ()

    def example(self, example: Example, plan: Factors | None, limit: int) -> EncodedPrompt:
        """A human reply after its context; None for no plan. A long dialogue loses its oldest turns."""
        plan_tokens = self.plans.encode(plan) if plan else []
        words = self.words(example.reply.text, limit // 2)
        before = self.prompt(example.context, limit - len(plan_tokens) - len(words)).tokens
        return EncodedPrompt(
            [*before, *plan_tokens, *words], len(before), len(before) + len(plan_tokens), example.reply.text
        )

    def alone(self, text: str, limit: int) -> EncodedPrompt:
        """A reply without context, to train P(y)."""
        start = len(self.head)
        return EncodedPrompt([*self.head, *self.words(text, limit - start)], start, start, text)

    def words(self, text: str, limit: int = 2**20) -> list[int]:
        """A reply's own tokens and its end token."""
        return [*self.vocabulary.encode(text)[: max(1, limit - 1)], self.chat.end]

    def earlier(self, prompt: EncodedPrompt) -> np.ndarray:
        """Which tokens are the text of the listener's turns before the reply: (tokens,) bool."""
        mask, head = self.said_by(ASSISTANT, prompt.tokens), prompt.tokens[: prompt.plan]
        # The reply's own turn begins at the last start token before the plan.
        mask[len(head) - 1 - head[::-1].index(self.chat.head(ASSISTANT)[0]) :] = False
        return mask

    def said_by(self, role: str, tokens: Sequence[int]) -> np.ndarray:
        """Which tokens are a role's text or its end tokens: (tokens,) bool."""
        head = self.chat.head(role)
        mask, inside = np.zeros(len(tokens), bool), False
        for index, token in enumerate(tokens):  # text never contains special tokens
            if token == head[0]:
                inside = list(tokens[index : index + len(head)]) == head
                first = index + len(head)
            elif inside:
                mask[index] = index >= first
                inside = token != self.chat.end
        return mask

    def situation(self, dialogue: Dialogue, limit: int) -> EncodedPrompt:
        """The situation after the dialogue, where the corpus has one: an auxiliary task of training."""
        situation = self.words(dialogue.situation or "", limit // 2)
        head = self.chat.head("situation")
        prompt = self.prompt(dialogue, limit - len(situation) - len(head)).tokens
        before = [*prompt[: -len(self.chat.head(ASSISTANT)) - len(self.manner_tokens(dialogue))], *head]
        return EncodedPrompt([*before, *situation], len(before), len(before), dialogue.situation or "")

    @cached_property
    def _manners(self) -> dict[str, int]:
        return manner_tokens(self.vocabulary)

    @cached_property
    def chat(self) -> Chat:
        """The model's chat format."""
        return Chat(self.vocabulary)

    @cached_property
    def head(self) -> list[int]:
        """The tokens before a reply without context."""
        return [*self.chat.begin, *self.chat.head(ASSISTANT)]
