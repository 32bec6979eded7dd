"""How models were taught to read a conversation: which special tokens stand around a turn.

Special tokens are inserted by number; everything a person wrote is text between them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from listenwell.errors import WeightsError
from listenwell.runtime.text import Vocabulary

ASSISTANT = "assistant"


@dataclass(frozen=True)
class ChatFormat:
    """The parts of a conversation; those in angle brackets are special tokens, the others text."""

    name: str
    begin: tuple[str, ...]
    """Before the first turn."""
    head: tuple[str, ...]
    """Before a turn's text, with the place of its role."""
    end: str
    """Ends a turn."""
    after: str
    """Text between a turn's end and the next one."""
    assistant: str = ASSISTANT
    """What the role of the model's own turns is called."""
    has_system: bool = True
    """Whether there is a role for instructions; otherwise they stand in the first turn of the user."""
    silent: tuple[str, ...] = ()
    """Before the assistant's text, where the vocabulary has these tokens: nothing is thought aloud first."""


FORMATS = (
    ChatFormat(
        "ChatML (Qwen, SmolLM2)",
        (),
        ("<|im_start|>", "{role}\n"),
        "<|im_end|>",
        "\n",
        silent=("<think>", "\n\n", "</think>", "\n\n"),
    ),
    ChatFormat(
        "Llama 3",
        ("<|begin_of_text|>",),
        ("<|start_header_id|>", "{role}", "<|end_header_id|>", "\n\n"),
        "<|eot_id|>",
        "",
    ),
    ChatFormat(
        "Gemma",
        ("<bos>",),
        ("<start_of_turn>", "{role}\n"),
        "<end_of_turn>",
        "\n",
        assistant="model",
        has_system=False,
    ),
)


class Chat:
    """The chat format of a vocabulary, as tokens."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        """The format whose special tokens the vocabulary has; one with those of none is an error."""
        self.vocabulary, self.format = vocabulary, _format_of(vocabulary)
        self.begin = self._encoded(*self.format.begin)
        """Before the first turn."""
        self.tail = self._encoded(self.format.end, self.format.after)
        """After a turn's text."""
        self.end = self.tail[0]
        """Ends a turn."""
        self.stop = frozenset({self.end, vocabulary.special(self.format.head[0])})
        """What ends a reply: a turn's end, and the beginning of another."""

    def head(self, role: str) -> list[int]:
        """The tokens before a turn's text."""
        name = self.format.assistant if role == ASSISTANT else role
        parts = tuple(part.format(role=name) for part in self.format.head)
        if role == ASSISTANT and self.vocabulary.has_special(*filter(_is_special, self.format.silent)):
            parts += self.format.silent
        return self._encoded(*parts)

    def turn(self, role: str, text: Sequence[int]) -> list[int]:
        """A turn with its special tokens; `text` is already encoded."""
        return [*self.head(role), *text, *self.tail]

    def _encoded(self, *parts: str) -> list[int]:
        tokens: list[int] = []
        for part in parts:
            mark = _is_special(part)
            tokens += [self.vocabulary.special(part)] if mark else self.vocabulary.encode(part)
        return tokens


def _format_of(vocabulary: Vocabulary) -> ChatFormat:
    for chat in FORMATS:
        if vocabulary.has_special(*filter(_is_special, (*chat.begin, *chat.head, chat.end))):
            return chat
    names = ", ".join(chat.name for chat in FORMATS)
    raise WeightsError(
        "The model's vocabulary has the special tokens of no chat format that is known here.",
        f"Use an instruct model with one of these: {names}.",
    )


def _is_special(part: str) -> bool:
    return part.startswith("<") and part.endswith(">")
