"""From a prompt to the words of replies, shown piece by piece as they become certain."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from listenwell.generators.base import Prefix, Prompt
from listenwell.generators.beams import Ends, SharedPrefix, search_rows
from listenwell.generators.decoding import Decoding, Row, decode
from listenwell.runtime.base import Runtime
from listenwell.runtime.text import REPLACEMENT, TextStream, Vocabulary


@dataclass(frozen=True)
class Generation:
    """A reply in words."""

    text: str
    log_likelihood: float
    """Of its tokens, in nats, at temperature 1; those that an ending cut off count too."""
    tokens: int
    """How many it has, its end mark counted."""
    hidden_state: np.ndarray | None = None
    """What the model makes of its words, on average, where that was kept: (width,)."""


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


def generate_rows(
    runtime: Runtime,
    prefix: Prefix,
    decoding: Decoding,
    seeds: Sequence[int],
    on_text: Callable[[str], None] | None = None,
) -> list[Generation]:
    """The texts of several replies, made in one batch, none blank; each is the same alone.

    Args:
        runtime: the engine.
        begun: what stands before the replies; for beams, `Shared` says which ones go on from the same place.
        decoding: how tokens are chosen.
        seeds: of the replies, one each.
        on_text: hears the first reply as it is made; the pieces add up to exactly its text.
    """
    replies = [
        _Reply(Row(seed), TextStream(runtime.vocabulary), on_text if number == 0 else None)
        for number, seed in enumerate(seeds)
    ]
    by_row = {id(reply.row): reply for reply in replies}
    rows = [reply.row for reply in replies]
    if decoding.beams:
        growing = search_rows(runtime, prefix, rows, decoding, _ends(runtime.vocabulary, decoding))
    else:
        growing = decode(runtime, prefix, rows, decoding)
    for row in growing:
        by_row[id(row)].hear(decoding)
    return [
        Generation(reply.finish(decoding), row.log_likelihood, len(row.tokens) + 1, row.hidden_state)
        for reply in replies
        for row in (reply.row,)
    ]


def generate_from_prompt(
    runtime: Runtime,
    prompt: Prompt,
    decoding: Decoding,
    seeds: Sequence[int],
    on_text: Callable[[str], None] | None = None,
) -> list[Generation]:
    """As `generate_rows`, for replies that all go on from one prompt, which is read once."""
    state = runtime.prefill(prompt.tokens)
    if len(seeds) > 1:
        state = runtime.pick(state, [0] * len(seeds))
    room = runtime.context_length - len(prompt.tokens)
    prefix = SharedPrefix(state, prompt.stop, room, starts=(0,) * len(seeds))
    return generate_rows(runtime, prefix, decoding, seeds, on_text)


def _ends(vocabulary: Vocabulary, decoding: Decoding) -> Ends:
    """Where beams end: at the same places, with the same words, as `_Reply` ends a row that grows."""

    def spelled(tokens: Sequence[int]) -> str:
        return vocabulary.decode(tokens).rstrip(REPLACEMENT).lstrip()

    def ends(tokens: Sequence[int], has_to: bool) -> str | None:
        text, before = spelled(tokens), spelled(tokens[:-1]).rstrip()
        cut = decoding.ending.cut(text, len(before), len(tokens) / decoding.max_tokens)
        return text[:cut].rstrip() if has_to or cut is not None else None

    return ends
