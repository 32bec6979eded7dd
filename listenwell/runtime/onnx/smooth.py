"""A Llama whose numbers are easier to round: large channels are made smaller where they come in, and the
weights that read them larger by the same factor. The model computes the same (SmoothQuant, Xiao et al. 2023).

How large channels are is seen on a short text, which the model reads once in numpy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from listenwell.errors import WeightsError
from listenwell.runtime.onnx.llama import EMBEDDING, OUTPUT, LlamaShape, rotations
from listenwell.runtime.onnx.tensors import Changed
from listenwell.runtime.text import Vocabulary

SAMPLE = """I finally got the job I wanted, after so many interviews that came to nothing. My hands shook!
That is wonderful news. You must be so proud of yourself. When do you start?
My grandmother died on Sunday, and I was not there. I keep thinking that I should have called her more often.
I am so sorry. It sounds like you loved her very much; what was she like?
Honestly? My neighbor's dog barked for 3 hours last night, and I could not sleep at all. I'm furious."""
"""What the model reads to show its channels: talk of the kind it is for."""


def sample_tokens(vocabulary: Vocabulary) -> list[int]:
    """The text's tokens: as a chat, where the vocabulary has the marks of one."""
    tokens: list[int] = []
    for number, line in enumerate(SAMPLE.splitlines()):
        try:
            start, end = vocabulary.special("<|im_start|>"), vocabulary.special("<|im_end|>")
        except WeightsError:
            return vocabulary.encode(SAMPLE)
        generator = ("user", "assistant")[number % 2]
        tokens += [start, *vocabulary.encode(f"{generator}\n{line}"), end, *vocabulary.encode("\n")]
    return tokens


class Smoothed(Changed):
    """A Llama's weights with its channels balanced; the output layer is no longer tied to the embedding."""

    def __init__(
        self,
        shape: LlamaShape,
        weights: Mapping[str, np.ndarray],
        tokens: Sequence[int],
        advance: Callable[[int], None] = lambda count: None,
    ) -> None:
        super().__init__(weights)
        self.shape = replace(shape, tied=False)
        self._output = EMBEDDING if shape.tied else OUTPUT
        self._columns: dict[str, np.ndarray] = {}  # factors of what is read, by the weight that reads it
        self._rows: dict[str, np.ndarray] = {}  # and of what is written, by the weight that writes it
        _read(shape, weights, tokens, self._balance, advance)

    def __getitem__(self, name: str) -> np.ndarray:
        weight = self._weights[self._output if name == OUTPUT else name]
        if (factors := self._columns.get(name)) is not None:
            weight = weight * factors
        if (factors := self._rows.get(name)) is not None:
            weight = weight / factors.reshape(-1, *[1] * (weight.ndim - 1))
        return weight

    def _balance(self, seen: np.ndarray, writer: str, readers: Sequence[str]) -> None:
        """Find the factors of some channels: √(size of what comes in / size of the weights), eq. 4.

        `writer` scales what is seen (tokens, width) by its rows or gains, the readers' columns read it.
        """
        # With the first token, on which a Llama lets all others rest: its few huge channels matter most.
        sizes = np.sqrt(np.square(seen).mean(axis=0))
        tables = (self._weights[self._output if name == OUTPUT else name] for name in readers)
        read = np.sqrt(sum(np.einsum("ij,ij->j", table, table) for table in tables))
        factors = np.sqrt(np.maximum(sizes, 1e-5) / np.maximum(read, 1e-5)).astype(np.float32)
        self._rows[writer] = factors
        self._columns |= dict.fromkeys(readers, factors)


def _read(
    shape: LlamaShape,
    weights: Mapping[str, np.ndarray],
    tokens: Sequence[int],
    seen: Callable[[np.ndarray, str, Sequence[str]], None],
    advance: Callable[[int], None],
) -> None:
    """Run the model over a text and show what its linear layers get: (values, writer, readers)."""
    stream = weights[EMBEDDING][np.asarray(tokens)]
    for layer in range(shape.layers):
        prefix = f"model.layers.{layer}"
        norm, names = (
            f"{prefix}.input_layernorm.weight",
            [f"{prefix}.self_attn.{x}_proj.weight" for x in "qkv"],
        )
        normed = _normed(stream, weights[norm], shape)
        seen(normed, norm, names)
        attended = _attended(shape, *(normed @ weights[name].T for name in names))
        stream = stream + attended @ weights[f"{prefix}.self_attn.o_proj.weight"].T
        norm = f"{prefix}.post_attention_layernorm.weight"
        gate, up, down = (f"{prefix}.mlp.{part}_proj.weight" for part in ("gate", "up", "down"))
        normed = _normed(stream, weights[norm], shape)
        seen(normed, norm, [gate, up])
        opened = normed @ weights[gate].T
        mixed = opened / (1 + np.exp(-opened)) * (normed @ weights[up].T)
        seen(mixed, up, [down])
        stream = stream + mixed @ weights[down].T
        advance(1)
    seen(_normed(stream, weights["model.norm.weight"], shape), "model.norm.weight", [OUTPUT])


def _normed(stream: np.ndarray, gain: np.ndarray, shape: LlamaShape) -> np.ndarray:
    normed: np.ndarray = stream / np.sqrt(np.square(stream).mean(axis=1, keepdims=True) + shape.epsilon)
    normed *= gain
    return normed


def _attended(shape: LlamaShape, queries: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Causal grouped-query attention over one text: (tokens, heads × head width)."""
    tokens, group = len(queries), shape.heads // shape.key_heads
    cosines, sines = (table[:tokens, None] for table in rotations(shape))

    def rotated(vectors: np.ndarray) -> np.ndarray:
        """(heads, tokens, head width)"""
        first, second = np.split(vectors.reshape(tokens, -1, shape.head_width), 2, axis=2)
        turned = (first * cosines - second * sines, second * cosines + first * sines)
        return np.concatenate(turned, axis=2).swapaxes(0, 1)

    heads_of_values = values.reshape(tokens, -1, shape.head_width).swapaxes(0, 1).repeat(group, axis=0)
    scores = rotated(queries) @ rotated(keys).repeat(group, axis=0).swapaxes(1, 2)
    scores *= np.float32(shape.head_width**-0.5)
    scores[:, np.triu(np.ones((tokens, tokens), bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    attended: np.ndarray = (weights @ heads_of_values).swapaxes(0, 1).reshape(tokens, -1)
    return attended
