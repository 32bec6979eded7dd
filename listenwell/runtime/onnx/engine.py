"""The `Runtime` on onnxruntime: a Llama with its key-value cache, in 8 bits or exactly.

A state is a value: rows of keys and values with a length each. Reading on writes into the room behind the
rows, so that nothing is copied; whoever reads on from an older state gets a copy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from listenwell.errors import InputError
from listenwell.runtime.base import Likeliest, likeliest_of
from listenwell.runtime.onnx.llama import cache_names
from listenwell.runtime.onnx.model import OnnxModel

if TYPE_CHECKING:
    import numpy as np

ROOM = 64
"""Free places behind the longest row when a cache is made; a full one grows by at least half."""
SCORED = 256
"""Tokens whose successors' scores are in memory at once: 50 MB for a vocabulary of 49,152."""


class _Cache:
    """Keys and values of some rows, with room behind them.

    Args:
        session: the graph; its inputs and outputs are tied to the cache's memory once.
        values: (layers, 2, rows, key heads, room, head width) float32.
    """

    def __init__(self, session: Any, values: "np.ndarray") -> None:  # noqa: ANN401
        self.values = values
        self.binding = session.io_binding()
        self._newest = 0
        self._lock = Lock()
        for layer, parts in enumerate(values):
            for part, past, present in zip(parts, *cache_names(layer), strict=True):
                self.binding.bind_input(past, "cpu", 0, part.dtype, part.shape, part.ctypes.data)
                self.binding.bind_output(present, "cpu", 0, part.dtype, part.shape, part.ctypes.data)

    def claim(self, version: int, end: int) -> int | None:
        """The next version's number, if nobody has read on from this one and there is room up to `end`."""
        with self._lock:
            if version != self._newest or end > self.values.shape[4]:
                return None
            self._newest += 1
            return self._newest


@dataclass(frozen=True)
class _State:
    cache: _Cache
    version: int  # of the cache's contents
    lengths: "np.ndarray"  # (rows,) tokens read
    logits: "np.ndarray"  # (rows, vocabulary)


class OnnxRuntime(OnnxModel):
    """A Llama; states are values, and the engine itself remembers nothing."""

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        super().__init__(folder, threads)
        self._layers, self._heads, self._width = (
            int(self._notes[name]) for name in ("layers", "key_heads", "head_width")
        )
        shapes = {output.name: output.shape for output in self._session.get_outputs()}
        self._words = int(shapes["logits"][1])
        self.context_length = int(self._notes["positions"])

    def encode(self, text: str) -> list[int]:
        """The tokens of a text; what looks like a special token in it stays text."""
        return self.vocabulary.encode(text)

    def prefill(self, tokens: Sequence[int]) -> _State:
        """Read a prompt: a state of one row."""
        return self.prefill_many([tokens])

    def prefill_many(self, prompts: Sequence[Sequence[int]]) -> _State:
        """Read several prompts at once, a row each; what fills up the shorter ones is written over later."""
        import numpy as np

        lengths = np.array([len(tokens) for tokens in prompts], np.int64)
        rows = np.zeros((len(prompts), int(lengths.max())), np.int64)
        for row, tokens in enumerate(prompts):
            rows[row, : len(tokens)] = tokens
        cache = self._room(len(rows), rows.shape[1] + ROOM)
        places = np.arange(len(rows)) * rows.shape[1] + lengths - 1
        return _State(cache, 0, lengths, self._run(cache, rows, lengths, places))

    def join(self, states: Sequence[_State]) -> _State:
        """The rows of several states as one; they may have read different numbers of tokens."""
        import numpy as np

        lengths = np.concatenate([state.lengths for state in states])
        joined = self._room(len(lengths), int(lengths.max()) + ROOM)
        row = 0
        for state in states:
            for place in range(len(state.lengths)):
                _copy(state, place, joined, row)
                row += 1
        return _State(joined, 0, lengths, np.concatenate([state.logits for state in states]))

    def pick(self, state: _State, rows: Sequence[int]) -> _State:
        """A state of these rows, which can be repeated, reordered or left out; the given one stays."""
        import numpy as np

        places = np.asarray(rows, np.int64)
        lengths = state.lengths[places]
        picked = self._room(len(places), int(lengths.max()) + ROOM)
        for row, place in enumerate(places):
            _copy(state, int(place), picked, row)
        return _State(picked, 0, lengths, state.logits[places])

    def step(self, state: _State, tokens: Sequence[Sequence[int]]) -> _State:
        """Read more tokens in every row, as many in each; the given state can still be used."""
        import numpy as np

        rows = np.asarray(tokens, np.int64)
        if len(rows) > 1:  # the library's attention reads on by one token where there are several rows
            for place in range(rows.shape[1] - 1):
                state = self._read(state, rows[:, place : place + 1], np.arange(0))
            rows = rows[:, -1:]
        return self._read(state, rows, np.arange(1, len(rows) + 1) * rows.shape[1] - 1)

    def logits(self, state: _State) -> "np.ndarray":
        """Scores of the next token: float32, (rows, vocabulary)."""
        return state.logits

    def likeliest(self, state: _State, count: int) -> Likeliest:
        """The next tokens with the highest scores, as many in every row."""
        return likeliest_of(state.logits, count)

    def log_likelihoods(self, prompt: Sequence[int], replies: Sequence[Sequence[int]]) -> "np.ndarray":
        """How likely each reply is after the prompt, in nats: (replies,) float32; the prompt is read once.

        Args:
            prompt: tokens that all replies go on from.
            replies: tokens of each, its end mark included.
        """
        import numpy as np

        found = np.zeros(len(replies), np.float32)
        if not len(found):
            return found
        # One after the other in the room behind the prompt: nothing is copied, and nothing filled up.
        cache = self._room(1, len(prompt) + max(map(len, replies)))
        before, start = np.array([len(prompt)]), np.asarray([prompt], np.int64)
        first = self._run(cache, start, before, before - 1)
        for number, reply in enumerate(replies):
            tokens = np.asarray([reply], np.int64)
            found[number] = _log_chances(first.copy(), tokens[0, :1])[0]
            for place in range(0, len(reply) - 1, SCORED):
                part = tokens[:, place : min(place + SCORED, len(reply) - 1)]
                end = before + place + part.shape[1]
                scores = self._run(cache, part, end, np.arange(part.shape[1]))
                found[number] += _log_chances(scores, tokens[0, place + 1 : place + 1 + len(scores)]).sum()
        return found

    def _read(self, state: _State, rows: "np.ndarray", kept: "np.ndarray") -> _State:
        """Read on from a state, in its own memory where that is free."""
        lengths = state.lengths + rows.shape[1]
        end = int(lengths.max())
        cache, version = state.cache, state.cache.claim(state.version, end)
        if version is None:
            cache, version = self._room(len(lengths), end + max(ROOM, end // 2)), 0
            for row in range(len(lengths)):
                _copy(state, row, cache, row)
        return _State(cache, version, lengths, self._run(cache, rows, lengths, kept))

    def _room(self, rows: int, length: int) -> _Cache:
        """An empty cache."""
        import numpy as np

        shape = (self._layers, 2, rows, self._heads, min(length, self.context_length), self._width)
        return _Cache(self._session, np.empty(shape, np.float32))

    def _run(
        self, cache: _Cache, tokens: "np.ndarray", lengths: "np.ndarray", kept: "np.ndarray"
    ) -> "np.ndarray":
        """Run the graph; keys and values are written into the cache.

        Args:
            cache: nobody else uses it now.
            tokens: (rows, more).
            lengths: (rows,), of the rows with these tokens.
            kept: flat places of the tokens whose successors are wanted.

        Returns:
            (kept, vocabulary)
        """
        import numpy as np

        total = int(lengths.max())
        if total > self.context_length:
            raise InputError(
                f"The model reads {self.context_length} tokens at most, but was given {total}.",
                "Shorten the text.",
            )
        given = {
            "tokens": np.ascontiguousarray(tokens),
            "last": (lengths - 1).astype(np.int32),
            "total": np.array(total, np.int32),
            "kept": kept.astype(np.int64),
        }
        for name, array in given.items():
            cache.binding.bind_cpu_input(name, array)
        logits = np.empty((len(kept), self._words), np.float32)
        cache.binding.bind_output("logits", "cpu", 0, logits.dtype, logits.shape, logits.ctypes.data)
        self._session.run_with_iobinding(cache.binding)
        return logits


def _copy(state: _State, place: int, cache: _Cache, row: int) -> None:
    """What one row of a state has read, to a row of another cache."""
    length = state.lengths[place]
    cache.values[:, :, row, :, :length] = state.cache.values[:, :, place, :, :length]


def _log_chances(logits: "np.ndarray", tokens: "np.ndarray") -> "np.ndarray":
    """log softmax of some scores at a token each: (n,) float32; the scores are spent."""
    import numpy as np

    logits -= logits.max(axis=1, keepdims=True)
    chosen = logits[np.arange(len(tokens)), tokens]
    found: np.ndarray = chosen - np.log(np.exp(logits, out=logits).sum(axis=1))
    return found
