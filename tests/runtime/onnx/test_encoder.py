import numpy as np
import pytest
import torch

from listenwell.errors import WeightsError
from listenwell.runtime.onnx.encoder import STATES, OnnxEncoder
from listenwell.runtime.text import TokenBatch
from tests.tiny import tiny_ear

RANDOM = np.random.default_rng(0)
TOKENS, TYPES = RANDOM.integers(4, 60, (3, 9)), RANDOM.integers(0, 2, (3, 9))
SEGMENTS = np.array([[1] * 9, [1] * 5 + [0] * 4, [1] * 4 + [2] * 5])  # whole, filled up, two in a row
POSITIONS = np.array([[*range(9)], [*range(9)], [*range(4), *range(5)]])
GIVEN = (TOKENS, TYPES, POSITIONS, SEGMENTS)


def torch_states(classifier):
    with torch.inference_mode():
        return classifier.states(*map(torch.from_numpy, GIVEN)).numpy()


def onnx_states(encoder, tokens, types, positions, segments):
    """States of texts that are numbered anew in every row."""
    numbered = np.where(segments > 0, segments + 2 * np.arange(len(segments))[:, None], 0)
    numbered = np.unique(numbered, return_inverse=True)[1].reshape(segments.shape)
    return encoder.run(TokenBatch(tokens, types, positions, numbered), [STATES])[0]


def test_exact_states_are_those_of_an_ear(tiny_encoder):
    wanted = torch_states(tiny_ear(tiny_encoder, ["act"]))
    encoder = OnnxEncoder.load(tiny_encoder, precision="fp32", threads=1)
    found = onnx_states(encoder, *GIVEN)
    assert found.shape == (3, 9, encoder.width) and found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_texts_with_much_padding_stand_in_one_row(tiny_encoder, monkeypatch):
    encoder = OnnxEncoder.load(tiny_encoder, precision="fp32", threads=1)
    shapes, run = list[tuple[int, ...]](), encoder._run
    monkeypatch.setattr(
        encoder, "_run", lambda batch, names: shapes.append(batch.tokens.shape) or run(batch, names)
    )
    known = np.array([[1] * 9, [1] * 3 + [0] * 6, [1] * 2 + [2] * 2 + [0] * 5])
    places = np.array([[*range(9)], [*range(9)], [0, 1, 0, 1, *range(5)]])
    packed = onnx_states(encoder, TOKENS, TYPES, places, known)
    monkeypatch.setattr("listenwell.runtime.onnx.encoder.PADDED", 1.0)
    rows = onnx_states(encoder, TOKENS, TYPES, places, known)
    assert shapes == [(1, 16), (3, 9)]
    np.testing.assert_allclose(packed[known > 0], rows[known > 0], atol=1e-5)


def test_rounded_states_are_close(tiny_encoder):
    wanted = torch_states(tiny_ear(tiny_encoder, ["act"]))
    found = onnx_states(OnnxEncoder.load(tiny_encoder, threads=1), *GIVEN)
    assert 0 < np.abs(found - wanted).max() < 0.1 < np.abs(wanted).max() / 10


def test_an_ears_adapter_is_merged(tiny_encoder, tmp_path):
    from listenwell.annotators.model import save_classifier

    classifier = tiny_ear(tiny_encoder, ["act"], lora=True)
    save_classifier(classifier, tmp_path)
    encoder = OnnxEncoder.load(tiny_encoder, tmp_path, "fp32", threads=1)
    plain = OnnxEncoder.load(tiny_encoder, precision="fp32", threads=1)
    found, wanted = onnx_states(encoder, *GIVEN), torch_states(classifier)
    assert np.abs(onnx_states(plain, *GIVEN) - wanted).max() > 0.1
    np.testing.assert_allclose(found, wanted, atol=5e-3)  # adapters are kept in half precision


def test_the_vocabulary_and_limits_come_with_it(tiny_encoder):
    encoder = OnnxEncoder.load(tiny_encoder, precision="fp32", threads=1)
    assert (encoder.width, encoder.positions) == (16, 64)
    assert encoder.vocabulary.decode(encoder.vocabulary.encode("my dog died")) == "my dog died"


def test_a_bert_of_another_make_is_refused(tiny_encoder, tmp_path):
    import json
    import shutil

    folder = shutil.copytree(tiny_encoder, tmp_path / "other")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"hidden_act": "relu"}))
    with pytest.raises(WeightsError, match="no plain BERT; what differs: hidden_act"):
        OnnxEncoder.load(folder)
