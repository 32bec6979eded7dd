import numpy as np
import pytest

from listenwell.runtime import torch_engine
from listenwell.runtime.torch_engine import TorchRuntime
from tests.tiny import log_likelihood

PROMPTS = [[5], [1, 40, 50, 60, 70], [8, 9, 10], [1, 40, 51]]
REPLIES = [[9], [9, 10, 11, 12, 13, 14, 15], [200, 3], [2], [7, 7, 7]]


@pytest.fixture(scope="module")
def runtime(tiny_llama):
    return TorchRuntime.from_folder(tiny_llama)


def one_by_one(runtime):
    return [[log_likelihood(runtime, prompt, reply) for reply in REPLIES] for prompt in PROMPTS]


@pytest.mark.parametrize(
    ("sizes", "passes"), [((2048, 2048, 8192), 1), ((8, 2048, 5), 2), ((8, 13, 2), 8), ((1, 1, 1), 20)]
)
def test_many_prompts_and_replies_are_those_one_by_one(runtime, monkeypatch, sizes, passes):
    row, tokens, logits = sizes
    monkeypatch.setattr(torch_engine, "ROW_TOKENS", row)
    monkeypatch.setattr(torch_engine, "CPU_TOKENS", tokens)
    monkeypatch.setattr(torch_engine, "LOGIT_ROWS", logits)
    asked, real = [], torch_engine._log_likelihoods
    monkeypatch.setattr(torch_engine, "_log_likelihoods", lambda *given: asked.append(1) or real(*given))
    found = runtime.log_likelihoods_of(PROMPTS, REPLIES)
    assert found.shape == (4, 5) and found.dtype == np.float32 and len(asked) == passes
    np.testing.assert_allclose(found, one_by_one(runtime), rtol=1e-4)


def test_every_prompt_can_have_replies_of_its_own(runtime, monkeypatch):
    asked = [
        (PROMPTS[0], REPLIES[:2]),
        (PROMPTS[1], []),
        (PROMPTS[2], REPLIES[1:]),
        (PROMPTS[1], REPLIES[:1]),
    ]
    for tokens in (2048, 20, 1):
        monkeypatch.setattr(torch_engine, "CPU_TOKENS", tokens)
        found = runtime.log_likelihoods_each(asked)
        assert [each.shape for each in found] == [(2,), (0,), (4,), (1,)]
        for each, (prompt, replies) in zip(found, asked, strict=True):
            alone = [log_likelihood(runtime, prompt, reply) for reply in replies]
            np.testing.assert_allclose(each, alone, rtol=1e-4)


def test_nothing_asked_nothing_found(runtime):
    assert runtime.log_likelihoods_of(PROMPTS, []).shape == (4, 0)
    assert runtime.log_likelihoods_of([], REPLIES).shape == (0, 5)
