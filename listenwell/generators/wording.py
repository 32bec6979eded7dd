"""From a prompt to the words of one reply, shown piece by piece as they become certain."""

from collections.abc import Callable

from listenwell.generators.base import Prompt
from listenwell.generators.decoding import Decoding, generate
from listenwell.runtime.base import Runtime
from listenwell.runtime.text import TextStream


def word_reply(
    runtime: Runtime,
    prompt: Prompt,
    decoding: Decoding,
    seed: int,
    on_text: Callable[[str], None] | None = None,
) -> str:
    """The text of one reply, never blank; the pieces given to `on_text` add up to exactly this text."""
    stream, text, shown, count = TextStream(runtime.vocabulary), "", 0, 0

    def show(ready: str) -> None:
        nonlocal shown
        if on_text and len(ready) > shown:
            on_text(ready[shown:])
        shown = max(shown, len(ready))

    for count, token in enumerate(generate(runtime, prompt, decoding, seed), start=1):
        text = (text + stream.push(token)).lstrip()
        cut = decoding.ending.cut(text, shown, count / decoding.max_tokens)
        show(text[:cut].rstrip())
        if cut is not None:
            return text[:cut].rstrip()
    text = (text + stream.finish()).strip()
    if count >= decoding.max_tokens and text[-1:] not in ".!?…":
        text += "…"  # the limit fell inside a sentence: say that it goes on
    show(text)
    return text
