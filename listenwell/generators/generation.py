"""From a prompt to the text of replies, in chunks as they become certain, with its spelling corrected."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from listenwell.generators.base import Prefix, Prompt
from listenwell.generators.beams import Ends, search_rows
from listenwell.generators.decoding import Decoding, Row, decode
from listenwell.runtime.base import Runtime
from listenwell.runtime.text import REPLACEMENT, TextStream, Vocabulary


@dataclass(frozen=True)
class Generation:
    """The text of a reply."""

    text: str
    log_likelihood: float
    """Of its tokens, in nats, at temperature 1; those that an ending cut off count too."""
    tokens: int
    """How many it has, including the end token."""
    hidden_state: np.ndarray | None = None
    """The mean hidden state of its tokens, where it was kept: (width,)."""


@dataclass
class _Reply:
    """A row's text so far, and how much of it was streamed."""

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

    def update(self, decoding: Decoding) -> None:
        """Add the row's newest token; end the row where the reply ends."""
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
            text += "…"  # the limit fell inside a sentence
        self.show(text)
        return text


def generate_rows(
    runtime: Runtime,
    prefix: Prefix,
    decoding: Decoding,
    seeds: Sequence[int],
    on_text: Callable[[str], None] | None = None,
) -> list[Generation]:
    """The texts of several replies, generated in one batch, none blank; each is the same alone.

    `on_text` gets the first reply in chunks, which add up to exactly its text.
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
        by_row[id(row)].update(decoding)
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
    """As `generate_rows`, for replies that all continue one prompt, which is encoded once."""
    state = runtime.prefill(prompt.tokens)
    if len(seeds) > 1:
        state = runtime.pick(state, [0] * len(seeds))
    room = runtime.context_length - len(prompt.tokens)
    prefix = Prefix(state, prompt.stop, room, starts=(0,) * len(seeds))
    return generate_rows(runtime, prefix, decoding, seeds, on_text)


def _ends(vocabulary: Vocabulary, decoding: Decoding) -> Ends:
    """Where beams end: where `_Reply` would end a sampled row with the same text."""

    def spelled(tokens: Sequence[int]) -> str:
        return vocabulary.decode(tokens).rstrip(REPLACEMENT).lstrip()

    def ends(tokens: Sequence[int], has_to: bool) -> str | None:
        text, before = spelled(tokens), spelled(tokens[:-1]).rstrip()
        cut = decoding.ending.cut(text, len(before), len(tokens) / decoding.max_tokens)
        return text[:cut].rstrip() if has_to or cut is not None else None

    return ends


_WHOLE = """
    don't doesn't didn't isn't wasn't aren't weren't haven't hasn't hadn't couldn't wouldn't shouldn't
    that's what's there's it'll you're they're you've they've you'll they'll i'm i've he's
    """
_APOSTROPHES = {whole.replace("'", ""): whole for whole in _WHOLE.split()}
"""Words that are nothing else without their apostrophe; "its", "were", "wont", "cant" and "ill" can be."""
_WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)*")
_START = re.compile(r"(?:^|[.!?…]+[\"'”’)\]]*\s+)[\"'“‘(\[]*([a-z])")
_SPACED = re.compile(r"(?<=\w) +([,.!?])(?=\s|$)")
"""A mark that stands off from its word."""
_JOINED = re.compile(r"(?<=[a-z])(?:(,)(?=[A-Za-z])|([.!?])(?=I\b))")
"""A mark with no space after it: a comma before any word, others only before "I", which starts no address."""
_GOING_ON = re.compile(r"(?<=[a-z], )(That|This|What|How|You|Your|There|They|We|It)\b")
"""A capital after a comma, of words that are nobody's name."""
SMILES = (":)", ":(", ";)")
_END = re.compile(r"\w[)\]\"'”’]*$")
"""Words that end without a mark, also inside quotes or brackets."""


def tidy(text: str) -> str:
    """The text with "I" and sentence beginnings in capitals, apostrophes and spaces in place, and a mark at
    its end.

    A reply with words like "iPhone" or an address keeps them; one that ends with an emoji stays open.
    """
    text = _WORD.sub(lambda match: _word(match[0]), text.strip())
    text = _JOINED.sub(r"\1\2 ", _SPACED.sub(r"\1", text))
    text = _GOING_ON.sub(lambda match: match[0].lower(), text)
    text = _START.sub(lambda match: match[0][:-1] + match[1].upper(), text)
    return f"{text}." if _END.search(text) and not text.endswith(SMILES) else text


def _word(word: str) -> str:
    small = word.lower()
    if word != small and word != small.capitalize():
        return word  # capitals of its own: iPhone, NASA
    whole = _APOSTROPHES.get(small, word)
    if whole in ("i", "i'm", "i've", "i'd", "i'll", "i’m", "i’ve", "i’d", "i’ll"):
        return whole[0].upper() + whole[1:]
    return whole if word in (small, whole) else whole[0].upper() + whole[1:]
