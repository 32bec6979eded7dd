import json

import pytest

from listenwell.generators.persona import sentence_encoder
from tests.annotators.no_torch import run_without_torch

TEXTS = ["My dog died.", "I got promoted", "what happened to you? " * 9]


@pytest.mark.usefixtures("installed_encoder")
def test_vectors_are_torchs():
    wanted = sentence_encoder(engine="torch")(TEXTS)
    exact = sentence_encoder(engine="onnx", precision="fp32")(TEXTS)
    assert exact == pytest.approx(wanted, abs=1e-5) and exact.dtype == wanted.dtype
    rounded = sentence_encoder()(TEXTS)
    assert (rounded * wanted).sum(axis=1) == pytest.approx(1, abs=0.01)  # of length 1: their cosines
    assert (rounded != exact).any()


def test_none_is_needed(tiny_encoder):
    program = """
import json
from pathlib import Path
from listenwell.runtime.onnx import checkpoint_encoder as light_encoder
light_encoder.find_weights = lambda base, folder=None: Path(sys.argv[1])
from listenwell.generators.persona import sentence_encoder
print(json.dumps(sentence_encoder()(json.loads(sys.argv[2])).tolist()))
assert "torch" not in sys.modules
"""
    found = json.loads(run_without_torch(program, tiny_encoder, json.dumps(TEXTS)))
    assert [len(vector) for vector in found] == [16] * 3 and found[0] != found[1]
