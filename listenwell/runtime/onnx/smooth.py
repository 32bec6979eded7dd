"""A causal model whose numbers are easier to round: large channels are made smaller where they come in, and
the weights that read them larger by the same factor. The model computes the same (SmoothQuant, Xiao et al.
2023).

How large channels are is seen on a short text, which the model reads once in numpy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from listenwell.errors import WeightsError
from listenwell.runtime.chat_format import ASSISTANT, Chat
from listenwell.runtime.onnx.decoder import EMBEDDING, OUTPUT
from listenwell.runtime.onnx.shape import DecoderShape
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
    try:
        chat = Chat(vocabulary)
    except WeightsError:
        return vocabulary.encode(SAMPLE)
    tokens = list(chat.begin)
    for number, line in enumerate(SAMPLE.splitlines()):
        tokens += chat.turn(("user", ASSISTANT)[number % 2], vocabulary.encode(line))
    return tokens


class Smoothed(Changed):
    """A model's weights with its channels balanced; the output layer is no longer tied to the embedding."""

    def __init__(
        self,
        shape: DecoderShape,
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
        # With the first token, on which a model lets all others rest: its few huge channels matter most.
        sizes = np.sqrt(np.square(seen).mean(axis=0))
        tables = (self._weights[self._output if name == OUTPUT else name] for name in readers)
        read = np.sqrt(sum(np.einsum("ij,ij->j", table, table) for table in tables))
        factors = np.sqrt(np.maximum(sizes, 1e-5) / np.maximum(read, 1e-5)).astype(np.float32)
        self._rows[writer] = factors
        self._columns |= dict.fromkeys(readers, factors)


def _read(
    shape: DecoderShape,
    weights: Mapping[str, np.ndarray],
    tokens: Sequence[int],
    seen: Callable[[np.ndarray, str, Sequence[str]], None],
    advance: Callable[[int], None],
) -> None:
    """Run the model over a text and show what its linear layers get: (values, writer, readers)."""
    stream = weights[EMBEDDING][np.asarray(tokens)]
    if shape.family.scaled_embedding:
        stream = stream * np.float32(shape.width**0.5)

    def normed(values: np.ndarray, norm: str) -> np.ndarray:
        return _normed(values, weights[f"{norm}.weight"], shape)

    for layer in range(shape.layers):
        prefix = f"model.layers.{layer}"
        norm, projections = f"{prefix}.input_layernorm", [f"{prefix}.self_attn.{x}_proj" for x in "qkv"]
        read = normed(stream, norm)
        seen(read, f"{norm}.weight", [f"{name}.weight" for name in projections])
        packed = [read @ weights[f"{name}.weight"].T for name in projections]
        if shape.family.input_biases:
            packed = [x + weights[f"{name}.bias"] for x, name in zip(packed, projections, strict=True)]
        gains = [weights[f"{prefix}.self_attn.{x}_norm.weight"] for x in "qk" if shape.family.head_norms]
        attended = _attended(shape, layer, packed, gains) @ weights[f"{prefix}.self_attn.o_proj.weight"].T
        if shape.family.post_norms:
            attended = normed(attended, f"{prefix}.post_attention_layernorm")
        stream = stream + attended
        gate, up, down = (f"{prefix}.mlp.{part}_proj.weight" for part in ("gate", "up", "down"))
        read = normed(stream, shape.feed_norm(layer))
        seen(read, f"{shape.feed_norm(layer)}.weight", [gate, up])
        mixed = _opened(shape, read @ weights[gate].T) * (read @ weights[up].T)
        seen(mixed, up, [down])
        fed = mixed @ weights[down].T
        if shape.family.post_norms:
            fed = normed(fed, f"{prefix}.post_feedforward_layernorm")
        stream = stream + fed
        advance(1)
    seen(normed(stream, "model.norm"), "model.norm.weight", [OUTPUT])


def _opened(shape: DecoderShape, gates: np.ndarray) -> np.ndarray:
    """The gates' activation: silu, or gelu by its tanh formula (Hendrycks and Gimpel 2016)."""
    if shape.family.activation == "silu":
        opened: np.ndarray = gates / (1 + np.exp(-gates))
    else:
        opened = gates / 2 * (1 + np.tanh(np.float32((2 / np.pi) ** 0.5) * (gates + 0.044715 * gates**3)))
    return opened


def _normed(values: np.ndarray, gain: np.ndarray, shape: DecoderShape) -> np.ndarray:
    normed: np.ndarray = values / np.sqrt(np.square(values).mean(axis=-1, keepdims=True) + shape.epsilon)
    normed *= gain
    return normed


def _attended(
    shape: DecoderShape, layer: int, packed: Sequence[np.ndarray], gains: Sequence[np.ndarray]
) -> np.ndarray:
    """Causal grouped-query attention over one text: (tokens, heads × head width)."""
    tokens, group = len(packed[0]), shape.heads // shape.key_heads
    tables = shape.rope_of(layer).rotations(tokens, shape.head_width)
    cosines, sines = (table[:, None] for table in tables)
    queries, keys, values = (part.reshape(tokens, -1, shape.head_width) for part in packed)
    if gains:
        queries, keys = (_normed(x, gain, shape) for x, gain in zip((queries, keys), gains, strict=True))

    def rotated(vectors: np.ndarray) -> np.ndarray:
        """(heads, tokens, head width)"""
        first, second = np.split(vectors, 2, axis=2)
        turned = (first * cosines - second * sines, second * cosines + first * sines)
        return np.concatenate(turned, axis=2).swapaxes(0, 1)

    scores = rotated(queries) @ rotated(keys).repeat(group, axis=0).swapaxes(1, 2)
    scores *= np.float32(shape.scale)
    if cap := np.float32(shape.attention_cap):
        scores = cap * np.tanh(scores / cap)
    unseen = np.triu(np.ones((tokens, tokens), bool), 1)
    if window := shape.windows[layer]:
        unseen |= np.tril(np.ones((tokens, tokens), bool), -window)
    scores[:, unseen] = -np.inf
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    heads_of_values = values.swapaxes(0, 1).repeat(group, axis=0)
    attended: np.ndarray = (weights @ heads_of_values).swapaxes(0, 1).reshape(tokens, -1)
    return attended
