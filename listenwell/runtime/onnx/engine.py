"""The `Runtime` on onnxruntime: a Llama with its key-value cache, in 8 bits or exactly."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, overload

import numpy as np

from listenwell.errors import InputError
from listenwell.runtime.base import Runtime, TopTokens, top_tokens_of
from listenwell.runtime.onnx.session import OnnxModel
from listenwell.runtime.onnx.state import Branches, Cache, PackedRows

ROOM = 64
"""Free places behind the longest row when a cache is made; a full one grows by at least half."""
SCORED = 256
"""Tokens whose successors' scores are in memory at once: 50 MB for a vocabulary of 49,152."""
BRANCHED = 2304
"""Tokens of branches that are in memory at once: 106 MB for the shipped generator, four of its longest
prompts; short ones are read on all together."""
SPARE = 128
"""Tokens of a branch up to which the memory of all is kept for the next ones, at most 106 MB: to fill new
memory takes more than twice as long. Long talks need that much for their replies."""


class _Read(NamedTuple):
    """What the graph says of tokens that were asked about."""

    logits: np.ndarray  # (kept, vocabulary)
    hidden_states: np.ndarray  # (kept, width)


class OnnxRuntime(OnnxModel, Runtime):
    """A Llama; states are values, and the engine itself remembers nothing but memory that is free."""

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        super().__init__(folder, threads)
        self._layers, self._heads, self._width = (
            int(self._notes[name]) for name in ("layers", "key_heads", "head_width")
        )
        shapes = {output.name: output.shape for output in self._session.get_outputs()}
        self._words, self._states = (int(shapes[name][1]) for name in ("logits", "hidden_states"))
        self.context_length = int(self._notes["positions"])
        self.soft_prompt = tuple(range(self._words, self._words + int(self._notes.get("soft_prompt", 0))))
        self._spare: list[np.ndarray] = []

    def prefill_many(self, prompts: Sequence[Sequence[int]]) -> PackedRows:
        """Read several prompts at once, a row each; what fills up the shorter ones is written over later."""
        lengths = np.array([len(tokens) for tokens in prompts], np.int64)
        rows = np.zeros((len(prompts), int(lengths.max())), np.int64)
        for row, tokens in enumerate(prompts):
            rows[row, : len(tokens)] = tokens
        cache, numbers = self._room(len(rows), rows.shape[1] + ROOM), np.arange(len(rows))
        read = self._run(cache, range(len(rows)), rows, lengths, numbers * rows.shape[1] + lengths - 1)
        cache.filled = lengths.tolist()
        return PackedRows(cache, 0, numbers, lengths, *read)

    def join(self, states: Sequence[PackedRows | Branches]) -> PackedRows:
        """The rows of several states as one; they may have read different numbers of tokens."""
        return self._gathered([(state, row) for state in states for row in range(len(state.lengths))], ROOM)

    @overload
    def pick(self, state: PackedRows, rows: Sequence[int]) -> PackedRows: ...

    @overload
    def pick(self, state: Branches, rows: Sequence[int]) -> Branches: ...

    def pick(self, state: PackedRows | Branches, rows: Sequence[int]) -> PackedRows | Branches:
        """A state of these rows, which can be repeated, reordered or left out; the given one stays."""
        numbers = np.asarray(rows, np.int64)
        if isinstance(state, Branches):
            return state.picked(numbers)
        if _rises(numbers):
            slots = state.slots[numbers]
            # Rows that were dropped are read on for nothing; where most were, the others move together.
            if 2 * len(slots) > slots[-1] - slots[0]:
                kept = (part[numbers] for part in (state.lengths, state.logits, state.hidden_states))
                return PackedRows(state.cache, state.version, slots, *kept)
        return self._gathered([(state, row) for row in numbers.tolist()], ROOM)

    def step(self, state: PackedRows | Branches, tokens: Sequence[Sequence[int]]) -> PackedRows:
        """Read more tokens in every row, as many in each; the given state can still be used."""
        rows = np.asarray(tokens, np.int64)
        if isinstance(state, Branches):
            state = self.join([state])
        if len(rows) > 1:  # the library's attention reads on by one token where there are several rows
            for column in range(rows.shape[1] - 1):
                state = self._read(state, rows[:, column : column + 1], scored=False)
            rows = rows[:, -1:]
        return self._read(state, rows, scored=True)

    def branch(
        self, state: PackedRows | Branches, rows: Sequence[int], tokens: Sequence[Sequence[int]]
    ) -> PackedRows | Branches:
        """What `step` after `pick` gives, for a look ahead: few rows are in memory at once."""
        numbers = np.asarray(rows, np.int64)
        if isinstance(state, PackedRows):
            if _rises(numbers):
                return self.step(self.pick(state, rows), tokens)
            nothing = np.empty((len(numbers), self._layers, 2, self._heads, 0, self._width), np.float32)
            grown = Branches(state, numbers, nothing, state.logits[numbers], state.hidden_states[numbers])
        else:
            grown = state.picked(numbers)
        return self._branched(grown, np.asarray(tokens, np.int64))

    def logits(self, state: PackedRows | Branches) -> np.ndarray:
        """Scores of the next token: float32, (rows, vocabulary)."""
        return state.logits

    def likeliest(self, state: PackedRows | Branches, count: int) -> TopTokens:
        """The next tokens with the highest scores, as many in every row."""
        return top_tokens_of(state.logits, count)

    def hidden_states(self, state: PackedRows | Branches) -> np.ndarray:
        """Each row's last token after `probe_layer` layers: float32, (rows, width)."""
        return state.hidden_states

    def mean_hidden_states(self, prompt: Sequence[int], replies: Sequence[Sequence[int]]) -> np.ndarray:
        """The mean of the same over all tokens of each reply after the prompt: float32, (replies, width)."""
        means = np.zeros((len(replies), self._states), np.float32)
        if not len(means):
            return means
        cache = self._room(1, len(prompt) + max(map(len, replies)))
        before, start = np.array([len(prompt)]), np.asarray([prompt], np.int64)
        self._run(cache, range(1), start, before, np.arange(0))
        for number, reply in enumerate(replies):
            for offset in range(0, len(reply), SCORED):
                part = np.asarray([reply[offset : offset + SCORED]], np.int64)
                end = before + offset + part.shape[1]
                means[number] += self._run(
                    cache, range(1), part, end, np.arange(part.shape[1])
                ).hidden_states.sum(0)
        means /= np.maximum(1, [[len(reply)] for reply in replies])
        return means

    def log_likelihoods(self, prompt: Sequence[int], replies: Sequence[Sequence[int]]) -> np.ndarray:
        """How likely each reply is after the prompt, in nats: (replies,) float32; the prompt is read once."""
        totals = np.zeros(len(replies), np.float32)
        if not len(totals):
            return totals
        # One after the other in the room behind the prompt: nothing is copied, and nothing filled up.
        cache = self._room(1, len(prompt) + max(map(len, replies)))
        before, start = np.array([len(prompt)]), np.asarray([prompt], np.int64)
        first = self._run(cache, range(1), start, before, before - 1).logits
        for number, reply in enumerate(replies):
            tokens = np.asarray([reply], np.int64)
            totals[number] = _log_probabilities(first.copy(), tokens[0, :1])[0]
            for offset in range(0, len(reply) - 1, SCORED):
                part = tokens[:, offset : min(offset + SCORED, len(reply) - 1)]
                end = before + offset + part.shape[1]
                scores = self._run(cache, range(1), part, end, np.arange(part.shape[1])).logits
                totals[number] += _log_probabilities(
                    scores, tokens[0, offset + 1 : offset + 1 + len(scores)]
                ).sum()
        return totals

    def _read(self, state: PackedRows, tokens: np.ndarray, scored: bool) -> PackedRows:
        """Read on from a state, in its own memory where that is free."""
        more = tokens.shape[1]
        end = int(state.lengths.max()) + more
        version = state.cache.claim(state.version, end, state.span)
        if version is None:
            every = [(state, row) for row in range(len(state.lengths))]
            state, version = self._gathered(every, max(ROOM, end // 2) + more), 0
        cache, span, lengths = state.cache, state.span, state.lengths + more
        inside = state.slots - span.start
        # A row that was dropped reads a zero into its first free place.
        ends = np.array([cache.filled[row] + 1 for row in span], np.int64)
        new_tokens = np.zeros((len(span), more), np.int64)
        ends[inside], new_tokens[inside] = lengths, tokens
        kept = inside * more + more - 1 if scored else np.arange(0)
        read = self._run(cache, span, new_tokens, ends, kept)
        for slot, length in zip(state.slots.tolist(), lengths.tolist(), strict=True):
            cache.filled[slot] = length
        return PackedRows(cache, version, state.slots, lengths, *read)

    def _branched(self, state: Branches, tokens: np.ndarray) -> Branches:
        """Branches, longer by some tokens; portion by portion in the same memory."""
        count, more = tokens.shape
        before = state.lengths
        room = int(before.max()) + more
        portions = -(-count // max(1, BRANCHED // room))
        size = -(-count // portions)
        cache, held = self._room(size, room, spare=True), [-1] * size
        logits = np.empty((count, self._words), np.float32)
        hidden_states = np.empty((count, self._states), np.float32)
        old = state.tails.shape[4]
        tails = np.empty((*state.tails.shape[:4], old + more, self._width), np.float32)
        for first in range(0, count, size):
            rows = range(first, min(first + size, count))
            for slot, row in enumerate(rows):
                if held[slot] != (parent := int(state.parents[row])):  # the last portion's is still there
                    state.trunk.copy(parent, cache, slot)
                    held[slot] = parent
                state.copy_tail(row, cache, slot)
            part = slice(rows.start, rows.stop)
            for column in range(more):
                kept = np.arange(len(rows) if column + 1 == more else 0)
                new_tokens, ends = tokens[part, column : column + 1], before[part] + column + 1
                read = self._run(cache, range(len(rows)), new_tokens, ends, kept)
            logits[part], hidden_states[part] = read
            for slot, row in enumerate(rows):
                end = int(before[row]) + more
                tails[row] = cache.values[:, :, slot, :, end - old - more : end]
        if room <= SPARE:
            self._spare[:] = [np.asarray(cache.values.base)]
        return Branches(state.trunk, state.parents, tails, logits, hidden_states)

    def _gathered(self, rows: Sequence[tuple[PackedRows | Branches, int]], room: int) -> PackedRows:
        """Rows of states, copied to a cache of their own with so much room behind the longest."""
        lengths = np.array([state.lengths[row] for state, row in rows], np.int64)
        cache = self._room(len(rows), int(lengths.max()) + room)
        for slot, (state, row) in enumerate(rows):
            state.copy(row, cache, slot)
        logits = np.stack([state.logits[row] for state, row in rows])
        hidden_states = np.stack([state.hidden_states[row] for state, row in rows])
        return PackedRows(cache, 0, np.arange(len(rows)), lengths, logits, hidden_states)

    def _room(self, rows: int, length: int, spare: bool = False) -> Cache:
        """An empty cache; in memory that is free already, if that is asked for and enough."""
        shape = (self._layers, 2, rows, self._heads, min(length, self.context_length), self._width)
        size = math.prod(shape)
        try:
            values = self._spare.pop() if spare else None
        except IndexError:  # nobody left any, or another thread has it
            values = None
        if values is None or len(values) < size:
            values = None  # given back before more is taken
            values = np.empty(size, np.float32)
        return Cache(self._session, values[:size].reshape(shape))

    def _run(
        self, cache: Cache, span: range, tokens: np.ndarray, lengths: np.ndarray, kept: np.ndarray
    ) -> _Read:
        """Run the graph on tokens (rows, more); keys and values are written into the cache.

        `lengths` are those of the rows with these tokens, `kept` the flat indices of tokens whose states and
        successors are returned.
        """
        total = int(lengths.max())
        if total > self.context_length:
            raise InputError(
                f"The model reads {self.context_length} tokens at most, but was given {total}.",
                "Shorten the text.",
            )
        inputs = {
            "tokens": np.ascontiguousarray(tokens),
            "last": (lengths - 1).astype(np.int32),
            "total": np.array(total, np.int32),
            "kept": kept.astype(np.int64),
        }
        binding = cache.binding(span)
        for name, array in inputs.items():
            binding.bind_cpu_input(name, array)
        read = _Read(*(np.empty((len(kept), width), np.float32) for width in (self._words, self._states)))
        for name, array in zip(read._fields, read, strict=True):
            binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        self._session.run_with_iobinding(binding)
        return read


def _rises(rows: np.ndarray) -> bool:
    """Whether every row comes once at most, in order."""
    return bool((rows[1:] > rows[:-1]).all())


def _log_probabilities(logits: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """log softmax of some scores at a token each: (n,) float32; the scores are spent."""
    logits -= logits.max(axis=1, keepdims=True)
    chosen = logits[np.arange(len(tokens)), tokens]
    log_probabilities: np.ndarray = chosen - np.log(np.exp(logits, out=logits).sum(axis=1))
    return log_probabilities
