"""Rankers that begin from trained ones."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from listenwell.errors import CheckpointError, RecipeError
from listenwell.rankers.inference import score
from listenwell.training.recipe import LoraRecipe
from listenwell.training.task_configs import PairsRecipe
from tests.rankers.tiny_rankers import keep_ranker, tiny_ranker
from tests.training.rank_helpers import talks, task_of

pytestmark = pytest.mark.usefixtures("installed_encoder")


def started(tmp_path, trained, **given):
    """The task that begins from a trained ranker, and where that is kept."""
    folder = keep_ranker(trained, tmp_path / "start")
    return task_of(tmp_path, pairs=PairsRecipe((("jsonl", 0),), start=folder), **given), folder


def test_it_can_begin_from_a_trained_one_of_another_kind(tmp_path, tiny_encoder):
    trained, _ = tiny_ranker(tiny_encoder, "bi")
    task, folder = started(tmp_path, trained, ranker={"model": "poly"})
    plain = task_of(tmp_path, {"model": "poly"})
    for name, value in trained.state_dict().items():
        assert torch.equal(task.model.state_dict()[name], value.half().float()), name
    assert task.model.codes.shape == plain.model.codes.shape
    assert folder / "checkpoint.json" in task.base_files
    assert folder / "checkpoint.json" not in plain.base_files
    assert task.conditions()["begins from"] == str(folder)


def test_it_can_begin_from_an_adapter(tmp_path, tiny_encoder):
    trained, inputs = tiny_ranker(tiny_encoder, "bi", lora=True)
    talk, *_ = talks(1)
    given = (inputs.contexts([talk]), inputs.personas([talk]), inputs.replies(["so sorry", "great"]))
    before = score(trained, *given)
    for lora in (LoraRecipe(4, 8, 0.0), None):  # its adapter goes on, or is merged and all weights go on
        task, _ = started(tmp_path, trained, ranker={"model": "bi"}, lora=lora)
        task.model.eval()
        np.testing.assert_allclose(score(task.model, *given), before, rtol=0.02, atol=0.02)


def test_wrong_starts_are_clear_errors(tmp_path, tiny_encoder):
    words, _ = tiny_ranker(tiny_encoder, "bi", backbone="words")
    with pytest.raises(RecipeError, match=r"another base or backbone"):
        started(tmp_path, words)
    whole, _ = tiny_ranker(tiny_encoder, "bi")
    with pytest.raises(RecipeError, match=r"has no adapter.*lora"):
        started(tmp_path, whole, lora=LoraRecipe(4, 8, 0.0))
    other, _ = tiny_ranker(tiny_encoder, "bi")
    other.config = replace(other.config, base="smollm2-135m-instruct")
    with pytest.raises(RecipeError, match=r"another base or backbone"):
        started(tmp_path, other)
    pairs = PairsRecipe((("jsonl", 0),), start=tmp_path / "none")
    with pytest.raises(CheckpointError, match="no such folder"):
        task_of(tmp_path, pairs=pairs)
