import numpy as np
import pytest

from listenwell.runtime.onnx.encoder import STATES, OnnxEncoder
from listenwell.runtime.onnx.heads import POOLED, PooledHeads
from listenwell.runtime.text import TokenBatch

RANDOM = np.random.default_rng(0)


class Text:
    def __init__(self, length):
        self.tokens = RANDOM.integers(4, 60, length)
        self.types = RANDOM.integers(0, 2, length)

    def __len__(self):
        return len(self.tokens)


@pytest.mark.parametrize("pooling", ["mean", "first", "last"])
@pytest.mark.parametrize("lengths", [(9, 8, 9), (9, 2, 1, 3)], ids=["in rows", "packed"])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_pooling_and_heads_of_the_graph_are_those_of_numpy(tiny_encoder, pooling, lengths, precision):
    weight, bias = RANDOM.normal(size=(3, 16)).astype(np.float32), RANDOM.normal(size=3).astype(np.float32)
    heads = PooledHeads(pooling, {"act": (weight, bias)}, {"words": (weight[:2], bias[:2])})
    encoder = OnnxEncoder.load(tiny_encoder, precision=precision, threads=1, heads=heads)
    batch = TokenBatch.padded([Text(length) for length in lengths])
    pooled, logits, words, states = encoder.run(batch, [POOLED, "act", "words", STATES])
    for row, length in enumerate(lengths):
        own = states[row, :length]
        vector = {"mean": own.mean(axis=0), "first": own[0], "last": own[-1]}[pooling]
        # Other orders of the same sums: float32 rounding.
        np.testing.assert_allclose(pooled[row], vector, atol=1e-5)
        np.testing.assert_allclose(logits[row], weight @ vector + bias, atol=1e-4)
        marks = 1 / (1 + np.exp(-(own @ weight[:2].T + bias[:2])))
        np.testing.assert_allclose(words[row, :length], marks, atol=1e-5)


def test_other_heads_are_another_graph(tiny_encoder):
    weight, bias = np.ones((3, 16), np.float32), np.zeros(3, np.float32)
    keys = [
        PooledHeads().key(),
        PooledHeads("last").key(),
        PooledHeads(text_heads={"act": (weight, bias)}).key(),
        PooledHeads(token_heads={"act": (weight, bias)}).key(),
        PooledHeads(text_heads={"act": (weight, bias + 1)}).key(),
    ]
    assert len(set(keys)) == len(keys)
