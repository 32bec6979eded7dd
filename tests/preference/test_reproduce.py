"""A reward model and a soft prompt made from ratings, as data/ratings/README.md describes."""

import json
from dataclasses import replace

import pytest

from listenwell.checkpoint import open_checkpoint
from listenwell.dialogue import Candidate
from listenwell.generators.planned import PlannedGenerator
from listenwell.generators.planned_config import PlannedConfig
from listenwell.generators.reward_model import RewardModel
from listenwell.generators.vanilla import runtime_of
from listenwell.preference.pairs import OwnReplies, Settings, read_planned
from listenwell.preference.ratings import Rating
from listenwell.runtime.engines import Engine
from listenwell.runtime.names import SOFT_PROMPT
from listenwell.training.loop import Trainer
from listenwell.training.preference_pairs import read_pairs
from listenwell.training.recipe import OptimizerRecipe
from tests.preference.helpers import call
from tests.training.preference_helpers import changed, make_home, preference_recipe


@pytest.fixture(scope="module")
def home(tmp_path_factory, tiny_llama):
    return make_home(tmp_path_factory.mktemp("reproduce"), tiny_llama)


@pytest.fixture(autouse=True)
def installed(monkeypatch, tiny_llama):
    monkeypatch.setattr("listenwell.generators.vanilla.find_source", lambda base: tiny_llama)


def rated_lines(home):
    """Two replies of the generator to each context, rated by two raters: the shorter one is better."""
    runtime = runtime_of(open_checkpoint(home / "start" / "best"), Engine("torch"))
    own = OwnReplies(runtime, Settings(temperature=1.5))
    planned = read_planned(home / "data" / "train.jsonl")[:10]
    first, second = (own.replies(planned, range(start, start + len(planned))) for start in (0, 100))
    for (example, plan), *replies in zip(planned, first, second, strict=True):
        texts = sorted({reply or "Oh." for reply in replies}, key=len)
        for text, score in zip(texts, (5.0, 1.0), strict=False):
            for rater in ("first", "second"):
                context = example.context
                name = f"{context.id}#{len(context.turns)}"
                scores = (score, score, 3.0, score)
                yield Rating("", "train", name, rater, *scores, ("ours",), text, plan, context)


def test_a_reward_model_and_a_soft_prompt_are_made_from_ratings(home, tiny_llama, tmp_path):
    ratings, pairs = tmp_path / "ratings.jsonl", tmp_path / "rated.jsonl"
    ratings.write_text("".join(f"{rating.to_json()}\n" for rating in rated_lines(home)))
    # The reward model of the generator that made the replies.
    base = tmp_path / "reward_model"
    about = json.loads(
        call("fit-reward", ratings, "--generator", home / "start", "--ridge", 1, "--out", base)
    )
    assert about["replies"] == len(ratings.read_text().splitlines()) / 2
    assert RewardModel.load(base).weights.any()
    # The soft prompt, by the keys of recipes/generator/soft_prompt.yaml.
    call("rated-pairs", ratings, "--gap", 1.5, "--each", 3, "--out", pairs)
    assert {pair.source for pair in read_pairs(pairs)} == {"rated"}
    recipe = preference_recipe(tmp_path / "run", home, tiny_llama, model="soft_prompt")
    fast = replace(recipe, optimizer=OptimizerRecipe(1e-1), epochs=2, validate_every=2)
    Trainer(changed(fast, file=pairs, soft_prompt=4, nll=0.1)).run()
    assert SOFT_PROMPT in open_checkpoint(tmp_path / "run" / "best").sums
    # Its reward model, which the generator finds beside its run.
    out = tmp_path / "run" / "reward_model"
    call("fit-reward", ratings, "--generator", tmp_path / "run", "--ridge", 1, "--out", out)
    generator = PlannedGenerator.load(PlannedConfig(plans=1, candidates=2), tmp_path / "run")
    pair = read_pairs(pairs)[0]
    candidates = [Candidate(text, pair.plan) for text in (pair.chosen, pair.rejected)]
    better, worse = (
        dict(candidate.scores)["reward"] for candidate in generator.with_rewards(pair.context, candidates)
    )
    assert better > worse
