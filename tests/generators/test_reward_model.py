"""What the speaker's own states tell of how well its replies would be liked."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from listenwell.checkpoint import open_checkpoint
from listenwell.dialogue import Candidate, Dialogue, Factors, Turn
from listenwell.errors import CheckpointError
from listenwell.generators import reward_model
from listenwell.generators.decoding import Decoding
from listenwell.generators.planned import PlannedGenerator
from listenwell.generators.planned_config import PlannedConfig
from listenwell.generators.reward_model import RewardModel, agreement, centred, fit, weights_of

PLAN = Factors("sad", ("exploration",), "questioning", "caring")
TALK = Dialogue((Turn("speaker", "My dog died. I am so sad."),))


def test_what_is_common_to_a_context_is_taken_off():
    values, contexts = np.array([1.0, 3.0, 10.0, 10.0, 40.0]), np.array([7, 7, 2, 2, 2])
    assert centred(values, contexts).tolist() == [-1, 1, -10, -10, 20]
    assert centred(np.stack([values, -values], 1), contexts)[:, 1].tolist() == [1, -1, 10, 10, -20]


def test_the_line_finds_what_ratings_follow_within_contexts():
    random = np.random.default_rng(0)
    contexts = np.repeat(np.arange(60), 5)
    states = random.normal(size=(300, 8)) + 5 * contexts[:, None]
    taste = np.array([1.0, -2, 0, 0, 0.5, 0, 0, 0])
    # What tells one context from another is as strong as can be, and must not count.
    ratings = centred(states, contexts) @ taste + 100 * contexts + 0.1 * random.normal(size=300)
    found = fit(states, ratings, contexts, ridge=1.0)
    np.testing.assert_allclose(found, taste, atol=0.05)
    assert agreement(states @ found, ratings, contexts) > 0.99
    assert agreement(-(states @ found), ratings, contexts) < -0.99
    assert agreement(np.zeros(300), ratings, contexts) == 0
    assert np.abs(fit(states, ratings, contexts, ridge=1e9)).max() < 1e-3


@pytest.fixture
def judged(tiny_generator, tmp_path, monkeypatch):
    """A generator, and a line that is about its states."""
    decoding = Decoding(temperature=1.2, max_tokens=8, no_repeat=3)
    config = PlannedConfig(plans=1, candidates=4, decoding=decoding)
    plain = PlannedGenerator.load(config, tiny_generator)
    width = plain.hidden_states_of(TALK, PLAN, ["Oh."]).shape[1]
    weights = np.random.default_rng(1).normal(size=width).astype(np.float32)
    generator = open_checkpoint(plain._folder)
    RewardModel(weights, weights_of(generator)).save(tmp_path / "reward_model", {"replies": 3})
    monkeypatch.setattr(reward_model, "SHIPPED", tmp_path / "reward_model")
    return config, plain, weights


def test_candidates_carry_how_well_they_would_be_liked(judged, tiny_generator):
    config, plain, weights = judged
    assert "reward" not in dict(plain.generate(TALK, (PLAN,), seed=1).candidates[0].scores)
    speech = PlannedGenerator.load(config, tiny_generator).generate(TALK, (PLAN,), seed=1)
    assert len(speech.candidates) > 1
    scores = [dict(one.scores)["reward"] for one in speech.candidates]
    assert len(set(scores)) > 1
    same = replace(config, decoding=replace(config.decoding, beams=4, temperature=0.5))
    for one in PlannedGenerator.load(same, tiny_generator).generate(TALK, (PLAN,), seed=1).candidates:
        # Searched for word by word: read once more, as they stand.
        alone = float(plain.hidden_states_of(TALK, PLAN, [one.text])[0] @ weights)
        assert dict(one.scores)["reward"] == pytest.approx(alone, rel=0.2, abs=0.5)


def test_states_kept_on_the_way_are_those_of_the_words(judged, tiny_generator):
    config, plain, weights = judged
    config = replace(config, tidy=False, decoding=replace(config.decoding, max_tokens=30))
    for one in PlannedGenerator.load(config, tiny_generator).generate(TALK, (PLAN,), seed=3).candidates:
        if one.text.endswith("…"):
            continue  # its last words were never read
        alone = float(plain.hidden_states_of(TALK, PLAN, [one.text])[0] @ weights)
        assert dict(one.scores)["reward"] == pytest.approx(alone, abs=0.1 * float(np.abs(weights).sum()))


def test_replies_that_were_made_before_are_read_once_more(judged, tiny_generator):
    config, plain, weights = judged
    old = [
        Candidate("Oh no!", PLAN, (("likelihood", -1.0),)),
        Candidate("Oh."),
        Candidate("A", PLAN, (("reward", 7.0),)),
    ]
    read = PlannedGenerator.load(config, tiny_generator).with_rewards(TALK, old)
    wanted = float(plain.hidden_states_of(TALK, PLAN, ["Oh no!"])[0] @ weights)
    assert dict(read[0].scores) == {"likelihood": -1.0, "reward": pytest.approx(wanted, abs=1e-3)}
    assert read[1:] == old[1:]
    assert plain.with_rewards(TALK, old) == old  # nobody knows its states


def test_a_line_about_another_speaker_says_nothing(judged, tiny_generator, tmp_path):
    config, _, weights = judged
    RewardModel(weights, "0" * 64).save(tmp_path / "reward_model", {})
    scores = dict(
        PlannedGenerator.load(config, tiny_generator).generate(TALK, (PLAN,), seed=1).candidates[0].scores
    )
    assert set(scores) == {"likelihood"}


def test_a_damaged_one_is_an_error_that_names_it(judged, tmp_path):
    (tmp_path / "reward_model" / "model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(CheckpointError, match="reward_model"):
        RewardModel.load(tmp_path / "reward_model")


def test_a_run_of_ones_own_can_have_its_own(judged, tmp_path, monkeypatch):
    config, plain, _ = judged
    shutil.copytree(plain._folder, tmp_path / "run" / "best")
    monkeypatch.setattr(reward_model, "SHIPPED", tmp_path / "none")
    assert RewardModel.of(open_checkpoint(tmp_path / "run" / "best")) is None
    shutil.copytree(tmp_path / "reward_model", tmp_path / "run" / "reward_model")
    speech = PlannedGenerator.load(config, tmp_path / "run").generate(TALK, (PLAN,), seed=1)
    assert "reward" in dict(speech.candidates[0].scores)
