"""What a causal model on onnxruntime remembers of the tokens that it read: keys and values, 46 KB a token of
ours.

States are values that share memory. Whoever reads on writes into the room behind the rows, so that older
states stay whole; rows that are dropped stay where they are, and branches keep their own last tokens alone.
"""

from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np


def cache_names(layer: int) -> tuple[tuple[str, str], tuple[str, str]]:
    """A layer's past keys and values among the graph's inputs, and present ones among its outputs."""
    past, present = f"past.{layer}", f"present.{layer}"
    return (f"{past}.keys", f"{past}.values"), (f"{present}.keys", f"{present}.values")


class Cache:
    """Keys and values of some rows, with room behind them: (layers, 2, rows, key heads, room, head width)."""

    def __init__(self, session: Any, values: np.ndarray) -> None:  # noqa: ANN401
        self.values = values
        self.filled = [0] * values.shape[2]
        """Tokens that each row holds."""
        self._session, self._bindings = session, dict[tuple[int, int], Any]()
        self._newest, self._lock = 0, Lock()

    def claim(self, version: int, end: int, rows: range) -> int | None:
        """The next version's number, if nobody has read on from this one and there is room up to `end`.

        Rows between the first and the last that go on need a free slot too.
        """
        room = self.values.shape[4]
        with self._lock:
            if version != self._newest or end > room or max(self.filled[row] for row in rows) >= room:
                return None
            self._newest += 1
            return self._newest

    def binding(self, rows: range) -> Any:  # noqa: ANN401
        """The graph's inputs and outputs, tied to the memory of rows that stand together."""
        known = self._bindings.get(key := (rows.start, rows.stop))
        if known is None:
            known = self._bindings[key] = self._session.io_binding()
            kind, shape = self.values.dtype, (len(rows), *self.values.shape[3:])
            by_layer, by_part, by_row, *_ = self.values.strides
            first = self.values.ctypes.data + rows.start * by_row
            for layer in range(len(self.values)):
                for part, (past, present) in enumerate(zip(*cache_names(layer), strict=True)):
                    address = first + layer * by_layer + part * by_part
                    known.bind_input(past, "cpu", 0, kind, shape, address)
                    known.bind_output(present, "cpu", 0, kind, shape, address)
        return known


@dataclass(frozen=True)
class PackedRows:
    """Rows of a cache, not always all of them."""

    cache: Cache
    version: int
    """Of the cache's contents."""
    slots: np.ndarray
    """(rows,), rising: where each stands in the cache."""
    lengths: np.ndarray
    """(rows,) tokens read"""
    logits: np.ndarray
    """(rows, vocabulary)"""
    hidden_states: np.ndarray
    """(rows, width)"""

    @property
    def span(self) -> range:
        """The cache's rows from the first to the last of these."""
        return range(int(self.slots[0]), int(self.slots[-1]) + 1)

    def copy(self, row: int, cache: Cache, slot: int) -> None:
        """What a row has read, to a row of another cache."""
        length = int(self.lengths[row])
        cache.values[:, :, slot, :, :length] = self.cache.values[:, :, self.slots[row], :, :length]
        cache.filled[slot] = length


@dataclass(frozen=True)
class Branches:
    """Rows that go on from those of another state, of which they hold nothing but a name."""

    trunk: PackedRows
    parents: np.ndarray
    """(rows,) of the trunk: what each goes on from."""
    tails: np.ndarray
    """(rows, layers, 2, key heads, tokens, head width): what each has read itself."""
    logits: np.ndarray
    """(rows, vocabulary)"""
    hidden_states: np.ndarray
    """(rows, width)"""

    @property
    def lengths(self) -> np.ndarray:
        """(rows,) tokens read"""
        lengths: np.ndarray = self.trunk.lengths[self.parents] + self.tails.shape[4]
        return lengths

    def picked(self, rows: np.ndarray) -> "Branches":
        """These rows, repeated, reordered or left out."""
        return Branches(
            self.trunk, self.parents[rows], self.tails[rows], self.logits[rows], self.hidden_states[rows]
        )

    def copy(self, row: int, cache: Cache, slot: int) -> None:
        """What a row has read, to a row of a cache; one that holds the same trunk gets the tail alone."""
        self.trunk.copy(int(self.parents[row]), cache, slot)
        self.copy_tail(row, cache, slot)

    def copy_tail(self, row: int, cache: Cache, slot: int) -> None:
        """What a row has read itself, to a row that holds its trunk's."""
        end = int(self.lengths[row])
        cache.values[:, :, slot, :, end - self.tails.shape[4] : end] = self.tails[row]
        cache.filled[slot] = end
