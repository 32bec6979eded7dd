import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from listenwell.dialogue import Factors
from listenwell.errors import CorpusError, RecipeError
from listenwell.papers.comae.config import ComaeConfig
from listenwell.papers.comae.generator import Comae, ComaeSettings
from listenwell.papers.comae.inputs import collate
from listenwell.papers.comae.model import Words, token_losses
from listenwell.papers.comae.training import ComaeTask, factor_metrics
from listenwell.recipe import read_recipe
from listenwell.sweeps.grid import read_sweeps
from listenwell.training.batching import Epoch
from listenwell.training.loop import Trainer
from listenwell.training.recipe import BatchRecipe, DataRecipe, LoraRecipe, OptimizerRecipe, TrainRecipe
from listenwell.training.run import train
from tests.papers.comae.talks import CPU, FAMILY, told_examples, told_recipe, told_talks, write_told
from tests.training.helpers import resumed_at, with_changes
from tests.training.test_causal import loss_of

RECIPES = Path(__file__).parents[3] / "recipes"


@pytest.fixture
def told(tmp_path):
    return write_told(tmp_path / "annotated")


@pytest.fixture
def task(tiny_llama, tmp_path, told):
    return loud(ComaeTask.prepare(told_recipe(tmp_path / "run", told, tiny_llama), CPU))


def loud(task):
    """The task with new parts that are large: each of them moves the loss."""
    torch.manual_seed(5)
    for name, parameter in task.model.named_parameters():
        if not name.startswith("decoder."):
            torch.nn.init.normal_(parameter, std=0.2)
    return task


def test_the_loss_is_the_same_however_replies_are_batched(task):
    found = [
        loss_of(task, *batches)
        for batches in (("bucketed", 256), ("packed", 1024), ("packed", 512, 2), ("bucketed", 2048))
    ]
    assert found == pytest.approx([found[0]] * 4, rel=1e-5)


def test_the_loss_is_words_and_factors_together(task, tiny_llama):
    pieces = task.examples()
    batch = collate(pieces, [[number] for number in range(len(pieces))], max(map(len, pieces)))
    words = Words.of(batch, CPU)
    with torch.no_grad():
        task.model.eval()
        context, states = task.model.states(words, words.factors)
        nll = float(token_losses(states, task.model.output_weights(), words.labels).sum())
        predicted = float(task.model.factor_losses(context, words.factors).mean())
        found = float(task.loss_sum(batch))
    assert found / batch.weight == pytest.approx(nll / batch.weight + predicted, rel=1e-5)  # λ = 1
    other = told_recipe(
        task.recipe.output, task.recipe.data.annotated, tiny_llama, comae=ComaeConfig(weight=0.25)
    )
    light = loud(ComaeTask.prepare(other, CPU))
    light.model.eval()
    with torch.no_grad():
        assert float(light.loss_sum(batch)) == pytest.approx(nll + 0.25 * predicted * batch.weight, rel=1e-5)


def test_gradients_reach_every_part(task):
    (step, *_) = Epoch(task.examples(), task.collate, task.recipe.batches, 1, 0).steps()
    task.model.train()
    task.loss_sum(step.batches[0]).backward()
    for name, parameter in task.model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("config", FAMILY, ids=lambda config: config.title)
def test_every_model_of_the_family_learns(tiny_llama, tmp_path, told, config):
    recipe = told_recipe(tmp_path / "run", told, tiny_llama, comae=config, epochs=6)
    trainer = Trainer(recipe)
    before = trainer.task.measure("valid")
    after = trainer.run()
    assert after["perplexity_by_token"] < 0.6 * before["perplexity_by_token"]
    names = {"mechanisms": "cm_exact", "act": "da_hits_1", "expressed_emotion": "em_hits_1"}
    assert {name for name in names.values() if name in after} == {names[name] for name in config.factors}
    assert ("perplexity_by_token_predicted" in after) == bool(config.factors)
    assert trainer.task.conditions()["model of the family"] == config.title


def test_it_can_overfit_ten_dialogues(tiny_llama, tmp_path):
    folder = write_told(tmp_path / "annotated", 10, 10, 10)
    recipe = told_recipe(
        tmp_path / "run",
        folder,
        tiny_llama,
        epochs=150,
        validate_every=150,
        optimizer=OptimizerRecipe(learning_rate=5e-3),
    )
    found = Trainer(recipe).run()
    assert found["perplexity_by_token"] < 1.3
    assert found["perplexity_by_token_predicted"] < 1.3
    assert found["cm_exact"] == found["da_hits_1"] == found["em_hits_1"] == 100
    comae = Comae.load(ComaeSettings(sampled=False), recipe.output)
    example = told_examples(10)[0]
    (candidate,) = comae.generate(example.context, (), 1).candidates
    assert candidate.text == example.reply.text
    assert candidate.plan == Factors(
        mechanisms=example.reply.factors.mechanisms,
        act=example.reply.factors.act,
        expressed_emotion=example.reply.factors.expressed_emotion,
    )


def test_the_result_names_gold_and_predicted(tiny_llama, tmp_path, told):
    recipe = told_recipe(tmp_path / "run", told, tiny_llama, epochs=1)
    result = json.loads((train(recipe) / "result.json").read_text())
    figures, conditions = result["metrics"], result["conditions"]
    assert figures["perplexity_by_token"] != figures["perplexity_by_token_predicted"]
    assert {"perplexity_by_word_predicted", "bits_per_byte_predicted", "er_accuracy", "em_hits_3"} <= set(
        figures
    )
    assert conditions["factors"].startswith("gold: the human reply's own")
    assert "predicted: the likeliest" in conditions["factors"]
    assert result["count"] == len(told_examples(6))
    # The checkpoint itself gives the figures of the result.
    comae = Comae.load(ComaeSettings(), recipe.output)
    for given, ending in (("gold", ""), ("predicted", "_predicted")):
        found = comae.perplexity(told_examples(6), given)
        assert found.by_token == pytest.approx(figures[f"perplexity_by_token{ending}"], rel=1e-5)
        assert found.bits_per_byte == pytest.approx(figures[f"bits_per_byte{ending}"], rel=1e-5)


def test_the_ranks_of_the_true_factors_lie_beside_the_result(tiny_llama, tmp_path, told):
    recipe = told_recipe(
        tmp_path / "run", told, tiny_llama, epochs=1, comae=ComaeConfig(factors=("mechanisms", "act"))
    )
    train(recipe)
    ranks = np.load(recipe.output / "factors.npy", allow_pickle=False)
    comae = Comae.load(ComaeSettings(), recipe.output)
    for row, example in zip(ranks, told_examples(6), strict=True):
        truth = comae.runtime.inputs.numbers(example.reply.factors)
        probabilities = comae.factor_probabilities(example.context, Factors())
        assert row[:3].tolist() == [
            1 + ((probability > 0.5) != yes)
            for probability, yes in zip(probabilities["mechanisms"], truth[:3], strict=True)
        ]
        assert row[3] == 1 + (probabilities["act"] > probabilities["act"][truth[3]]).sum()
        assert row[4] == 0


def test_hits_and_accuracies_by_hand():
    ranks = np.array([[1, 1, 1, 1, 4], [1, 2, 1, 3, 1], [2, 1, 1, 9, 2], [1, 1, 1, 2, 3]])
    assert factor_metrics(ComaeConfig(), ranks) == {
        "er_accuracy": 75, "ip_accuracy": 75, "ex_accuracy": 100, "cm_exact": 50,
        "da_hits_1": 25, "da_hits_3": 75, "em_hits_1": 25, "em_hits_3": 75,
    }  # fmt: skip
    assert factor_metrics(ComaeConfig(factors=()), np.zeros((4, 5), int)) == {}


def test_measuring_does_not_depend_on_how_training_is_batched(task, tiny_llama):
    other = ComaeTask(
        task.model, task.vocabulary, replace(task.recipe, batches=BatchRecipe("bucketed", 512, 128)), CPU
    )
    assert other.measure("valid") == pytest.approx(task.measure("valid"), rel=1e-5)
    assert task.model.training


def test_a_reply_without_a_needed_factor_is_left_out_and_counted(tiny_llama, tmp_path, told):
    dialogues = told_talks(4)
    reply = dialogues[0].turns[1]
    unannotated = replace(reply, factors=replace(reply.factors, act=None))
    dialogues[0] = replace(dialogues[0], turns=(dialogues[0].turns[0], unannotated))
    lines = "\n".join(dialogue.to_json() for dialogue in dialogues) + "\n"
    (told / "jsonl" / "train.jsonl").write_text(lines)

    def left_out(factors):
        recipe = told_recipe(tmp_path / "run", told, tiny_llama, comae=ComaeConfig(factors=factors))
        task = ComaeTask.prepare(recipe, CPU)
        task.measure("valid")
        said = task.conditions()["left out, since too long or without a factor"]
        return len(told_examples(4)) - len(task.examples()), said

    assert left_out(("mechanisms", "act")) == (1, "1 of train")
    assert left_out(("expressed_emotion",)) == (0, "none")


def test_a_corpus_without_factors_is_a_clear_error_and_no_trouble_for_vanilla(tiny_llama, tmp_path):
    unannotated = tmp_path / "unannotated"
    write_told(tmp_path / "annotated")
    unannotated.mkdir()
    for split in ("train", "valid", "test"):
        turns = [replace(t, turns=tuple(replace(u, factors=None) for u in t.turns)) for t in told_talks(4)]
        (unannotated / f"{split}.jsonl").write_text("\n".join(talk.to_json() for talk in turns) + "\n")
    recipe = told_recipe(tmp_path / "run", None, tiny_llama, data=DataRecipe("jsonl", unannotated))
    with pytest.raises(RecipeError, match=r"mechanisms, act, expressed_emotion\..*listenwell annotate"):
        ComaeTask.prepare(recipe, CPU)
    assert ComaeTask.prepare(with_changes(recipe, comae=ComaeConfig(factors=())), CPU).examples()
    missing = told_recipe(tmp_path / "run", tmp_path / "nowhere", tiny_llama)
    with pytest.raises(CorpusError, match="listenwell annotate"):
        ComaeTask.prepare(missing, CPU)


def test_batches_of_examples_are_refused(tiny_llama, tmp_path, told):
    with pytest.raises(RecipeError, match="packed or bucketed"):
        told_recipe(tmp_path / "run", told, tiny_llama, batches=BatchRecipe("examples", examples=4))


@pytest.mark.parametrize("lora", [None, LoraRecipe(4, 8, 0.05)])
def test_a_broken_run_ends_as_an_unbroken_one(tiny_llama, tmp_path, told, monkeypatch, lora):
    recipe = told_recipe(tmp_path / "whole", told, tiny_llama, lora=lora, validate_every=1)
    assert resumed_at(recipe, tmp_path / "broken", ComaeTask, monkeypatch, 2) > 0


def test_adapters_train_with_the_new_parts_alone(tiny_llama, tmp_path, told, monkeypatch):
    recipe = told_recipe(tmp_path / "run", told, tiny_llama, lora=LoraRecipe(4, 8, 0.0), epochs=2)
    trainer = Trainer(recipe)
    trained = {name for name, value in trainer.task.model.named_parameters() if value.requires_grad}
    assert trained and all("lora_" in name or not name.startswith("decoder.") for name in trained)
    valid = trainer.run()
    fresh = ComaeTask.prepare(recipe, CPU)
    fresh.load(recipe.output / "best")
    assert fresh.measure("valid")["nll"] == pytest.approx(valid["nll"], rel=1e-3)
    files = {path.name for path in (recipe.output / "best").iterdir()}
    assert {"adapter_model.safetensors", "heads.safetensors"} <= files and "model.safetensors" not in files


def test_the_recipes_are_the_papers_model_and_its_family():
    recipe = read_recipe(TrainRecipe, RECIPES / "comae" / "comae.yaml")
    assert (
        recipe.model == "comae"
        and recipe.task.comae.title == "CM → DA → EM"
        and 0 < recipe.task.comae.weight <= 1
    )
    (sweep,) = read_sweeps([RECIPES / "sweeps" / "comae.yaml"])
    titles = {run.row: run.recipe.task.comae.title for run in sweep.runs}
    assert sorted(titles.values()) == sorted(config.title for config in FAMILY)
    for row, title in titles.items():
        assert row.casefold().startswith(title.casefold())
