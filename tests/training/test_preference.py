import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from listenwell.dialogue import Dialogue, Turn
from listenwell.errors import CheckpointError, InputError, RecipeError
from listenwell.generators.planned import PlannedGenerator
from listenwell.generators.planned_config import PlannedConfig
from listenwell.generators.plans import PlanTokens
from listenwell.generators.prompt_template import PromptTemplate
from listenwell.recipe import read_recipe
from listenwell.training.batching import Epoch
from listenwell.training.loop import Trainer
from listenwell.training.preference import REFERENCES, DPOObjective, PreferenceTask, encode_pair
from listenwell.training.preference_loss import margins, pair_losses, reply_sums, unlikelihoods
from listenwell.training.recipe import (
    BatchRecipe,
    DataRecipe,
    TrainRecipe,
)
from listenwell.training.run import train
from listenwell.training.task_configs import PreferenceRecipe
from tests.training.helpers import resumed_at, with_changes
from tests.training.preference_helpers import LORA, changed, make_home, pairs, preference_recipe
from tests.training.test_planned import annotated

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def home(tmp_path_factory, tiny_llama):
    return make_home(tmp_path_factory.mktemp("preference"), tiny_llama)


@pytest.fixture
def recipe(tmp_path, home, tiny_llama):
    return preference_recipe(tmp_path / "run", home, tiny_llama)


def total_loss(task, batches=None):
    """Over all pairs that are learned from, dropout off."""
    task.model.eval()
    batches = batches or BatchRecipe("packed", 1024, 256)
    with torch.no_grad():
        return sum(
            float(task.loss_sum(batch))
            for step in Epoch(task.examples(), task.collate, batches, 0, 0).steps()
            for batch in step.batches
        )


def test_the_losses_by_hand():
    owners = torch.tensor([0, 0, 1, 2, 3, 3, 3])
    losses = torch.tensor([1.0, 2.0, 4.0, 3.0, 1.0, 1.0, 1.0])
    nats, counts = reply_sums(-losses, owners, 2), reply_sums(torch.ones(7), owners, 2)
    assert nats.tolist() == [[-3.0, -4.0], [-3.0, -3.0]]
    assert counts.tolist() == [[2.0, 1.0], [1.0, 3.0]]
    references = torch.tensor([[-5.0, -3.0], [-2.0, -6.0]])
    # Gains of the first pair: 2 and -1; of the second: -1 and 3.
    plain = PreferenceRecipe(Path("pairs"), beta=0.1)
    assert margins(nats, references, counts, plain).tolist() == pytest.approx([0.3, -0.4])
    a_token = replace(plain, normalized=True)
    assert margins(nats, references, counts, a_token).tolist() == pytest.approx([0.2, -0.2])
    found = torch.tensor([0.3, -0.4])
    # -log(1 / (1 + e^-0.3)) and -log(1 / (1 + e^0.4))
    assert pair_losses(found, plain).tolist() == pytest.approx([0.554355, 0.913015], abs=1e-6)
    assert pair_losses(found, replace(plain, margin=0.3))[0] == pytest.approx(math.log(2))
    # p = 1/2 costs log 2, p = 1/4 costs log 4/3, a certain one no more than log 10^6.
    costs = unlikelihoods(torch.tensor([math.log(2), math.log(4), 0.0]))
    assert costs.tolist() == pytest.approx([math.log(2), math.log(4 / 3), math.log(1e6)], rel=1e-5)


def test_each_reply_is_learned_after_its_own_plan(recipe):
    first = next(pairs())
    other = replace(
        first.plan, expressed_emotion="anger" if first.plan.expressed_emotion != "anger" else "joy"
    )
    apart = replace(first, rejected_plan=other)
    task = PreferenceTask.prepare(recipe, CPU)
    template = PromptTemplate(task.vocabulary, PlanTokens.of(task.vocabulary))
    same, differ = (encode_pair(pair, template, 256) for pair in (first, apart))
    assert same.chosen.tokens.tolist() == differ.chosen.tokens.tolist()
    changed_at = [a != b for a, b in zip(same.rejected.tokens, differ.rejected.tokens, strict=True)]
    assert sum(changed_at) == 1  # the expressed emotion's token, and the talk is the same before it
    assert same.rejected.weight == differ.rejected.weight  # plans are read, not learned


def test_at_the_start_the_margin_is_nought_and_the_loss_log_2(recipe):
    task = PreferenceTask.prepare(changed(recipe, nll=0.0), CPU)
    figures = task.measure("valid")
    assert figures["preference_margin"] == 0.0
    assert figures["preference_accuracy"] == 0.0 and figures["preference_errors"] == 100.0
    assert figures["preference_loss"] == pytest.approx(math.log(2), abs=1e-7)
    assert total_loss(task) == pytest.approx(len(task.examples()) * math.log(2), rel=1e-5)
    assert len(task.examples()) + len(task.data.held_out) == 72
    # With a margin to reach it costs more.
    task.objective.settings = replace(task.objective.settings, margin=2.0)
    assert total_loss(task) == pytest.approx(len(task.examples()) * math.log(1 + math.e**2), rel=1e-4)


def test_each_part_of_the_loss_counts_as_its_weight_says(recipe):
    task = PreferenceTask.prepare(changed(recipe, nll=0.0), CPU)
    plain = total_loss(task)
    chosen = sum(-pair.references[0] / pair.chosen.weight for pair in task.examples())
    task.objective.settings = replace(task.objective.settings, nll=0.5)
    assert total_loss(task) - plain == pytest.approx(0.5 * chosen, rel=1e-4)
    unlike = 0.0
    for pair in task.examples():
        if pair.source == "other":
            batch = task.collate([pair], [[0]], len(pair))
            losses = task.generator.token_losses(batch).detach()[pair.chosen.weight :]
            unlike += float(-torch.log(1 - torch.exp(-losses)).mean())
    task.objective.settings = replace(task.objective.settings, nll=0.0, unlikelihood=2.0)
    assert unlike > 0
    assert total_loss(task) - plain == pytest.approx(2 * unlike, rel=1e-3)


def test_references_are_the_speakers_own_likelihoods(recipe, home, tiny_llama, monkeypatch):
    monkeypatch.setattr("listenwell.generators.vanilla.find_source", lambda base: tiny_llama)
    task = PreferenceTask.prepare(recipe, CPU)
    runtime = PlannedGenerator.load(PlannedConfig(), home / "start").runtime
    for pair in task.examples()[:3]:
        for side, reference in zip((pair.chosen, pair.rejected), pair.references, strict=True):
            tokens = side.tokens.tolist()
            first = len(tokens) - side.weight
            (nats,) = runtime.log_likelihoods(tokens[:first], [tokens[first:]])
            assert reference == pytest.approx(float(nats), rel=1e-3)
        before = len(pair.chosen) - pair.chosen.weight
        assert (pair.chosen.tokens[:before] == pair.rejected.tokens[:before]).all()


def test_it_learns_to_prefer_and_stays_likely_and_speaks(recipe, tiny_llama, monkeypatch):
    monkeypatch.setattr("listenwell.generators.vanilla.find_source", lambda base: tiny_llama)
    run = changed(with_changes(recipe, epochs=4, validate_every=4), nll=1.0)
    trainer = Trainer(run)
    before = trainer.task.measure("valid")
    assert before["perplexity_by_token"] < 200  # of a vocabulary of 379: it has something to lose
    after = trainer.run()
    assert after["preference_accuracy"] > 90 and after["preference_margin"] > 0.3
    assert after["preference_accuracy_own"] > 90 and after["preference_accuracy_other"] > 90
    assert after["preference_loss"] < 0.8 * before["preference_loss"]
    assert after["chosen_nll"] < before["chosen_nll"] + 0.1
    assert after["perplexity_by_token"] < 1.1 * before["perplexity_by_token"]
    generator = PlannedGenerator.load(PlannedConfig(plans=1, candidates=1), run.output)
    examples = [example for talk in annotated(8) for example in talk.examples()]
    gold = generator.perplexity(examples, "gold").by_token
    assert gold == pytest.approx(after["perplexity_by_token"], rel=0.02)


def test_without_its_own_weight_the_human_replies_likelihood_is_not_held(recipe, tmp_path):
    run = changed(with_changes(recipe, epochs=4, validate_every=4), beta=2.0, nll=0.0)
    loose = Trainer(run).run()
    held = Trainer(changed(with_changes(run, output=tmp_path / "held"), nll=5.0)).run()
    assert held["chosen_nll"] < loose["chosen_nll"] - 0.1
    assert min(held["preference_accuracy"], loose["preference_accuracy"]) > 90


def test_margins_a_token_rise_too(recipe):
    run = changed(
        with_changes(recipe, epochs=3, validate_every=3), beta=5.0, nll=0.0, normalized=True, margin=1.0
    )
    after = Trainer(run).run()
    assert after["preference_accuracy"] > 90 and after["preference_margin"] > 1


def test_neighbours_in_a_row_do_not_change_the_loss(recipe):
    task = PreferenceTask.prepare(changed(recipe, unlikelihood=1.0), CPU)
    task.data.learned[0] = replace(
        task.data.learned[0], references=(-9.0, -30.0)
    )  # a margin that is not nought
    packed = total_loss(task)
    assert packed == pytest.approx(total_loss(task, BatchRecipe("packed", 256, 256)), rel=1e-5)
    assert packed == pytest.approx(total_loss(task, BatchRecipe("bucketed", 2048, 8)), rel=1e-5)
    rows = [[0, 1, 2], [3]]
    batch = task.collate(task.examples(), rows, 600, 4)
    assert batch.tokens.shape == (4, 600) and batch.weight == 4
    assert batch.segments[0].max() == 6 and batch.segments[1].max() == 2  # every reply by itself
    first, second = (task.examples()[0].chosen, task.examples()[0].rejected)
    assert (batch.tokens[0, len(first) : len(first) + len(second)] == second.tokens).all()
    assert batch.positions[0, len(first)] == 0
    assert np.bincount(batch.owners).tolist() == [
        side.weight for pair in task.examples()[:4] for side in (pair.chosen, pair.rejected)
    ]


def test_a_broken_run_goes_on_as_if_it_had_not_been(recipe, tmp_path, monkeypatch):
    lora = replace(LORA, dropout=0.1)
    run = with_changes(recipe, epochs=2, validate_every=0.5, lora=lora)
    assert resumed_at(run, tmp_path / "broken", PreferenceTask, monkeypatch, 3) > 0


def test_references_are_kept_by_weights_and_pairs(recipe, home, tmp_path, monkeypatch):
    worked_out, likelihoods = [], DPOObjective.log_likelihoods

    def counted(self, pairs):
        worked_out.append(len(pairs))
        return likelihoods(self, pairs)

    monkeypatch.setattr(DPOObjective, "log_likelihoods", counted)
    first = PreferenceTask.prepare(recipe, CPU)
    assert sum(worked_out) == 72
    again = PreferenceTask.prepare(recipe, CPU)
    assert sum(worked_out) == 72
    assert [pair.references for pair in again.examples()] == [pair.references for pair in first.examples()]
    assert all(all(pair.references) for pair in again.examples())
    # Damaged, of other pairs, of other weights: worked out again.
    (recipe.output / REFERENCES).write_bytes(b"half")
    PreferenceTask.prepare(recipe, CPU)
    assert sum(worked_out) == 2 * 72
    lines = (home / "pairs.jsonl").read_text().splitlines()
    (tmp_path / "fewer.jsonl").write_text("\n".join(lines[:40]))
    PreferenceTask.prepare(changed(recipe, file=tmp_path / "fewer.jsonl"), CPU)
    assert sum(worked_out) == 2 * 72 + 40
    trained = with_changes(recipe, output=tmp_path / "other", epochs=1, validate_every=1)
    Trainer(trained).run()
    del worked_out[:]
    moved = with_changes(recipe, pairs=replace(recipe.task.pairs, start=trained.output / "best"))
    last = PreferenceTask.prepare(moved, CPU)
    assert sum(worked_out) == 72
    assert last.examples()[0].references != first.examples()[0].references


def test_shares_and_what_is_held_out(recipe):
    task = PreferenceTask.prepare(changed(recipe, shares=(("own", 0.0),)), CPU)
    assert {pair.source for pair in [*task.examples(), *task.data.held_out]} == {"other"}
    half = PreferenceTask.prepare(changed(recipe, shares=(("own", 0.5),)), CPU)
    own = [pair for pair in [*half.examples(), *half.data.held_out] if pair.source == "own"]
    assert 9 < len(own) < 27
    # A talk is held out with all of its pairs.
    whole = PreferenceTask.prepare(recipe, CPU)

    def beginnings(pieces):  # of the context's first turn, which names the thing and the feeling
        return {tuple(pair.chosen.tokens[:24].tolist()) for pair in pieces}

    assert whole.data.held_out and not beginnings(whole.examples()) & beginnings(whole.data.held_out)
    none = PreferenceTask.prepare(changed(replace(recipe, metric="perplexity_by_token"), held_out=0.0), CPU)
    assert len(none.examples()) == 72
    assert not any(name.startswith("preference") for name in none.measure("valid"))


def test_a_long_talk_is_cut_alike_for_both_replies(recipe, tmp_path):
    pair = next(pairs())
    turns = tuple(Turn(("speaker", "listener")[n % 2], f"This is turn number {n}, dear.") for n in range(41))
    long = replace(pair, context=Dialogue(turns, "long"), rejected="I see. " * 20)
    (tmp_path / "pairs.jsonl").write_text(long.to_json() + "\n")
    few = replace(recipe, metric="perplexity_by_token")
    task = PreferenceTask.prepare(changed(few, file=tmp_path / "pairs.jsonl", held_out=0.0), CPU)
    (example,) = task.examples()
    assert len(example) <= recipe.batches.row_tokens
    before = len(example.chosen) - example.chosen.weight
    assert before == len(example.rejected) - example.rejected.weight
    assert (example.chosen.tokens[:before] == example.rejected.tokens[:before]).all()


def test_what_is_wrong_is_named(recipe, home, tmp_path):
    lines = (home / "pairs.jsonl").read_text().splitlines()
    (tmp_path / "broken.jsonl").write_text("\n".join([lines[0], lines[1][:70], lines[2]]))
    with pytest.raises(InputError, match=r"broken.jsonl:2 is no pair"):
        PreferenceTask.prepare(changed(recipe, file=tmp_path / "broken.jsonl"), CPU)
    with pytest.raises(InputError, match="Cannot read"):
        PreferenceTask.prepare(changed(recipe, file=tmp_path / "none.jsonl"), CPU)
    with pytest.raises(RecipeError, match="no pairs of the source 'mine'"):
        PreferenceTask.prepare(changed(recipe, shares=(("mine", 0.5),)), CPU)
    with pytest.raises(RecipeError, match="0 pairs to learn from"):
        PreferenceTask.prepare(changed(recipe, shares=(("own", 0.0), ("other", 0.0))), CPU)
    with pytest.raises(RecipeError, match="measured on pairs held out"):
        PreferenceTask.prepare(changed(recipe, held_out=0.0), CPU)
    for lacking in ({"pairs": replace(recipe.task.pairs, start=None)}, {"pairs": None}):
        with pytest.raises(RecipeError, match=r"pairs\.start"):
            PreferenceTask.prepare(with_changes(recipe, **lacking), CPU)
    with pytest.raises(RecipeError, match=r"preference\.beta"):
        changed(recipe, beta=0.0)
    vanilla = with_changes(
        recipe, model="vanilla", output=tmp_path / "v", epochs=1, metric="perplexity_by_token"
    )
    Trainer(vanilla).run()
    with pytest.raises(CheckpointError, match="'causal' checkpoint, not 'planned'"):
        moved = replace(recipe.task.pairs, start=tmp_path / "v" / "best")
        PreferenceTask.prepare(with_changes(recipe, pairs=moved), CPU)


def test_a_whole_run_writes_its_result(recipe, home):
    train(with_changes(recipe, epochs=1, validate_every=1))
    result = json.loads((recipe.output / "result.json").read_text())
    figures = result["metrics"]
    assert {"preference_accuracy", "perplexity_by_token", "plan_nll", "valid_preference_loss"} <= set(figures)
    conditions = result["conditions"]
    assert "own" in conditions["learned"] and "beta 0.1" in conditions["preference"]
    task = PreferenceTask.prepare(recipe, CPU)
    assert home / "pairs.jsonl" in task.data_files(shaping=True)
    assert home / "data" / "train.jsonl" not in task.data_files()


@pytest.mark.parametrize(("name", "begins"), [("preferred", "runs/planned/best"), ("rated", "shipped")])
def test_the_recipes_can_be_read(name, begins):
    folder = Path(__file__).parents[2] / "recipes" / "generator"
    recipe, start = (read_recipe(TrainRecipe, folder / f"{each}.yaml") for each in (name, "planned"))
    assert recipe.task.pairs.start == Path(begins)
    assert (recipe.lora.rank, recipe.lora.alpha) == (start.lora.rank, start.lora.alpha)
    assert recipe.base == start.base and isinstance(recipe.data, DataRecipe)
    assert recipe.metric in PreferenceTask.metrics
