"""Learning from what raters said of candidates."""

import json

import numpy as np
import pytest

from listenwell.errors import InputError
from listenwell.generators.planned import PlannedGenerator
from listenwell.generators.planned_config import PlannedConfig
from listenwell.generators.reward_model import RewardModel
from listenwell.preference import ratings
from listenwell.preference.fit_reward import rated_states
from tests.preference.helpers import PLAN, TALK, Corpus, call, rated_folder


@pytest.fixture(autouse=True)
def corpus(monkeypatch):
    monkeypatch.setattr(ratings, "Source", lambda name: Corpus())


def test_it_learns_from_what_raters_said_of_candidates(tiny_generator, tmp_path):
    folder = rated_folder(tmp_path / "rated")
    found = rated_states(tiny_generator, [folder], "train")
    assert found.ratings.tolist() == [1.0, 4.5] and found.contexts.tolist() == [0, 0]
    np.testing.assert_array_equal(
        found.states,
        PlannedGenerator.load(PlannedConfig(), tiny_generator).hidden_states_of(
            TALK, PLAN, ["I love dogs.", "Oh no!"]
        ),
    )
    out = tmp_path / "made"
    printed = call("fit-reward", folder, "--generator", tiny_generator, "--ridge", 1, "--out", out)
    made = RewardModel.load(out)
    assert made.score(found.states[1]) > made.score(found.states[0])
    assert json.loads(printed)["replies"] == 2


def test_ratings_of_another_split_are_refused(tiny_generator, tmp_path):
    with pytest.raises(InputError, match="of the split test"):
        rated_states(tiny_generator, [rated_folder(tmp_path / "rated", "test")], "train")


def test_ratings_of_a_context_that_the_corpus_lacks_are_an_error(tiny_generator, tmp_path):
    with pytest.raises(InputError, match="has no context hit:7_conv:1#1"):
        rated_states(tiny_generator, [rated_folder(tmp_path / "rated", name="hit:7_conv:1#1")], "train")
