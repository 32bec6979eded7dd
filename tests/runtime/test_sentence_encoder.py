import json

import numpy as np
import pytest

from listenwell.runtime.onnx.encoder import OnnxEncoder
from listenwell.runtime.sentence_encoder import SentenceEncoder
from listenwell.runtime.text import CPU_TOKENS
from tests.annotators.no_torch import run_without_torch

TEXTS = ["My dog died.", "I got promoted", "what happened to you? " * 9]


@pytest.mark.usefixtures("installed_encoder")
def test_vectors_are_those_of_torch():
    expected = SentenceEncoder.load(engine="torch").encode(TEXTS)
    exact = SentenceEncoder.load(engine="onnx", precision="fp32").encode(TEXTS)
    assert exact == pytest.approx(expected, abs=1e-5) and exact.dtype == expected.dtype == np.float32
    rounded = SentenceEncoder.load().encode(TEXTS)
    assert (rounded * expected).sum(axis=1) == pytest.approx(1, abs=0.01)  # of length 1: their cosines
    assert (rounded != exact).any()


@pytest.mark.usefixtures("installed_encoder")
def test_words_are_the_same_with_both_engines():
    words = [text.split() for text in [*TEXTS, ""]]
    first, second = (
        SentenceEncoder.load(engine=engine, precision="fp32").encode_words(words)
        for engine in ("torch", "onnx")
    )
    np.testing.assert_allclose(first[0], second[0], atol=1e-5)  # other kernels: float32 rounding
    for ours, theirs, text in zip(first[1], second[1], words, strict=True):
        assert len(ours) == len(text)
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.usefixtures("installed_encoder")
def test_many_short_texts_stay_within_the_token_budget(monkeypatch):
    texts = [f"good luck {number}" for number in range(4000)]
    encoder, sizes, run = SentenceEncoder.load(), [], OnnxEncoder._run

    def counting(self, batch, outputs):
        sizes.append(batch.tokens.size)
        return run(self, batch, outputs)

    monkeypatch.setattr(OnnxEncoder, "_run", counting)
    vectors = encoder.encode(texts)
    assert vectors.shape == (4000, 16) and max(sizes) <= CPU_TOKENS
    assert sum(sizes) > 4000 * 4


def test_no_texts_have_no_vectors(tiny_encoder):
    encoder = SentenceEncoder.load(folder=tiny_encoder)
    assert encoder.encode([]).shape == (0, 16)
    sentences, words = encoder.encode_words([])
    assert sentences.shape == (0, 16) and words == []


def test_torch_is_not_needed(tiny_encoder):
    program = """
import json
from pathlib import Path
from listenwell.runtime.sentence_encoder import SentenceEncoder
encoder = SentenceEncoder.load(folder=Path(sys.argv[1]))
print(json.dumps(encoder.encode(json.loads(sys.argv[2])).tolist()))
assert "torch" not in sys.modules
"""
    vectors = json.loads(run_without_torch(program, tiny_encoder, json.dumps(TEXTS)))
    assert [len(vector) for vector in vectors] == [16] * 3 and vectors[0] != vectors[1]
