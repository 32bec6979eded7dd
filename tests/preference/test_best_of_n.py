"""Samples of a generator, a reward model trained on ratings, and what is made of both."""

import json
from dataclasses import replace

import pytest
import torch

from listenwell.dialogue import MANNER, STATE, Dialogue, Example, Turn
from listenwell.errors import InputError, RecipeError
from listenwell.preference.best_of_n import (
    RewardModel,
    best_and_worst,
    best_replies,
    gains,
    read_scored,
    score_samples,
)
from listenwell.preference.ratings import Rating
from listenwell.preference.reward_training import KIND
from listenwell.preference.sampling import SampleSettings, read_samples, sample
from listenwell.recipe import read_recipe
from listenwell.training.loop import Trainer
from listenwell.training.recipe import TrainRecipe

RECIPE = """
output: {out}
model: reward
base: smollm2-135m-instruct
epochs: 2
metric: disagreement
compile: false
reward: {{ratings: [{ratings}], held_out: 0.4, limit: 192}}
batches: {{batching: examples, examples: 2}}
optimizer: {{learning_rate: 1.0e-3}}
"""


@pytest.fixture(autouse=True)
def installed(monkeypatch, tiny_llama):
    monkeypatch.setattr("listenwell.generators.vanilla.find_source", lambda base: tiny_llama)
    monkeypatch.setattr("listenwell.training.causal_model.find_weights", lambda base, folder: tiny_llama)


def examples():
    for number in range(4):
        dialogue = Dialogue((Turn("speaker", f"My dog died {number}."),), id=f"talk {number}")
        yield Example(replace(dialogue, notes=((STATE, "Earlier: a walk."),)), Turn("listener", "Oh no."))


@pytest.fixture
def samples(tiny_generator, tmp_path):
    data = tmp_path / "data.jsonl"
    data.write_text("x")
    out = tmp_path / "samples.jsonl"
    settings = SampleSettings(each=4, rows=8, max_tokens=6, top_p=1.0)
    assert sample(tiny_generator, list(examples()), out, settings, data) == sum(
        len(replies) for _, replies in read_samples(out)
    )
    return out


def test_samples_keep_context_state_and_manner(samples):
    records = [record for record, _ in read_samples(samples)]
    assert len(records) == 4 and all(record["human"] == "Oh no." for record in records)
    notes = Dialogue.from_dict(records[0]["context"]).notes
    assert dict(notes) == {MANNER: "plain", STATE: "Earlier: a walk."}


def test_finished_samples_are_not_made_again(samples, tiny_generator):
    with pytest.raises(InputError, match="is there already"):
        sample(tiny_generator, list(examples()), samples, SampleSettings(), samples)


@pytest.mark.parametrize("settings", [{"each": 0}, {"temperature": 0.0}, {"top_p": -1.0}])
def test_odd_settings_are_refused(settings):
    with pytest.raises(InputError):
        SampleSettings(**settings)


def ratings(path):
    lines = []
    for number in range(12):
        context = Dialogue((Turn("speaker", f"My dog died {number}."),), id=f"talk {number}")
        for text, score in (("How sad!", 5.0), ("Great!", 1.0), ("Oh.", 3.0)):
            given = context if text == "How sad!" else None
            rating = Rating("", "train", f"talk {number}#1", "one", score, score, None, None, ("x",), text)
            lines.append(replace(rating, context=given).to_json() + "\n")
    path.write_text("".join(lines))
    return path


def recipe(tmp_path):
    file = tmp_path / "recipe.yaml"
    file.write_text(RECIPE.format(out=tmp_path / "reward", ratings=ratings(tmp_path / "ratings.jsonl")))
    return read_recipe(TrainRecipe, file)


def test_a_reward_model_learns_and_scores_samples(samples, tmp_path):
    trainer = Trainer(recipe(tmp_path))
    metrics = trainer.run()
    assert metrics["rating_of_the_best"] == 5 and metrics["rating_of_any"] == 3
    assert trainer.best().kind == KIND
    model = RewardModel.load(tmp_path / "reward")
    scored = tmp_path / "scored.jsonl"
    assert score_samples(model, samples, scored) == sum(len(own) for _, own in read_samples(samples))
    items = [item for item in read_scored(scored) if item.replies]
    rewards = [reply.reward for reply in items[0].replies]
    assert rewards == sorted(rewards, reverse=True)
    best = next(best_replies(items))
    assert best.turns[-1].text == items[0].replies[0].text and best.turns[-1].factors.act
    pair = next(best_and_worst(items, gap=0.0))
    assert (pair.chosen, pair.rejected) == (items[0].replies[0].text, items[0].replies[-1].text)
    assert min(rewards) <= gains(items[:1])["best of 1"] <= max(rewards)


def test_a_saved_reward_model_scores_as_before(tmp_path):
    trainer = Trainer(recipe(tmp_path))
    trainer.run()
    trainer.task.load(trainer.best().folder)
    items = [(Dialogue((Turn("speaker", "My dog died."),)), ["How sad!", "Great!"])]
    encoded = trainer.task.inputs.encode(*items[0])
    # Saved in half precision, scored alone and in a batch: sums differ in the last digits.
    expected = trainer.task.predict(encoded)
    (scores,) = RewardModel.load(tmp_path / "reward").scores(items)
    assert scores.shape == (2, 2)
    assert torch.allclose(torch.tensor(scores), torch.tensor(expected), atol=5e-2)


def test_a_reward_model_needs_batches_of_contexts(tmp_path):
    file = tmp_path / "recipe.yaml"
    text = RECIPE.format(out=tmp_path / "reward", ratings=ratings(tmp_path / "ratings.jsonl"))
    file.write_text(text.replace("batching: examples, ", ""))
    with pytest.raises(RecipeError, match="batches of contexts"):
        read_recipe(TrainRecipe, file)


def test_ratings_may_be_compressed(tmp_path):
    import gzip

    from listenwell.preference.ratings import read_ratings

    plain = ratings(tmp_path / "ratings.jsonl")
    packed = tmp_path / "ratings.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_ratings(packed) == read_ratings(plain)
    assert len(json.loads(plain.read_text().splitlines()[0])) > 3
