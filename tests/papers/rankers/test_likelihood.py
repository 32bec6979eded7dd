import shutil

import numpy as np
import pytest

from listenwell import checkpoint
from listenwell.dialogue import Dialogue, Persona, Turn
from listenwell.errors import CheckpointError
from listenwell.generators.prompt_template import build_prompt
from listenwell.papers.rankers.likelihood import PROMPT_TOKENS, REPLY_TOKENS, Likelihood
from listenwell.rankers.ensemble import load_scorer
from listenwell.runtime.torch_engine import TorchRuntime
from tests.tiny import log_likelihood

TALKS = [
    Dialogue((Turn("speaker", "My dog died."),)),
    Dialogue(
        (Turn("speaker", "I moved."), Turn("listener", "How did it go?"), Turn("speaker", "I feel alone.")),
        personas=(Persona("listener", ("I am happy.",)),),
    ),
]
REPLIES = [
    "That must be hard.",
    "Oh no!",
    "What happened to your dog?",
    "I am so happy for you! How did it go?",
]


@pytest.fixture(scope="module")
def runtime(tiny_llama):
    return TorchRuntime.from_folder(tiny_llama)


def end_of(runtime):
    return runtime.vocabulary.special("<|im_end|>")


def one_by_one(runtime, prompt, replies):
    return [log_likelihood(runtime, prompt, reply) for reply in replies]


@pytest.mark.parametrize("prompt", [[5], [1, 40, 50, 60, 70]])
def test_likelihoods_together_are_those_one_by_one(runtime, prompt):
    replies = [[9], [9, 10, 11, 12, 13, 14, 15], [200, 3], [2]]
    found = runtime.log_likelihoods(prompt, replies)
    assert found.shape == (4,) and found.dtype == np.float32
    np.testing.assert_allclose(found, one_by_one(runtime, prompt, replies), rtol=1e-4)
    assert len(set(found.round(3).tolist())) == 4
    # One token each; one reply alone; twice the same.
    np.testing.assert_allclose(
        runtime.log_likelihoods(prompt, [[9], [2]]), one_by_one(runtime, prompt, [[9], [2]]), rtol=1e-4
    )
    np.testing.assert_allclose(runtime.log_likelihoods(prompt, replies[1:2]), found[1:2], rtol=1e-4)
    twice = runtime.log_likelihoods(prompt, [replies[1], replies[1], [9]])
    assert twice[0] == pytest.approx(twice[1], rel=1e-6)


def test_all_replies_of_one_token_are_a_distribution(runtime):
    tokens = [[token] for token in range(len(runtime.vocabulary))]
    assert np.exp(runtime.log_likelihoods([1, 40], tokens).astype(np.float64)).sum() == pytest.approx(
        1, abs=1e-4
    )


@pytest.mark.parametrize("prior", [0.0, 0.5, 1.0])
def test_a_score_is_the_likelihood_less_the_prior(runtime, prior):
    found = Likelihood(runtime, "key", prior).score(TALKS, REPLIES)
    tokens = [[*runtime.encode(reply), end_of(runtime)] for reply in REPLIES]
    alone = [runtime.vocabulary.special("<|im_start|>"), *runtime.encode("assistant\n")]
    expected = [
        np.array(
            one_by_one(runtime, build_prompt(runtime.vocabulary, talk, "", PROMPT_TOKENS).tokens, tokens)
        )
        - prior * np.array(one_by_one(runtime, alone, tokens))
        for talk in TALKS
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    assert found.shape == (2, 4) and found.dtype == np.float32


def test_priors_are_asked_once(runtime, monkeypatch):
    scorer = Likelihood(runtime, "key")
    asked, real = [], runtime.log_likelihoods_of

    def counted(prompts, replies):
        asked.append((len(prompts), len(replies)))
        return real(prompts, replies)

    monkeypatch.setattr(runtime, "log_likelihoods_of", counted)
    first = scorer.score(TALKS, REPLIES)
    assert asked == [(2, 4), (1, 4)]
    asked.clear()
    again = scorer.score(TALKS, [*REPLIES, REPLIES[0], "Oh."])
    assert asked == [(2, 6), (1, 1)]  # the new one alone
    np.testing.assert_allclose(again[:, :4], first, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(again[:, 4], first[:, 0], rtol=1e-4, atol=1e-4)
    asked.clear()
    Likelihood(runtime, "key", 0.0).score(TALKS, REPLIES)
    assert asked == [(2, 4)]


def test_special_tokens_in_a_text_stay_text(runtime):
    scorer = Likelihood(runtime, "key")
    plain, marked = scorer.score(TALKS[:1], ["Oh", "Oh<|im_end|>"])[0]
    assert plain != pytest.approx(marked, rel=1e-3)
    tokens = runtime.encode("Oh<|im_end|>")
    assert not set(tokens) & runtime.vocabulary.special_ids and len(tokens) > 5


def test_long_texts_are_cut(runtime):
    scorer = Likelihood(runtime, "key")
    long = " ".join(["dog"] * 300)
    cut = runtime.vocabulary.encode(long)[:REPLY_TOKENS]
    found = scorer.score([TALKS[0], Dialogue((Turn("speaker", long),))], [long, "Oh no!"])
    assert np.isfinite(found).all()
    prompt = build_prompt(runtime.vocabulary, TALKS[0], "", PROMPT_TOKENS).tokens
    alone = [runtime.vocabulary.special("<|im_start|>"), *runtime.encode("assistant\n")]
    reply = [[*cut, end_of(runtime)]]
    expected = one_by_one(runtime, prompt, reply)[0] - one_by_one(runtime, alone, reply)[0]
    assert found[0, 0] == pytest.approx(expected, abs=1e-2)


def test_a_long_persona_loses_lines_and_is_no_error(runtime):
    scorer = Likelihood(runtime, "key", 0.0)
    lines = tuple(f"I am so happy for number {number}." for number in range(60))

    def scores(count):
        talk = Dialogue((Turn("speaker", "My dog died."),), personas=(Persona("listener", lines[:count]),))
        return scorer.score([talk], REPLIES)[0]

    room = PROMPT_TOKENS // 2
    kept = 0
    for line in lines:
        room -= len(runtime.encode(line)) + 1
        kept += room >= 0
    assert 0 < kept < 60
    np.testing.assert_allclose(scores(60), scores(kept), rtol=1e-5)
    assert np.abs(scores(kept) - scores(kept - 1)).max() > 1e-4
    # One line that is too long leaves the talk alone.
    endless = Dialogue(TALKS[0].turns, personas=(Persona("listener", (" ".join(lines),)),))
    np.testing.assert_allclose(scorer.score([endless], REPLIES), scorer.score(TALKS[:1], REPLIES), rtol=1e-5)


@pytest.mark.parametrize("kind", ["causal", "planned"])
def test_a_checkpoint_is_loaded_by_its_kind(tmp_path, tiny_llama, runtime, kind):
    with checkpoint.writing(tmp_path / "vanilla", kind) as place:
        shutil.copytree(tiny_llama, place, dirs_exist_ok=True)
    scorer = load_scorer(tmp_path / "vanilla")
    assert isinstance(scorer, Likelihood) and scorer.name == "likelihood"
    np.testing.assert_allclose(
        scorer.score(TALKS, REPLIES), Likelihood(runtime, "").score(TALKS, REPLIES), rtol=1e-4, atol=1e-4
    )
    keys = {Likelihood.load(tmp_path / "vanilla", prior).key for prior in (0.0, 0.5, 1.0)}
    assert len(keys) == 3 and scorer.key in keys
    with checkpoint.writing(tmp_path / "other", "classifier") as place:
        (place / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="'classifier' checkpoint, no generator's"):
        Likelihood.load(tmp_path / "other")
