import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from listenwell.annotators.inference import classify
from listenwell.annotators.model import load_classifier, with_temperatures
from listenwell.annotators.sources import SOURCES
from listenwell.annotators.views import encode_views
from listenwell.errors import CheckpointError, RecipeError
from listenwell.labels import ACTS
from listenwell.training import classifier as classifiers
from listenwell.training.loop import Trainer
from listenwell.training.recipe import BatchRecipe, LoraRecipe
from listenwell.training.run import train
from tests.tiny import keep_ear, tiny_ear
from tests.training.classifier_helpers import ACT_TEXTS, loss_of, recipe_of, task_of, teacher

pytestmark = pytest.mark.usefixtures("samples", "installed_encoder")
WISHING = ACTS.index("wishing")


def test_teachers_are_mixed_with_what_is_known(tmp_path, installed_encoder):
    # The first gives wishing 4/12 and the others 1/12 each; the second, at temperature 2, wishing 3/11.
    one = teacher(tmp_path / "one", installed_encoder, {"act": {"wishing": np.log(4)}})
    two = teacher(tmp_path / "two", installed_encoder, {"act": {"wishing": 2 * np.log(3)}}, 2.0)
    plain = task_of(tmp_path).examples()
    taught = task_of(tmp_path, teachers=(one, two), teacher_share=0.25).examples()
    think = np.full(9, (1 / 12 + 1 / 11) / 2)
    think[WISHING] = (4 / 12 + 3 / 11) / 2
    assert len(taught) == ACT_TEXTS
    for before, after in zip(plain, taught, strict=True):
        np.testing.assert_allclose(
            after.targets["act"], 0.75 * before.targets["act"] + 0.25 * think, rtol=2e-3
        )
        assert after.targets["act"].sum() == pytest.approx(1, abs=1e-4)
        assert after.targets["act"].dtype == np.float32
    alone = task_of(tmp_path, teachers=(one,), teacher_share=1.0).examples()
    assert alone[0].targets["act"][WISHING] == pytest.approx(4 / 12, rel=2e-3)


def test_teachers_speak_of_other_texts_only_where_that_is_asked_for(tmp_path, installed_encoder):
    one = teacher(
        tmp_path / "one", installed_encoder, {"act": {"wishing": np.log(4)}, "expressed_emotion": {}}
    )
    narrow = task_of(tmp_path, "act", "expressed_emotion", teachers=(one,))
    assert [set(piece.targets) for piece in narrow.examples()] == [{"act"}] * 10 + [{"expressed_emotion"}] * 3
    wide = task_of(tmp_path, "act", "expressed_emotion", teachers=(one,), spread=True)
    assert all(set(piece.targets) == {"act", "expressed_emotion"} for piece in wide.examples())
    # Of a text without a label the teachers alone speak.
    np.testing.assert_allclose(wide.examples()[0].targets["expressed_emotion"], np.full(10, 0.1), rtol=2e-3)
    assert wide.examples()[-1].targets["act"][WISHING] == pytest.approx(4 / 12, rel=2e-3)
    assert task_of(tmp_path, "act", teachers=(one,)).conditions()["teachers"] == "1, 0.5 of the target"


def in_part(group, number, parts):
    return int(hashlib.sha256(group.encode()).hexdigest()[:8], 16) % parts == number


def test_a_part_is_left_out_by_dialogues_and_each_falls_into_one(tmp_path):
    contexts = list(SOURCES["contexts"].read("train"))
    every = len(task_of(tmp_path, "emotion").examples())
    left = []
    for part in range(3):
        task = task_of(tmp_path, "emotion", leave_out=(part, 3))
        left.append(every - len(task.examples()))
        kept = [item.view for item in contexts if not in_part(item.group, part, 3)]
        tokens = [piece.tokens.tolist() for piece in task.examples()]
        wanted = encode_views(task.vocabulary, kept, 64)
        assert all(given.tokens.tolist() in tokens for given in wanted)
        assert len(tokens) == len(kept) + sum(
            not in_part(item.group, part, 3) for item in SOURCES["situations"].read("train")
        )
        task.measure("valid")  # what is measured is whole
    assert sum(left) == every and max(left) < every


def test_a_teacher_that_left_out_a_part_speaks_for_it_alone(tmp_path, installed_encoder):
    groups = [item.group for item in SOURCES["acts"].read("train")]
    fair = [in_part(group, 0, 2) for group in groups]
    assert 0 < sum(fair) < ACT_TEXTS
    one = teacher(tmp_path / "one", installed_encoder, {"act": {"wishing": np.log(4)}}, leave_out=(0, 2))
    pieces = task_of(tmp_path, teachers=(one,), teacher_share=0.5).examples()
    softened = [piece.targets["act"].max() < 0.99 for piece in pieces]
    assert softened == fair


@pytest.mark.parametrize("lora", [LoraRecipe(rank=2, alpha=4), None])
def test_a_run_can_begin_from_a_trained_ear(tmp_path, installed_encoder, lora):
    trained = tiny_ear(installed_encoder, ["act", "expressed_emotion"], lora=False)
    with_temperatures(trained, {"act": 1.5, "expressed_emotion": 2.0})
    folder = keep_ear(trained, tmp_path / "trained")
    if lora:
        with pytest.raises(RecipeError, match=r"has no adapter.*lora"):
            task_of(tmp_path, "act", start=folder, changes={"lora": lora})
        folder = keep_ear(
            tiny_ear(installed_encoder, ["act", "expressed_emotion"], lora=True), tmp_path / "adapted"
        )
        lora = LoraRecipe(rank=4, alpha=8)  # that of the trained one
    first, _ = load_classifier(folder)
    task = task_of(tmp_path, "act", "emotion", start=folder, changes={"lora": lora})
    given = encode_views(task.vocabulary, [(("So true.", False),)], 64)
    prefix, wanted = (classify(one, given).logits("act") for one in (task.model.eval(), first))
    np.testing.assert_allclose(prefix, wanted, atol=0.02)
    assert set(dict(task.model.config.temperatures)) <= {"act"}
    other = keep_ear(tiny_ear(installed_encoder, ["act"], pooling="first"), tmp_path / "other")
    with pytest.raises(RecipeError, match="another base or pooling"):
        task_of(tmp_path, "act", start=other)


def test_some_heads_can_learn_alone(tmp_path, installed_encoder):
    trained = keep_ear(
        tiny_ear(installed_encoder, ["act", "expressed_emotion"], lora=True), tmp_path / "trained"
    )
    changes = {"lora": LoraRecipe(rank=4, alpha=8, dropout=0.0), "epochs": 3}
    recipe = recipe_of(
        tmp_path / "run", "act", "expressed_emotion", start=trained, only=("act",), changes=changes
    )
    trainer = Trainer(recipe)
    learning = {name for name, p in trainer.task.model.named_parameters() if p.requires_grad}
    assert learning == {"heads.act.weight", "heads.act.bias"}
    assert len(trainer.task.examples()) == ACT_TEXTS  # expressed emotions are not read at all
    kept = load_file(trained / "adapter_model.safetensors")
    train(recipe)
    after = load_file(recipe.output / "best" / "adapter_model.safetensors")
    assert kept.keys() == after.keys() and all(torch.equal(kept[name], after[name]) for name in kept)
    before, heads = (load_file(f / "heads.safetensors") for f in (trained, recipe.output / "best"))
    assert torch.equal(before["heads.expressed_emotion.weight"], heads["heads.expressed_emotion.weight"])
    assert not torch.equal(before["heads.act.weight"], heads["heads.act.weight"])


def test_where_only_heads_learn_the_encoder_is_run_once(tmp_path, installed_encoder, monkeypatch):
    trained = keep_ear(tiny_ear(installed_encoder, ["act"]), tmp_path / "trained")
    whole = task_of(tmp_path, "act", start=trained)
    heads = task_of(tmp_path, "act", start=trained, only=("act",))
    batches = BatchRecipe("packed", 128, 64)
    wanted = loss_of(whole, batches)
    heads.examples()  # here it is run
    monkeypatch.setattr(heads.model, "states", lambda *rest: pytest.fail("the encoder was run again"))
    assert loss_of(heads, batches) == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("missing", [{"teachers": (Path("nowhere"),)}, {"start": Path("nowhere")}])
def test_a_teacher_or_beginning_that_is_not_there_is_named_at_once(tmp_path, monkeypatch, missing):
    monkeypatch.setattr(classifiers, "load_encoder", lambda *rest: pytest.fail("minutes were spent"))
    with pytest.raises(CheckpointError, match=r"nowhere is not a listenwell checkpoint.*Name a folder"):
        task_of(tmp_path, "act", **missing)
