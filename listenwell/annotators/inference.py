"""Running an ear over many texts: batches of like length, each text once, whatever is asked of it."""

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
import torch

from listenwell.annotators.model import Ear
from listenwell.annotators.views import Input

CPU_TOKENS, GPU_TOKENS = 512, 65_536
"""Tokens in a batch, padding included; on a CPU small batches stay in its caches: 512 was the fastest."""


class Heard:
    """What an ear made of some texts; heads are asked afterwards, which costs next to nothing."""

    def __init__(self, ear: Ear, pooled: torch.Tensor, words: dict[int, np.ndarray]) -> None:
        self._ear, self._pooled, self._words = ear, pooled, words

    def logits(self, head: str, places: Sequence[int] | None = None) -> np.ndarray:
        """Scores of a head's labels (places, labels), for some of the texts or all."""
        chosen = self._pooled if places is None else self._pooled[torch.tensor(places, dtype=torch.long)]
        with torch.inference_mode():
            found: np.ndarray = self._ear.logits(chosen, head).float().cpu().numpy()
        return found

    @property
    def pooled(self) -> np.ndarray:
        """The encoder's vector of each text: (texts, width) float32."""
        found: np.ndarray = self._pooled.float().cpu().numpy()
        return found

    def words(self, place: int) -> np.ndarray:
        """How likely each word piece of the last turn shows each marked head's level: (pieces, heads)."""
        return self._words[place]


def hear(
    ear: Ear,
    inputs: Sequence[Input],
    marked: Collection[int] = (),
    advance: Callable[[int], None] | None = None,
) -> Heard:
    """Run the encoder over every input.

    Args:
        ear: the encoder and its heads, in eval mode, wherever its weights are.
        inputs: texts as tokens.
        marked: numbers of the inputs whose words are to be marked.
        advance: is told how many inputs were done, batch by batch.
    """
    device = next(ear.parameters()).device
    on_gpu = device.type == "cuda"
    pooled = torch.zeros(len(inputs), int(ear.encoder.config.hidden_size), device=device)
    words: dict[int, np.ndarray] = {}
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=on_gpu):
        for places in like_lengths([len(given) for given in inputs], GPU_TOKENS if on_gpu else CPU_TOKENS):
            chosen = [inputs[place] for place in places]
            states, vectors = _forward(ear, chosen, device)
            pooled[torch.tensor(places, device=device)] = vectors
            for row, place in enumerate(places):
                if place in marked:
                    first, end = inputs[place].last
                    found = ear.word_logits(states[row, first:end]).sigmoid().float().cpu()
                    words[place] = found.numpy()
            if advance:
                advance(len(places))
    return Heard(ear, pooled, words)


def like_lengths(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Numbers of texts of like length, at most `tokens` tokens with padding; the longest come first.

    The longest first, so that memory that does not suffice is seen at once.
    """
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _forward(ear: Ear, inputs: Sequence[Input], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """States (rows, length, width) and pooled vectors (rows, width), a text a row."""
    rows, width = len(inputs), max(map(len, inputs))
    tokens, types = np.zeros((rows, width), np.int64), np.zeros((rows, width), np.int64)
    segments, owners = np.zeros((rows, width), np.int64), np.full((rows, width), rows, np.int64)
    for row, given in enumerate(inputs):
        tokens[row, : len(given)], types[row, : len(given)] = given.tokens, given.types
        segments[row, : len(given)], owners[row, : len(given)] = 1, row
    positions = np.broadcast_to(np.arange(width), (rows, width)).copy()
    given_tensors = (torch.from_numpy(array).to(device) for array in (tokens, types, positions, segments))
    states = ear.states(*given_tensors)
    starts = torch.arange(rows, device=device) * width
    return states, ear.pooled(states, torch.from_numpy(owners.reshape(-1)).to(device), starts)
