"""A reply as an iterator over the chunks of its text."""

import re
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from threading import Thread

from listenwell.dialogue import Reply
from listenwell.pipeline import OnText

_END = re.compile(r"[.!?…]+[\"'”’)\]]*\s+")
_SENTENCE = re.compile(r".*?[.!?…]+[\"'”’)\]]*\s+|.+\Z", re.DOTALL)


class CheckedText:
    """Passes a reply on while it is generated, sentence by sentence, each as soon as it may be shown.

    After a sentence that may not be shown, nothing more is.
    """

    def __init__(self, on_text: OnText, allows: Callable[[str], bool]) -> None:
        self._on_text, self._allows = on_text, allows
        self._text, self._is_open = "", True
        self.shown = ""

    def __call__(self, chunk: str) -> None:
        """Take a chunk of the reply."""
        self._text += chunk
        ends = [match.end() for match in _END.finditer(self._text)]
        if ends and ends[-1] > len(self.shown):
            self._show(self._text[: ends[-1]])

    def finish(self, text: str) -> str:
        """Show the rest of the final text, and return the whole reply.

        A text that does not continue what was shown, such as another reply, comes too late: what was shown
        is the reply then.
        """
        if self.shown and not text.startswith(self.shown):
            return self.shown.rstrip()
        self._on_text(text[len(self.shown) :])
        return text

    def _show(self, text: str) -> None:
        self._is_open = self._is_open and self._allows(text)
        if self._is_open:
            self._on_text(text[len(self.shown) :])
            self.shown = text


class ReplyStream(Iterator[str]):
    """Chunks of a reply, each as soon as it is certain; together they are exactly the reply's text.

    The reply is generated in a thread of its own, so that a slow consumer does not hold it up.
    """

    def __init__(self, run: Callable[[OnText], Reply]) -> None:
        self._queue: SimpleQueue[str | Reply | BaseException] = SimpleQueue()
        self._reply: Reply | None = None
        self._error: BaseException | None = None
        Thread(target=self._work, args=(run,), name="reply stream", daemon=True).start()

    def __next__(self) -> str:
        if self._error is not None:
            raise self._error
        if self._reply is not None:
            raise StopIteration
        item = self._queue.get()
        if isinstance(item, str):
            return item
        if isinstance(item, Reply):
            self._reply = item
            raise StopIteration
        self._error = item
        raise item

    @property
    def reply(self) -> Reply:
        """The whole reply; waits for it where it is not finished, and skips the chunks that are left."""
        for _ in self:
            pass
        assert self._reply is not None
        return self._reply

    def _work(self, run: Callable[[OnText], Reply]) -> None:
        try:
            self._queue.put(run(self._put))
        except BaseException as error:  # it belongs to whoever reads the stream
            self._queue.put(error)

    def _put(self, text: str) -> None:
        for sentence in _SENTENCE.findall(text):
            self._queue.put(sentence)
