from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from listenwell import checkpoint
from listenwell.dialogue import Candidate, Dialogue, Turn
from listenwell.errors import CorpusError, InputError, RecipeError
from listenwell.rankers.config import CobertSettings, RankerConfig
from listenwell.rankers.inference import score
from listenwell.rankers.model import KIND
from listenwell.rankers.ranker import Ranker
from listenwell.recipe import read_recipe
from listenwell.results.store import read_result
from listenwell.training import rankers as module
from listenwell.training.batching import Epoch
from listenwell.training.loop import Trainer, make_optimizer
from listenwell.training.rankers import RankingTask, collate
from listenwell.training.recipe import (
    BatchRecipe,
    DataRecipe,
    LoraRecipe,
    OptimizerRecipe,
    TrainRecipe,
)
from listenwell.training.run import train
from listenwell.training.task_configs import PairsRecipe
from tests.training.helpers import resumed_at, with_changes
from tests.training.rank_helpers import CPU, recipe_of, talks, task_of, write_talks

pytestmark = pytest.mark.usefixtures("installed_encoder")
ROOT = Path(__file__).parents[2]
LORA = LoraRecipe(rank=8, alpha=16, dropout=0.0)


@pytest.mark.parametrize(
    ("ranker", "lora"),
    [
        ({"model": "bi"}, None),
        ({"model": "bi"}, LORA),
        ({"model": "bi", "backbone": "words"}, None),
        ({"model": "cobert", "cobert": CobertSettings(vectors=0.5)}, LORA),
        ({"model": "cross"}, None),
    ],
    ids=["bi", "bi-lora", "words", "cobert-lora", "cross"],
)
def test_it_can_overfit_ten_dialogues(tmp_path, ranker, lora):
    recipe = recipe_of(
        tmp_path,
        ranker,
        lora=lora,
        epochs=60,
        validate_every=10,
        pairs=PairsRecipe((("jsonl", 0),), scale=0.1 if ranker["model"] == "cobert" else 1.0),
        optimizer=OptimizerRecipe(learning_rate=2e-2 if lora else 1e-2, weight_decay=0.0),
        batches=BatchRecipe("examples", examples=10),
    )
    trainer = Trainer(recipe)
    trained = {name for name, p in trainer.task.model.named_parameters() if p.requires_grad}
    assert any("lora_" in name for name in trained) == (lora is not None)
    assert any("lora_" not in name for name in trained if "backbone" in name) == (lora is None)
    assert trainer.task.measure("valid")["R@1"] < 100
    folder = train(recipe)
    result = read_result(folder / "result.json")
    assert result.metric("R@1") == result.metric("R@1 unshuffled") == result.metric("MRR") == 100
    assert result.metric("error") == result.metric("valid_error") == 0
    assert (result.task, result.split, result.count, result.corpus) == ("ranking", "test", 10, "jsonl")
    kept = checkpoint.open_checkpoint(folder / "best", KIND)
    assert ("adapter_model.safetensors" in kept.sums) == (lora is not None)
    assert ("model.safetensors" in kept.sums) == (lora is None)
    assert read_recipe(TrainRecipe, kept.path("recipe.yaml")) == recipe
    # The folder loads itself and chooses what was learned.
    chosen = Ranker.load(folder)
    every = list(talks(10))
    replies = [Candidate(talk.turns[1].text) for talk in every]
    for talk, reply in zip(every, replies, strict=True):
        best, *_ = chosen.rerank(replace(talk, turns=talk.turns[:1]), replies)
        assert best.text == reply.text


@pytest.mark.parametrize("lora", [LoraRecipe(rank=2, alpha=4, dropout=0.2), None])
def test_broken_off_in_the_middle_it_ends_with_the_same_bits(tmp_path, monkeypatch, lora):
    shape = {"lora": lora, "dropout": 0.2, "batches": BatchRecipe("examples", examples=4)}
    recipe = recipe_of(tmp_path, {"model": "poly"}, **shape)
    assert resumed_at(recipe, tmp_path / "broken", RankingTask, monkeypatch, measuring=3) > 0


def loss_of(task, batches):
    with torch.no_grad():
        steps = Epoch(task.examples(), task.collate, batches, 1, 0).steps(part_tokens=16)
        return [(step.targets, [float(task.loss_sum(one)) for one in step.batches]) for step in steps]


def test_the_loss_is_the_cross_entropy_of_each_own_reply(tmp_path):
    task = task_of(tmp_path, {"model": "cobert"}, pairs=PairsRecipe((("jsonl", 0),), scale=0.05))
    task.model.eval()
    ((targets, (found,)),) = loss_of(task, BatchRecipe("examples", examples=10))
    pieces = task.examples()
    scores = 0.05 * score(
        task.model, [p.context for p in pieces], [p.persona for p in pieces], [p.reply for p in pieces]
    )
    probabilities = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    assert targets == 10 and found == pytest.approx(-np.log(np.diagonal(probabilities)).sum(), rel=1e-3)


def test_equal_replies_are_no_wrong_answers(tmp_path):
    task = task_of(tmp_path)
    one, two, three = task.examples()[:3]
    same = replace(two, reply=one.reply)
    batch = collate([one, same, three], [[0], [1], [2]], 0)
    assert batch.allowed.tolist() == [[True, False, True], [False, True, True], [True, True, True]]
    assert batch.weight == 3 and batch.size == len(one) + len(same) + len(three)
    # The second and the third have words of a persona: a row each, the first's empty.
    assert [row.any() for row in batch.persona["parts"]] == [bool(len(p.persona)) for p in (one, same, three)]
    assert collate([one, three], [[0], [1]], 0).persona is None
    assert not len(one.persona) and len(two.persona)


def test_pieces_are_the_examples_as_the_ranker_reads_them(tmp_path):
    task = task_of(tmp_path)
    (piece, *_), (talk, *_) = task.examples(), talks(10)
    dialogue = replace(talk, turns=talk.turns[:1])
    made = task._inputs
    assert piece.context.tokens.tolist() == made.contexts([dialogue])[0].tokens.tolist()
    assert piece.reply.tokens.tolist() == made.replies([talk.turns[1].text])[0].tokens.tolist()
    assert len(task.examples()) == 10 and len(piece) == len(piece.tokens) and piece.weight == 1


def test_parts_of_sources_are_drawn_at_random_and_fixed(tmp_path):
    def drawn(seed, count):
        pairs = PairsRecipe((("jsonl", count),))
        found = task_of(tmp_path, seed=seed, pairs=pairs, counts=(40, 10, 10)).examples()
        return [piece.reply.tokens.tobytes() for piece in found]

    every = drawn(1, 0)
    some = drawn(1, 8)
    assert len(every) == 40 and len(some) == len(set(some)) == 8
    assert set(some) < set(every) and some == drawn(1, 8) and set(some) != set(drawn(2, 8))
    assert some != every[:8]
    with pytest.raises(RecipeError, match=r"jsonl has 40 training replies, not 41.*pairs\.sources"):
        drawn(1, 41)


@pytest.mark.usefixtures("samples")
def test_several_sources_are_learned_together(tmp_path):
    pairs = PairsRecipe((("empathetic_dialogues", 2), ("pec_happy", 0)), tests=("empathetic_dialogues",))
    data = DataRecipe(train="train", valid="train", test="train")  # the samples' others are too short
    task = task_of(tmp_path, pairs=pairs, data=data)
    each = {name: len(list(module.Source(name).examples("train"))) for name, _ in pairs.sources}
    assert each["empathetic_dialogues"] > 2
    assert len(task.examples()) == 2 + each["pec_happy"]
    assert task.corpus == "empathetic_dialogues + pec_happy"
    found = task.measure("train")
    assert found["replies"] == sum(each.values()) and 0 <= found["R@1 on EmpatheticDialogues"] <= 100
    names = [file.name for file in task.data_files(shaping=True)]
    assert names.count("train.csv") == 2 and "train.txt" in names
    assert task.conditions()["parts"] == "empathetic_dialogues 2, pec_happy all"


def test_everyone_is_learned_from_where_the_recipe_says(tmp_path):
    corpus = write_talks(tmp_path / "data", train=2, valid=4, test=4)
    turns = tuple(Turn("ab"[n % 2], f"word {n}") for n in range(5))
    (corpus / "train.jsonl").write_text(Dialogue(turns, listener="b").to_json() + "\n")
    counts = []
    for learn in ("replies", "all"):
        recipe = replace(recipe_of(tmp_path / "other"), learn=learn, data=DataRecipe("jsonl", corpus))
        task = RankingTask.prepare(recipe, CPU)
        counts.append((len(task.examples()), task.measure("valid")["replies"]))
    assert counts == [(2, 4.0), (4, 4.0)]


def test_a_divided_corpus_says_so(tmp_path, monkeypatch):
    from tests.corpora.test_sources import write_talks as write_spc

    monkeypatch.setenv("LISTENWELL_DATA", str(tmp_path))
    write_spc(tmp_path / "synthetic_persona_chat", valid=60, test=4)
    pairs = PairsRecipe((("synthetic_persona_chat", 0),))
    task = task_of(tmp_path, pairs=pairs, data=DataRecipe(test="test"))
    assert len(task.examples()) == 50 * 2 and task.measure("valid")["replies"] == 10 * 2
    assert "modulo 10" in task.conditions()["split"]
    assert "split" not in task_of(tmp_path).conditions()


@pytest.mark.parametrize(("count", "ranked"), [(7, 7), (100, 100), (130, 100), (200, 200)])
def test_the_count_is_that_of_ranked_replies(tmp_path, count, ranked):
    task = task_of(tmp_path, {"backbone": "words"}, counts=(4, count, 4))
    found = task.measure("valid")
    assert found["replies"] == ranked
    assert found["error"] == 100 - found["R@1"] and found["MRR_error"] == 100 - found["MRR"]
    assert not any("unshuffled" in name for name in found)  # of the test split only
    assert set(found) >= {"R@1", "R@10", "R@50", "MRR"}


def test_a_large_split_can_be_measured_in_part(tmp_path):
    pairs = PairsRecipe((("jsonl", 0),), measured=6)
    task = task_of(tmp_path, pairs=pairs, counts=(10, 20, 20))
    assert task.measure("valid")["replies"] == task.measure("test")["replies"] == 6
    assert len(task.examples()) == 10  # all are learned from
    first = [piece.reply.tokens.tolist() for piece in task._split_examples("valid", task._sources)]
    assert first == [piece.reply.tokens.tolist() for piece in task.examples()[:6]]
    assert task.conditions()["measured"] == "the first 6 replies of each corpus"
    fewer = replace(task.recipe, data=replace(task.recipe.data, limit=4))
    assert RankingTask.prepare(fewer, CPU).measure("valid")["replies"] == 4


def test_measuring_worked_by_hand(tmp_path, monkeypatch):
    task = task_of(tmp_path, counts=(4, 6, 6))
    asked = []

    def fixed(ranker, pools):
        """The true reply is beaten by as many as its place in the pool."""
        ((_, _, replies),) = pools
        asked.append([reply.tokens.tobytes() for reply in replies])
        assert not ranker.training
        size = range(len(replies))
        return [np.array([[0.0 if a == b else (1.0 if b < a else -1.0) for b in size] for a in size])]

    monkeypatch.setattr(module, "score_pools", fixed)
    task.model.train()
    found = task.measure("test")
    # Ranks 1 to 6 in a pool of 6.
    assert found["R@1"] == found["R@1 unshuffled"] == pytest.approx(100 / 6)
    assert found["R@10"] == 100
    assert found["MRR"] == pytest.approx(100 * sum(1 / rank for rank in range(1, 7)) / 6)
    assert found["error"] == pytest.approx(500 / 6)
    assert task.model.training
    shuffled, neighbours = asked
    assert shuffled != neighbours and sorted(shuffled) == sorted(neighbours)
    in_order = [piece.reply.tokens.tobytes() for piece in task._split_examples("test", task._sources)]
    assert neighbours == in_order


def test_dropout_acts_in_training_and_not_in_measuring(tmp_path):
    task = task_of(tmp_path, dropout=0.4)
    (step, *_) = Epoch(task.examples(), task.collate, task.recipe.batches, 1, 0).steps()
    task.model.train()
    first, second = (task.loss_sum(step.batches[0]).item() for _ in range(2))
    assert first != second
    assert task.measure("valid") == task.measure("valid") and task.model.training


@pytest.mark.parametrize("lora", [LoraRecipe(rank=2, alpha=4), None])
def test_saving_and_loading_gives_the_same_figures(tmp_path, lora):
    task = task_of(tmp_path, {"model": "poly"}, lora=lora)
    torch.manual_seed(5)
    for parameter in task.model.parameters():
        if parameter.requires_grad:
            parameter.data += 0.3 * torch.randn_like(parameter)
    with checkpoint.writing(tmp_path / "saved", KIND) as folder:
        task.save(folder)
    other = task_of(tmp_path, {"model": "poly"}, lora=lora)
    given = [[piece.context for piece in task.examples()], [piece.persona for piece in task.examples()]]
    given.append([piece.reply for piece in task.examples()])
    task.model.eval()
    other.model.eval()
    before = score(task.model, *given)
    assert np.abs(score(other.model, *given) - before).max() > 0.1
    other.load(tmp_path / "saved")
    np.testing.assert_allclose(score(other.model, *given), before, atol=0.02 * np.abs(before).max())


def test_what_cannot_be_learned_is_a_clear_error(tmp_path):
    recipe = recipe_of(tmp_path)
    wrong = [
        ({"batches": BatchRecipe()}, r"batches of examples.*batches\.batching"),
        (
            {"ranker": replace(recipe.task.ranker, backbone="words"), "lora": LORA},
            r"no layers for adapters.*lora",
        ),
    ]
    for changes, message in wrong:
        with pytest.raises(RecipeError, match=message):
            RankingTask.prepare(with_changes(recipe, **changes), CPU)
    with pytest.raises(InputError, match="no metric 'R@1'"):
        Trainer(with_changes(recipe, metric="R@1"))
    with pytest.raises(InputError, match=r"texts of 1000 tokens, but its encoder 64"):
        task_of(tmp_path, {"context_tokens": 1000})


def test_missing_files_are_named_before_weights_are_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "make_ranker", lambda *rest: pytest.fail("minutes were spent"))
    with pytest.raises(CorpusError, match="corpus download empathetic_dialogues"):
        task_of(tmp_path, pairs=PairsRecipe((("empathetic_dialogues", 0),)), data=DataRecipe())
    # The corpora of `tests` too.
    with pytest.raises(CorpusError, match="corpus download pec"):
        task_of(tmp_path, pairs=PairsRecipe((("jsonl", 0),), tests=("pec",)))
    recipe = recipe_of(tmp_path)
    (recipe.data.path / "test.jsonl").unlink()
    with pytest.raises(CorpusError, match=r"no .*test\.jsonl"):
        RankingTask.prepare(recipe, CPU)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sources": ()}, "pairs.sources is empty"),
        ({"sources": (("pec", -1),)}, "pairs.sources.pec is -1"),
        ({"scale": 0.0}, "pairs.scale is 0"),
        ({"measured": 1}, "pairs.measured is 1"),
    ],
)
def test_a_wrong_number_in_the_recipe_is_named(wrong, message):
    with pytest.raises(RecipeError, match=message):
        PairsRecipe(**({"sources": (("pec", 0),)} | wrong))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"examples": 1}, "batches.examples is 1"), ({"accumulate": 2}, "cannot be computed in parts")],
)
def test_batches_of_examples_have_rules(wrong, message):
    with pytest.raises(RecipeError, match=message):
        BatchRecipe("examples", **wrong)
    BatchRecipe("examples", tokens=1)  # tokens are not what is counted


def test_the_conditions_are_what_was_done(tmp_path):
    recipe = recipe_of(tmp_path, epochs=1)
    train(recipe)
    said = dict(read_result(recipe.output / "result.json").conditions)
    assert said["batches"] == "5 examples a step"
    assert said["wrong replies in training"] == "the other 4 of a batch"
    assert said["longest training sequence"] == "context 24, persona 24, reply 16 tokens"
    assert said["learned"] == "the listeners' replies" and said["reads"] == "6 turns, 10 persona sentences"


def test_the_base_is_the_recipes(tmp_path):
    recipe = recipe_of(tmp_path)
    recipe = with_changes(recipe, ranker=replace(recipe.task.ranker, base="smollm2-135m-instruct"))
    assert RankingTask.prepare(recipe, CPU).model.config.base == "all-minilm-l6-v2"


@pytest.mark.parametrize("file", sorted((ROOT / "recipes" / "rankers").glob("*.yaml")), ids=lambda f: f.stem)
def test_the_recipes_in_the_repository_are_read(file):
    recipe = read_recipe(TrainRecipe, file)
    if recipe.model == "ranker":
        assert isinstance(module.config_of(recipe), RankerConfig)
        assert recipe.metric in RankingTask.metrics
    else:  # a generator that ranks by likelihood must know how likely replies are anyway
        assert recipe.model == "vanilla" and recipe.unconditional > 0


WEIGHTED = {"model": "cobert", "cobert": CobertSettings(weighted=True)}


def test_a_head_learns_at_its_own_pace(tmp_path):
    task = task_of(tmp_path, WEIGHTED)
    slow = make_optimizer(task.model, OptimizerRecipe())
    assert [group["lr_multiplier"] for group in slow.param_groups] == [1.0, 1.0]
    quick = make_optimizer(task.model, OptimizerRecipe(head_lr_multiplier=50))
    count = sum(len(group["params"]) for group in quick.param_groups)
    assert count == sum(len(group["params"]) for group in slow.param_groups)
    found = [part for group in quick.param_groups if group["lr_multiplier"] == 50 for part in group["params"]]
    assert {id(part) for part in found} == {id(task.model.weights), id(task.model.sharpness)}


def test_the_head_s_pace_is_kept_step_by_step(tmp_path):
    begin = task_of(tmp_path, WEIGHTED).model.weights.detach().clone()
    moved = []
    for lr_multiplier in (1, 20):
        task = task_of(tmp_path, WEIGHTED)
        recipe = replace(
            task.recipe,
            output=tmp_path / f"run{lr_multiplier}",
            optimizer=OptimizerRecipe(head_lr_multiplier=lr_multiplier),
        )
        Trainer(recipe, task).run()
        moved.append(float((task.model.weights - begin).abs().max()))
    assert moved[1] > 5 * moved[0] > 0
