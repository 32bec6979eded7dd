import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from listenwell.checkpoint import open_checkpoint
from listenwell.dialogue import Factors
from listenwell.errors import RecipeError
from listenwell.generators.planned import PlannedGenerator
from listenwell.generators.planned_config import PlannedConfig
from listenwell.runtime.names import ADAPTER, SOFT_PROMPT
from listenwell.training.loop import Trainer
from listenwell.training.preference import PreferenceTask
from listenwell.training.preference_pairs import conversation_hash
from listenwell.training.recipe import OptimizerRecipe
from listenwell.training.run import train
from tests.training.helpers import resumed_at, with_changes
from tests.training.preference_helpers import HELD_OUT, changed, make_home, pairs, preference_recipe
from tests.training.test_planned import annotated

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def home(tmp_path_factory, tiny_llama):
    return make_home(tmp_path_factory.mktemp("soft_prompt"), tiny_llama)


@pytest.fixture
def recipe(tmp_path, home, tiny_llama):
    slow = preference_recipe(tmp_path / "run", home, tiny_llama, model="soft_prompt")
    fast = with_changes(slow, optimizer=OptimizerRecipe(1e-1), epochs=20, validate_every=20)
    return changed(fast, soft_prompt=4, nll=0.1)


def test_a_soft_prompt_stands_before_the_plan_of_both_replies(recipe):
    task = PreferenceTask.prepare(recipe, CPU)
    for pair in task.examples():
        for side in (pair.chosen, pair.rejected):
            first = len(side) - side.weight
            assert side.tokens[first - 8 : first - 4].tolist() == task.generator.soft_prompt.tolist()
            assert not side.targets[:first].any() and side.targets[first:].all()
    trained = [name for name, value in task.model.named_parameters() if value.requires_grad]
    assert [name.rsplit(".", 1)[-1] for name in trained] == ["rows"]
    # Gains are counted from the generator without it, which finds the same replies more likely at first.
    assert task.measure("valid")["preference_margin"] != 0


def test_it_learns_to_prefer_and_the_generator_stays(recipe, home, tiny_llama, monkeypatch):
    monkeypatch.setattr("listenwell.generators.vanilla.find_source", lambda base: tiny_llama)
    trainer = Trainer(recipe)
    before = trainer.task.measure("valid")
    after = trainer.run()
    assert after["preference_accuracy"] > max(80, before["preference_accuracy"])
    assert after["preference_loss"] < 0.9 * before["preference_loss"]
    for name in ("perplexity_by_token", "perplexity_by_token_unplanned", "plan_nll"):
        assert after[name] == pytest.approx(before[name], rel=1e-5)
    saved, start = open_checkpoint(recipe.output / "best"), open_checkpoint(home / "start" / "best")
    assert saved.sums[ADAPTER] == start.sums[ADAPTER]
    assert load_file(saved.path(SOFT_PROMPT))["rows"].dtype == np.float16
    # What was learned is what speaks: of the pairs held out, the better reply gained more.
    config = PlannedConfig(plans=1, candidates=1)
    prompted, plain = (
        PlannedGenerator.load(config, recipe.output),
        PlannedGenerator.load(config, home / "start"),
    )
    gained = []
    for pair in pairs():
        if conversation_hash(pair) < HELD_OUT:
            likely = []
            for generator in (prompted, plain):
                at = generator._prefix_cache.before(
                    generator._prompts([pair.context])[0].tokens, generator.runtime.soft_prompt, pair.plan
                )
                words = [generator._template.words(text) for text in (pair.chosen, pair.rejected)]
                likely.append(generator.runtime.log_likelihoods(at, words))
            gained.append(likely[0][0] - likely[1][0] > likely[0][1] - likely[1][1])
    assert 100 * np.mean(gained) == pytest.approx(after["preference_accuracy"], abs=100 / len(gained))
    context = next(iter(annotated(1))).examples()
    talk = next(iter(context)).context
    assert prompted.plan(talk, None, Factors(), 1) == plain.plan(talk, None, Factors(), 1)


def test_another_round_starts_from_the_soft_prompt_that_is_there(recipe, tmp_path):
    Trainer(recipe).run()
    best = recipe.output / "best"
    again = with_changes(recipe, output=tmp_path / "again", pairs=replace(recipe.task.pairs, start=best))
    task = PreferenceTask.prepare(again, CPU)
    rows = task.generator.base.get_input_embeddings().rows.detach().half().numpy()
    np.testing.assert_array_equal(rows, load_file(best / SOFT_PROMPT)["rows"])
    with pytest.raises(RecipeError, match=r"soft prompt of 4 tokens.*preference\.soft_prompt 4"):
        PreferenceTask.prepare(changed(again, soft_prompt=6), CPU)


def test_a_run_broken_off_goes_on(recipe, tmp_path, monkeypatch):
    short = with_changes(recipe, epochs=4, validate_every=1)
    assert resumed_at(short, tmp_path / "broken", PreferenceTask, monkeypatch, measuring=3) > 0


def test_it_needs_an_adapter(recipe):
    with pytest.raises(RecipeError, match="generator with an adapter"):
        PreferenceTask.prepare(with_changes(recipe, lora=None), CPU)


def test_a_whole_run_says_what_was_learned(recipe):
    train(with_changes(recipe, epochs=1, validate_every=1))
    result = json.loads((recipe.output / "result.json").read_text())
    conditions = dict(result["conditions"])
    assert conditions["tuning"] == "a soft prompt of 4 tokens; the generator's weights are frozen"
    assert "without the soft prompt" in conditions["measured"]
    shutil.rmtree(recipe.output)


def test_a_train_split_that_is_not_read_may_be_missing(recipe, home, tmp_path):
    for split in ("valid", "test"):
        (tmp_path / "data").mkdir(exist_ok=True)
        shutil.copy(home / "data" / f"{split}.jsonl", tmp_path / "data")
    task = PreferenceTask.prepare(
        with_changes(recipe, data=replace(recipe.data, path=tmp_path / "data")), CPU
    )
    assert task.examples() and {file.stem for file in task.data_files()} == {"pairs", "valid", "test"}
