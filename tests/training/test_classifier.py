from pathlib import Path

import numpy as np
import pytest
import torch

from listenwell import Annotator, Dialogue, Turn, checkpoint
from listenwell.annotators.heads import HEADS
from listenwell.annotators.model import KIND
from listenwell.annotators.sources import SOURCES
from listenwell.errors import CorpusError, InputError, RecipeError, UnknownNameError
from listenwell.labels import MECHANISMS
from listenwell.recipe import read_recipe
from listenwell.results.store import read_result
from listenwell.training import classifier as module
from listenwell.training.batching import Epoch
from listenwell.training.classifier import ClassifierTask, right_share
from listenwell.training.loop import Trainer
from listenwell.training.recipe import BatchRecipe, DataRecipe, LoraRecipe, TrainRecipe
from listenwell.training.run import train
from listenwell.training.task_configs import ClassifierRecipe
from tests.training.classifier_helpers import ACT_TEXTS, CPU, loss_of, opinions, recipe_of, task_of
from tests.training.helpers import resumed_at, with_changes

pytestmark = pytest.mark.usefixtures("samples", "installed_encoder")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("lora", [LoraRecipe(rank=4, alpha=8, dropout=0.0), None])
def test_it_can_overfit_ten_texts(tmp_path, lora):
    changes = {"lora": lora, "epochs": 60, "validate_every": 20, "metric": "error"}
    recipe = recipe_of(tmp_path / "run", changes=changes)
    trainer = Trainer(recipe)
    assert len(trainer.task.examples()) == ACT_TEXTS
    trained = {name for name, p in trainer.task.model.named_parameters() if p.requires_grad}
    assert {"heads.act.weight", "heads.act.bias"} <= trained
    assert all("lora_" in name for name in trained if name.startswith("encoder.")) == (lora is not None)
    before = trainer.task.measure("valid")["dialogue act, accuracy"]
    folder = train(recipe)
    result = read_result(folder / "result.json")
    # The nine texts of valid and test are those of train.
    assert before < 100 == result.metric("dialogue act, accuracy")
    assert (result.task, result.split, result.count) == ("understanding", "test", 9)
    assert result.metric("error") == result.metric("valid_error") == 0
    assert result.corpus == "empathetic_intents"
    kept = checkpoint.open_checkpoint(folder / "best", KIND)
    assert ("adapter_model.safetensors" in kept.sums) == (lora is not None)
    assert ("model.safetensors" in kept.sums) == (lora is None)
    assert read_recipe(TrainRecipe, kept.path("recipe.yaml")) == recipe
    acts = Annotator.load(folder / "best")
    texts = {item.view[0][0]: item.labels["act"][0] for item in SOURCES["acts"].read("train")}
    heard = {text: acts.annotate(Dialogue((Turn("a", text),))).turns[0].factors.act for text in texts}
    assert heard == texts
    if lora:
        assert (folder / "best" / "adapter_model.safetensors").stat().st_size < 30_000  # the adapter alone


@pytest.mark.parametrize("lora", [LoraRecipe(rank=2, alpha=4, dropout=0.2), None])
def test_broken_off_in_the_middle_it_ends_with_the_same_bits(tmp_path, monkeypatch, lora):
    recipe = recipe_of(
        tmp_path / "whole", "act", "expressed_emotion", changes={"lora": lora, "dropout": 0.2}, dropout=0.3
    )
    assert resumed_at(recipe, tmp_path / "broken", ClassifierTask, monkeypatch, measuring=3) > 0


def test_pieces_are_the_texts_of_every_source_that_the_heads_know(tmp_path):
    task = task_of(tmp_path, "expressed_emotion", "emotion", repeat=(("situations", 3),))
    # 2 situations three times, 4 contexts, and 3 of 4 comments have one expressed emotion.
    assert len(task.examples()) == 6 + 4 + 3
    assert task.examples()[0] is task.examples()[1] is task.examples()[2]
    assert [set(piece.targets) for piece in task.examples()] == [{"emotion"}] * 10 + [
        {"expressed_emotion"}
    ] * 3
    assert task.corpus == "empathetic_dialogues + empathetic_dialogues_labels + goemotions"
    (grateful,) = np.flatnonzero(task.examples()[0].targets["emotion"])
    assert HEADS["emotion"].labels[int(grateful)] == "grateful"
    assert task.examples()[0].targets["emotion"].sum() == 1
    both = task_of(tmp_path, "goemotions", "expressed_emotion").examples()
    assert [piece.targets["goemotions"].sum() for piece in both] == [1, 2, 1, 1]
    assert [set(piece.targets) for piece in both].count({"goemotions"}) == 1


def test_the_loss_worked_by_hand(tmp_path):
    task = task_of(tmp_path, "act")
    opinions(task)
    assert loss_of(task, task.recipe.batches) == pytest.approx(ACT_TEXTS * np.log(9), rel=1e-5)
    # exp(ln 2) beside eight ones: the two "others" have 2/10, the eight acts 1/10.
    opinions(task, act={"others": np.log(2)})
    wanted = 2 * np.log(5) + 8 * np.log(10)
    assert loss_of(task, task.recipe.batches) == pytest.approx(wanted, rel=1e-5)
    weighted = task_of(tmp_path, "act", weights=(("act", 0.25),))
    opinions(weighted, act={"others": np.log(2)})
    assert loss_of(weighted, task.recipe.batches) == pytest.approx(wanted / 4, rel=1e-5)


def test_the_loss_of_several_labels_is_a_sum_over_them(tmp_path):
    task = task_of(tmp_path, "goemotions")
    # All at one half but joy at 3/4, which is true of one text in four.
    opinions(task, goemotions={"joy": np.log(3)})
    wanted = 4 * 27 * np.log(2) + np.log(4 / 3) + 3 * np.log(4)
    assert loss_of(task, task.recipe.batches) == pytest.approx(wanted, rel=1e-5)


def test_the_loss_is_the_same_however_texts_are_batched(tmp_path):
    task = task_of(tmp_path, "act", "expressed_emotion", "goemotions", "emotion", *MECHANISMS)
    alone = loss_of(task, BatchRecipe("bucketed", 64, 64))
    for batches in (
        BatchRecipe("packed", 128, 64),
        BatchRecipe("packed", 512, 128, accumulate=2),
        BatchRecipe("bucketed", 4096, 64),
    ):
        assert loss_of(task, batches) == pytest.approx(alone, rel=1e-5)
    assert loss_of(task, BatchRecipe("packed", 512, 128), part_tokens=128) == pytest.approx(alone, rel=1e-5)


def test_words_that_show_a_level_are_learned(tmp_path):
    task = task_of(tmp_path, *MECHANISMS, words=1.0)
    assert task.model.config.marked == MECHANISMS.labels
    first, second, third = task.examples()
    begin, end = first.last
    words = {head: first.marks[begin:end, n].tolist() for n, head in enumerate(MECHANISMS)}
    text = task.vocabulary.encode("That must sting, I am sorry.")
    # All of the first sentence shows a reaction, nothing an interpretation, the rest explores.
    assert words["emotional_reaction"] == [1] * len(text) + [0] * (end - begin - len(text))
    assert words["interpretation"] == [0] * (end - begin)
    assert words["exploration"] == [0] * len(text) + [1] * (end - begin - len(text))
    assert (first.marks[:begin] == -1).all() and (first.marks[end:] == -1).all()
    assert second.marks[begin:end, 0].sum() == len(task.vocabulary.encode("I am sorry."))
    opinions(task)
    torch.nn.init.zeros_(task.model.words.weight)
    torch.nn.init.zeros_(task.model.words.bias)
    # Three texts of three heads that know nothing, and words that are shown or not, evenly.
    wanted = 9 * np.log(3) + 3 * np.log(2)
    assert loss_of(task, BatchRecipe("packed", 1024, 64)) == pytest.approx(wanted, rel=1e-5)
    plain = task_of(tmp_path, *MECHANISMS)
    opinions(plain)
    assert plain.examples()[0].marks is None
    assert loss_of(plain, BatchRecipe("packed", 1024, 64)) == pytest.approx(9 * np.log(3), rel=1e-5)
    assert third.marks.shape == (len(third), 3)


def test_an_ear_is_measured_worked_by_hand(tmp_path):
    task = task_of(tmp_path, "act", "emotion", "exploration")
    # valid: 9 acts with one "others"; two questions of emotion, both "proud"; one reply, "weak".
    opinions(task, act={"others": 1.0}, emotion={"proud": 1.0}, exploration={"no": 0.5, "strong": 1.0})
    found = task.measure("valid")
    assert found["dialogue act, accuracy"] == pytest.approx(100 / 9)
    assert found["situation emotion, accuracy"] == found["dialogue emotion, accuracy"] == 100
    # "no" has less than half: weak or strong counts as yes.
    assert found["exploration, accuracy"] == 100
    assert found["error"] == pytest.approx(100 - (100 / 9 + 300) / 4)
    assert found["texts"] == 9 + 1 + 1 + 1
    found = task.measure("test")
    assert [found[f"{name}, accuracy"] for name in ("situation emotion", "exploration")] == [0, 0]


def test_a_question_without_an_answer_in_the_split_is_left_out(tmp_path):
    # No reply of the sample's valid has a label of its own.
    found = task_of(tmp_path, "emotion", "response").measure("valid")
    assert "response intent, accuracy" not in found
    assert np.isfinite(found["error"])


def test_temperatures_are_fitted_on_valid_and_never_on_test(tmp_path):
    task = task_of(tmp_path, "act")
    opinions(task, act={"others": 8.0})  # far too sure: one of nine is right
    first = task.measure("test")
    assert task.model.config.temperatures == ()
    task.measure("train")
    assert task.model.config.temperatures == ()
    valid = task.measure("valid")
    ((head, fitted),) = task.model.config.temperatures
    # One text of nine is "others": all labels alike is the best that can be said.
    assert head == "act" and fitted == pytest.approx(20, rel=0.01)
    second = task.measure("test")
    assert ((head, fitted),) == task.model.config.temperatures
    assert second["mean_nll"] == pytest.approx(valid["mean_nll"])
    assert second["mean_nll"] < first["mean_nll"]
    assert second["error"] == first["error"]  # a temperature moves no answer


def test_dropout_acts_in_training_and_not_in_measuring(tmp_path):
    task = task_of(tmp_path, "act", dropout=0.5, changes={"dropout": 0.5})
    (step, *_) = Epoch(task.examples(), task.collate, task.recipe.batches, 1, 0).steps()
    task.model.train()
    first, second = (task.loss_sum(step.batches[0]).item() for _ in range(2))
    assert first != second
    assert task.measure("valid") == task.measure("valid")
    assert task.model.training  # measuring in the middle of a run changes nothing


@pytest.mark.parametrize("lora", [LoraRecipe(rank=2, alpha=4), None])
def test_saving_and_loading_gives_the_same_figures(tmp_path, lora):
    task = task_of(tmp_path, "act", "expressed_emotion", changes={"lora": lora})
    torch.manual_seed(5)
    for parameter in task.model.parameters():
        if parameter.requires_grad:
            parameter.data += 0.3 * torch.randn_like(parameter)
    task.measure("valid")  # fits the temperatures, which are saved too
    with checkpoint.writing(tmp_path / "saved", KIND) as folder:
        task.save(folder)
    other = task_of(tmp_path, "act", "expressed_emotion", changes={"lora": lora})
    # By weights: two random models can be equally wrong.
    assert any(
        not torch.equal(*pair) for pair in zip(task.model.parameters(), other.model.parameters(), strict=True)
    )
    other.load(tmp_path / "saved")
    assert other.model.config == task.model.config
    assert other.measure("test")["mean_nll"] == pytest.approx(task.measure("test")["mean_nll"], rel=1e-2)


def test_own_data_is_read_where_the_recipe_says(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("train", "dev", "test"):
        (folder / f"{name}.tsv").write_text("So glad!\t17\tx1\nSo sad!\t25\tx2\n")
    task = task_of(tmp_path, "expressed_emotion", paths=(("comments", folder),))
    assert len(task.examples()) == 2
    assert {file.parent for file in task.data_files()} == {folder}
    assert task.measure("test")["texts"] == 2
    with pytest.raises(UnknownNameError, match=r"no source named 'comment'. Did you mean 'comments'"):
        task_of(tmp_path, "expressed_emotion", paths=(("comment", folder),))


def test_the_data_files_are_those_of_the_splits(tmp_path):
    task = task_of(tmp_path, "expressed_emotion")
    assert [file.name for file in task.data_files()] == ["train.tsv", "dev.tsv", "test.tsv"]
    assert [file.name for file in task.data_files(shaping=True)] == ["train.tsv", "dev.tsv"]
    assert {file.name for file in task.base_files} == {"config.json", "model.safetensors", "tokenizer.json"}


def test_right_answers_worked_by_hand():
    truth = np.array([[1, 0, 0], [0, 0, 1]])
    # No at a half is no yes; weak and strong are both yes.
    assert right_share(np.array([[0.5, 0.3, 0.2], [0.4, 0.5, 0.1]]), truth, "exploration") == 100
    assert right_share(np.array([[0.4, 0.3, 0.3], [0.4, 0.5, 0.1]]), truth, "exploration") == 50
    labels = np.eye(9)[[0, 1, 2, 3]]
    assert right_share(np.eye(9)[[0, 1, 3, 2]], labels, "act") == 50
    sets = np.zeros((2, 28))
    sets[0, :2] = 1
    answers = np.where(sets > 0, 0.4, 0.2)
    assert right_share(answers, sets, "goemotions") == 100
    answers[0, 1] = 0.2  # one of two labels is not the set
    assert right_share(answers, sets, "goemotions") == 50


def test_what_cannot_be_learned_is_a_clear_error(tmp_path, monkeypatch):
    recipe = recipe_of(tmp_path / "run")
    with pytest.raises(UnknownNameError, match="no head named 'mood'"):
        task_of(tmp_path, "mood")
    with pytest.raises(RecipeError, match=r"holds no labelled text.*limit"):
        task_of(tmp_path, "act", changes={"data": DataRecipe(limit=0)}).examples()
    with pytest.raises(InputError, match="no metric 'accuracy'"):
        Trainer(with_changes(recipe, metric="accuracy"))
    monkeypatch.setenv("LISTENWELL_DATA", str(tmp_path))
    monkeypatch.setattr(module, "load_encoder", lambda *rest: pytest.fail("minutes were spent"))
    with pytest.raises(CorpusError, match="corpus download empathetic_intents"):
        ClassifierTask.prepare(recipe, CPU)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"heads": ()}, "classifier.heads is empty"),
        ({"limit": 4}, "classifier.limit is 4"),
        ({"dropout": 1.0}, "classifier.dropout"),
        ({"teacher_share": 1.5}, "classifier.teacher_share"),
        ({"leave_out": (2, 2)}, "classifier.leave_out"),
        ({"leave_out": (0, 0)}, "classifier.leave_out"),
    ],
)
def test_a_wrong_number_in_the_recipe_is_named(wrong, message):
    with pytest.raises(RecipeError, match=message):
        ClassifierRecipe(**({"heads": ("act",)} | wrong))


def test_a_text_must_fit_into_a_row(tmp_path):
    with pytest.raises(RecipeError, match=r"classifier\.limit is 128.*a row has 64.*row_tokens"):
        recipe_of(tmp_path / "run", limit=128)


@pytest.mark.parametrize(
    "file", sorted((ROOT / "recipes" / "annotators").glob("*.yaml")), ids=lambda f: f.stem
)
def test_the_recipes_in_the_repository_are_read(file):
    recipe = read_recipe(TrainRecipe, file)
    assert recipe.model == "classifier" and recipe.task.classifier
    assert set(recipe.task.classifier.heads) <= set(HEADS)
    assert set(dict(recipe.task.classifier.weights)) <= set(HEADS) and set(
        dict(recipe.task.classifier.repeat)
    ) <= set(SOURCES)
