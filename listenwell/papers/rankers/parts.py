"""Turns and sentences inside rows: LSTMs that read each by itself, means over each, rows without gaps.

Nothing is padded turn by turn: words go to the LSTM in packed order straight from their rows, so that one
long turn makes no padding for all others, and the pairs of a batch fit into memory.
"""

from dataclasses import dataclass
from typing import Any, cast

import torch

from listenwell.rankers.base import States


class Parts:
    """Where the parts of texts are.

    Args:
        numbers: (rows, length) int64: each word's part, from 1; 0 is padding. Padding may stand anywhere, a
            number may be missing, and a row may have no word at all.
    """

    def __init__(self, numbers: torch.Tensor) -> None:
        self._shape = numbers.shape
        count = max(1, int(numbers.max()))
        among = torch.arange(1, count + 1, device=numbers.device)[:, None]
        self._each = numbers[:, None] == among  # (rows, parts, length)
        self._lengths = self._each.sum(dim=2)  # (rows, parts)
        positions = (self._each.cumsum(dim=2) * self._each).sum(dim=1).flatten() - 1  # inside its part
        words = (numbers > 0).flatten().nonzero().squeeze(1)
        parts = words // numbers.shape[1] * count + numbers.flatten()[words] - 1
        # Packed order: the first words of all parts, the longest part first, then all second ones.
        longest = self._lengths.flatten().argsort(descending=True, stable=True)
        ranks = torch.empty_like(longest)
        ranks[longest] = torch.arange(len(longest), device=numbers.device)
        packed = (positions[words] * len(longest) + ranks[parts]).argsort()
        self._words, self._parts = words[packed], parts[packed]
        # Words at each position; an LSTM needs them on the CPU.
        self._sizes = positions[words].bincount().cpu()
        self._order = longest[: int(self._sizes[0]) if len(words) else 0]

    @property
    def mask(self) -> torch.Tensor:
        """(rows, parts) bool: which parts have words."""
        return self._lengths > 0

    def means(self, values: torch.Tensor) -> torch.Tensor:
        """The mean of each part's words: (rows, length, width) to (rows, parts, width); zeros without any."""
        sums = self._each.to(values.dtype) @ values
        return cast(torch.Tensor, sums / self._lengths.clamp(min=1)[:, :, None])

    def read(self, lstm: Any, values: torch.Tensor) -> "Reading":  # noqa: ANN401
        """Read each part of values (rows, length, width) by itself, with an LSTM from `bilstm`."""
        data = values.flatten(0, 1)[self._words]  # (words, width)
        if len(data):
            output, (last, _) = lstm(torch.nn.utils.rnn.PackedSequence(data, self._sizes))
            return Reading(self, output.data, last.transpose(0, 1).flatten(1))
        nothing = values.new_zeros(0, 2 * lstm.hidden_size)
        return Reading(self, nothing, nothing)

    def at_words(self, packed: torch.Tensor) -> torch.Tensor:
        """Packed words back in their rows: (rows, length, width); zeros in padding."""
        rows, length = self._shape
        return self._placed(packed, self._words, rows, length)

    def at_parts(self, packed: torch.Tensor) -> torch.Tensor:
        """Vectors of parts, the longest part first, back in rows: (rows, parts, width); zeros without any."""
        return self._placed(packed, self._order, *self._lengths.shape)

    def maxima(self, packed: torch.Tensor) -> torch.Tensor:
        """The maximum over each part's packed words: (rows, parts, width); zeros where there is none."""
        rows, count = self._lengths.shape
        empty = packed.new_zeros(rows * count, packed.shape[1])
        largest = empty.scatter_reduce(
            0, self._parts[:, None].expand_as(packed), packed, "amax", include_self=False
        )
        return cast(torch.Tensor, largest.view(rows, count, -1))

    def _placed(self, packed: torch.Tensor, indices: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
        empty = packed.new_zeros(rows * columns, packed.shape[1])
        return cast(torch.Tensor, empty.index_copy(0, indices, packed).view(rows, columns, -1))


@dataclass(frozen=True)
class Reading:
    """What an LSTM of `width` made of parts."""

    parts: Parts
    packed: torch.Tensor  # (words, 2 width)
    ends: torch.Tensor  # (parts that have words, 2 width)

    def words(self) -> torch.Tensor:
        """Its states at every word: (rows, length, 2 width)."""
        return self.parts.at_words(self.packed)

    def last(self) -> torch.Tensor:
        """The last state of each direction: (rows, parts, 2 width)."""
        return self.parts.at_parts(self.ends)

    def pooled(self) -> torch.Tensor:
        """The maximum over states and the last ones: (rows, parts, 4 width)."""
        return torch.cat((self.parts.maxima(self.packed), self.last()), dim=2)


def bilstm(inputs: int, width: int) -> torch.nn.LSTM:
    """An LSTM of one layer that reads both ways: `width` states each."""
    return torch.nn.LSTM(inputs, width, bidirectional=True)


def aligned(states: States) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows whose words stand side by side from the left, (rows, words, width), and their mask."""
    mask = states.mask
    counts = mask.sum(dim=1)
    longest = max(1, int(counts.max()))
    order = (~mask).long().argsort(dim=1, stable=True)[:, :longest]
    values = states.values.gather(1, order[:, :, None].expand(-1, -1, states.values.shape[2]))
    return values, torch.arange(longest, device=mask.device) < counts[:, None]
