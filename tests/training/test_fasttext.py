from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from listenwell.annotators.fasttext import FastTextClassifier
from listenwell.checkpoint import open_checkpoint
from listenwell.corpora import CORPORA
from listenwell.errors import RecipeError
from listenwell.labels import EMOTIONS, NEWSGROUPS
from listenwell.recipe import read_recipe
from listenwell.results.store import read_result
from listenwell.training.batching import Epoch
from listenwell.training.fasttext import FastTextTask
from listenwell.training.recipe import BatchRecipe, DataRecipe, LoraRecipe, TrainRecipe
from listenwell.training.run import train
from listenwell.training.task_configs import FastTextRecipe
from tests.training.helpers import resumed_at, with_changes

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "tests" / "data"
CPU = torch.device("cpu")
TRAIN_POSTS = 11


def topic_recipe(output, **changes):
    recipe = read_recipe(TrainRecipe, ROOT / "recipes" / "fasttext_topic.yaml")
    data = replace(recipe.data, path=SAMPLES / "newsgroups")
    return with_changes(recipe, output=output, **({"data": data} | changes))


@pytest.fixture
def task(tmp_path):
    recipe = topic_recipe(
        tmp_path / "run",
        dropout=0.0,
        fasttext=FastTextRecipe(4, 16, 1),
        batches=BatchRecipe("packed", 256, 64),
    )
    return FastTextTask.prepare(recipe, CPU)


def scattered(task):
    """Give the head numbers: it begins with zeros."""
    torch.manual_seed(3)
    for parameter in task.model.parameters():
        torch.nn.init.normal_(parameter)


def loss_of(task, recipe, part_tokens=None):
    steps = list(Epoch(task.examples(), task.collate, recipe, 3, 0).steps(part_tokens=part_tokens))
    assert sum(step.targets for step in steps) == TRAIN_POSTS
    assert sum(batch.weight for step in steps for batch in step.batches) == TRAIN_POSTS
    with torch.no_grad():
        return sum(float(task.loss_sum(batch)) for step in steps for batch in step.batches)


def test_a_piece_is_one_text_with_one_target(task):
    pieces = task.examples()
    assert [piece.weight for piece in pieces] == [1] * TRAIN_POSTS
    assert [NEWSGROUPS[piece.label] for piece in pieces[:3]] == [
        "comp.graphics",
        "comp.graphics",
        "rec.autos",
    ]
    # "The engine of the car hums an odd tune." has its end, nine words and a mark, and nine pairs.
    assert len(pieces[2]) == len(pieces[2].tokens) == 1 + 10 + 9
    assert max(len(piece) for piece in pieces) <= 64


def test_the_loss_is_the_same_however_texts_are_batched(task):
    scattered(task)
    alone = loss_of(task, BatchRecipe("bucketed", 64, 64))
    assert loss_of(task, BatchRecipe("packed", 256, 64)) == pytest.approx(alone, rel=1e-5)
    assert loss_of(task, BatchRecipe("packed", 256, 64), part_tokens=64) == pytest.approx(alone, rel=1e-5)
    assert loss_of(task, BatchRecipe("packed", 256, 64, accumulate=2)) == pytest.approx(alone, rel=1e-5)
    assert loss_of(task, BatchRecipe("bucketed", 4096, 64)) == pytest.approx(alone, rel=1e-5)


def test_the_loss_is_that_of_the_classifier_in_numpy(task):
    scattered(task)
    found = task.classifier().probabilities([piece.tokens for piece in task.examples()])
    own = [found[number, piece.label] for number, piece in enumerate(task.examples())]
    # Weights of 16 bits have three digits.
    assert loss_of(task, task.recipe.batches) == pytest.approx(-np.log(own).sum(), rel=1e-2)


def test_an_untrained_model_is_measured_worked_by_hand(task):
    # All labels are equally likely: the first is guessed, and ties count against us.
    assert task.measure("test") == pytest.approx(
        {"accuracy": 0.0, "top_5_accuracy": 0.0, "error": 100.0, "nll": 3 * np.log(20), "texts": 3.0}
    )


def test_a_known_bias_is_measured_worked_by_hand(task):
    # The three test posts are of hockey, space and politics; hockey is likeliest, then space, then the rest.
    with torch.no_grad():
        task.model.head.bias[NEWSGROUPS.index("rec.sport.hockey")] = 2.0
        task.model.head.bias[NEWSGROUPS.index("sci.space")] = 1.0
    total = np.log(np.exp(2) + np.exp(1) + 18)
    assert task.measure("test") == pytest.approx(
        {
            "accuracy": 100 / 3,
            "top_5_accuracy": 200 / 3,
            "error": 200 / 3,
            "nll": 3 * total - 2 - 1,
            "texts": 3.0,
        }
    )


def test_dropout_acts_in_training_and_not_in_measuring(tmp_path):
    task = FastTextTask.prepare(topic_recipe(tmp_path / "run", dropout=0.5), CPU)
    scattered(task)
    (step, *_) = Epoch(task.examples(), task.collate, task.recipe.batches, 1, 0).steps()
    task.model.train()
    first, second = (task.loss_sum(step.batches[0]).item() for _ in range(2))
    assert first != second
    assert task.measure("valid") == task.measure("valid")


def test_saving_and_loading_gives_the_same_figures(task, tmp_path):
    scattered(task)
    before = task.measure("train")
    task.save(tmp_path)
    scores = FastTextClassifier.read(tmp_path).scores(["A rocket in the sky"])
    torch.nn.init.zeros_(task.model.vectors)
    assert task.measure("train") != before
    task.load(tmp_path)
    assert task.measure("train") == before
    assert task.classifier().scores(["A rocket in the sky"]) == scores


def test_the_topic_recipe_overfits_the_sample(tmp_path):
    recipe = topic_recipe(tmp_path / "run", validate_every=20.0, epochs=60.0, patience=99, metric="nll")
    # One step an epoch here, a thousand on the whole corpus.
    recipe = replace(
        recipe,
        data=replace(recipe.data, valid="train", test="test"),
        optimizer=replace(recipe.optimizer, learning_rate=0.1),
    )
    folder = train(recipe)
    result = read_result(folder / "result.json")
    assert (result.task, result.corpus, result.split, result.count) == ("topic", "newsgroups", "test", 3)
    assert result.metric("valid_nll") < 0.1 * TRAIN_POSTS
    best = FastTextClassifier.load(folder / "best")
    posts = list(CORPORA.load("newsgroups")(SAMPLES / "newsgroups").read("train"))
    assert [best.label(post.text) for post in posts] == [post.labels[0] for post in posts]
    assert dict(result.conditions)["base"] == "none"
    assert dict(result.conditions)["count"] == "texts"


def test_the_emotion_recipe_runs_and_its_result_is_that_of_its_checkpoint(tmp_path):
    recipe = read_recipe(TrainRecipe, ROOT / "recipes" / "fasttext_emotion.yaml")
    sample = SAMPLES / "empathetic_dialogues"
    recipe = with_changes(recipe, output=tmp_path / "run", epochs=2.0, data=replace(recipe.data, path=sample))
    folder = train(recipe)
    result = read_result(folder / "result.json")
    assert result.task == "situation emotion"
    best = open_checkpoint(folder / "best", "fasttext")
    assert {"config.json", "model.safetensors", "recipe.yaml"} <= set(best.sums)
    classifier = FastTextClassifier.load(folder / "best")
    assert classifier.config.labels == EMOTIONS.labels
    dialogues = list(CORPORA.load("empathetic_dialogues")(sample).read("test"))
    right = sum(classifier.label(one.situation) == one.emotion for one in dialogues if one.situation)
    count = sum(one.situation is not None for one in dialogues)
    assert result.count == count
    assert result.metric("accuracy") == pytest.approx(100 * right / count)
    assert result.metric("error") == pytest.approx(100 - 100 * right / count)


def test_broken_off_in_the_middle_it_ends_with_the_same_bits(tmp_path, monkeypatch):
    recipe = topic_recipe(tmp_path / "whole", dropout=0.3, epochs=6.0, validate_every=1.0, patience=99)
    assert resumed_at(recipe, tmp_path / "broken", FastTextTask, monkeypatch, measuring=4) == 3


def test_the_data_files_are_those_of_the_splits(task):
    shaping, every = set(task.data_files(shaping=True)), set(task.data_files())
    assert {file.parts[-3] for file in shaping} == {"20news-bydate-train"}
    assert {file.parts[-3] for file in every - shaping} == {"20news-bydate-test"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": DataRecipe(corpus="goemotions")}, "cannot learn from goemotions.*newsgroups"),
        ({"lora": LoraRecipe()}, "no adapters.*Leave lora out"),
        ({"data": DataRecipe("newsgroups", SAMPLES / "newsgroups", limit=0)}, "no text with a label"),
    ],
)
def test_what_cannot_be_learned_is_a_clear_error(tmp_path, changes, message):
    with pytest.raises(RecipeError, match=message):
        FastTextTask.prepare(topic_recipe(tmp_path / "run", **changes), CPU)


@pytest.mark.parametrize("wrong", [{"dimensions": 0}, {"buckets": -1}, {"least": 0}])
def test_a_wrong_number_in_the_recipe_is_named(wrong):
    (name,) = wrong
    with pytest.raises(RecipeError, match=rf"fasttext\.{name}"):
        FastTextRecipe(**wrong)
