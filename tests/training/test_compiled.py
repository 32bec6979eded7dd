"""Compiling for training: only where every row has one shape."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from listenwell.recipe import read_recipe
from listenwell.training.compiled import Functions, compiled
from listenwell.training.recipe import TrainRecipe

ROOT = Path(__file__).parents[2]


def first() -> None:
    """Tokens to hidden states."""


def second() -> None:
    """Hidden states to losses."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, bool]]:
    """What is asked of the compiler, which gives back what it got."""
    calls: list[tuple[object, bool]] = []

    def compile_(function: object, dynamic: bool) -> object:
        calls.append((function, dynamic))
        return function

    monkeypatch.setattr(torch, "compile", compile_)
    return calls


@pytest.mark.parametrize(
    ("batching", "wished", "device", "is_compiled"),
    [
        ("packed", True, "cuda", True),
        ("bucketed", True, "cuda", False),
        ("packed", False, "cuda", False),
        ("packed", True, "cpu", False),
    ],
)
def test_only_packed_rows_on_a_gpu_are_compiled(
    asked: list[tuple[object, bool]], batching: str, wished: bool, device: str, is_compiled: bool
) -> None:
    plain: Functions = (first, second)
    recipe = read_recipe(TrainRecipe, ROOT / "recipes" / "generator" / "soft_prompt.yaml")
    recipe = replace(recipe, compile=wished, batches=replace(recipe.batches, batching=batching))
    assert compiled(plain, recipe, torch.device(device)) == plain
    assert asked == ([(first, False), (second, True)] if is_compiled else [])
