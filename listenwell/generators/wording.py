"""From a prompt to the words of replies, shown piece by piece as they become certain."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from listenwell.generators.base import Begun, Prompt
from listenwell.generators.decoding import Decoding, Row, decode
from listenwell.runtime.base import Runtime
from listenwell.runtime.text import TextStream


@dataclass(frozen=True)
class Worded:
    """A reply in words."""

    text: str
    log_likelihood: float
    """Of its tokens, in nats, at temperature 1; those that an ending cut off count too."""
    tokens: int
    """How many it has, its end mark counted."""


@dataclass
class _Reply:
    """A row's text so far, and how much of it was shown."""

    row: Row
    stream: TextStream
    on_text: Callable[[str], None] | None
    text: str = ""
    cut: int | None = None
    shown: int = field(default=0)

    def show(self, ready: str) -> None:
        if self.on_text and len(ready) > self.shown:
            self.on_text(ready[self.shown :])
        self.shown = max(self.shown, len(ready))

    def hear(self, decoding: Decoding) -> None:
        """Take the row's newest token; end the row where the reply ends."""
        self.text = (self.text + self.stream.push(self.row.tokens[-1])).lstrip()
        self.cut = decoding.ending.cut(self.text, self.shown, len(self.row.tokens) / decoding.max_tokens)
        self.show(self.text[: self.cut].rstrip())
        self.row.finished = self.cut is not None

    def finish(self, decoding: Decoding) -> str:
        """The whole text."""
        if self.cut is not None:
            return self.text[: self.cut].rstrip()
        text = (self.text + self.stream.finish()).strip()
        if len(self.row.tokens) >= decoding.max_tokens and text[-1:] not in ".!?…":
            text += "…"  # the limit fell inside a sentence: say that it goes on
        self.show(text)
        return text


def word_replies(
    runtime: Runtime,
    begun: Begun,
    decoding: Decoding,
    seeds: Sequence[int],
    on_text: Callable[[str], None] | None = None,
) -> list[Worded]:
    """The texts of several replies, made in one batch, none blank; each is the same alone.

    Args:
        runtime: the engine.
        begun: what stands before the replies.
        decoding: how tokens are chosen.
        seeds: of the replies, one each.
        on_text: hears the first reply as it is made; the pieces add up to exactly its text.
    """
    replies = [
        _Reply(Row(seed), TextStream(runtime.vocabulary), on_text if number == 0 else None)
        for number, seed in enumerate(seeds)
    ]
    by_row = {id(reply.row): reply for reply in replies}
    for row in decode(runtime, begun, [reply.row for reply in replies], decoding):
        by_row[id(row)].hear(decoding)
    return [
        Worded(reply.finish(decoding), reply.row.log_likelihood, len(reply.row.tokens) + 1)
        for reply in replies
    ]


def word_prompt(
    runtime: Runtime,
    prompt: Prompt,
    decoding: Decoding,
    seeds: Sequence[int],
    on_text: Callable[[str], None] | None = None,
) -> list[Worded]:
    """As `word_replies`, for replies that all go on from one prompt, which is read once."""
    state = runtime.prefill(prompt.tokens)
    if len(seeds) > 1:
        state = runtime.pick(state, [0] * len(seeds))
    begun = Begun(state, prompt.stop, runtime.context_length - len(prompt.tokens))
    return word_replies(runtime, begun, decoding, seeds, on_text)
