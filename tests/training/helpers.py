"""A corpus of invented talks, a recipe that trains the tiny model on it in a second, and runs broken off."""

import json
from dataclasses import fields, replace

import pytest
import torch
from safetensors.torch import load_file

from listenwell.dialogue import Dialogue, Turn
from listenwell.errors import InputError
from listenwell.training import TASK_CONFIGS
from listenwell.training.loop import Trainer
from listenwell.training.recipe import BatchRecipe, DataRecipe, OptimizerRecipe, TrainRecipe

THINGS = ["dog", "cat", "job", "car", "sister", "city", "garden", "exam", "trip", "friend", "house", "song"]
FEELINGS = ["happy", "sad", "afraid", "proud", "lonely"]


def talks(count):
    for number in range(count):
        thing, feeling = THINGS[number % len(THINGS)], FEELINGS[number % len(FEELINGS)]
        turns = [
            Turn("speaker", f"My {thing} made me feel {feeling} today."),
            Turn("listener", f"What happened to your {thing}?"),
            Turn("speaker", f"It is a long story about number {number}."),
            Turn("listener", f"I am so {feeling} for you!"),
        ]
        yield Dialogue(tuple(turns[: 2 + 2 * (number % 2)]), f"talk-{number}")


def write_corpus(folder, train=24, valid=8, test=6):
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", train), ("valid", valid), ("test", test)):
        lines = [dialogue.to_json() for dialogue in talks(count)]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def with_changes(recipe, **changes):
    """The recipe with other settings, those of its task too; a new task keeps the settings that it has."""
    own = {field.name for field in fields(TrainRecipe)}
    config = TASK_CONFIGS.load(changes.get("model", recipe.model))
    before = {field.name: getattr(recipe.task, field.name) for field in fields(recipe.task)}
    settings = before | {name: value for name, value in changes.items() if name not in own}
    task = config(**{field.name: settings[field.name] for field in fields(config) if field.name in settings})
    return replace(recipe, **{name: value for name, value in changes.items() if name in own}, task=task)


def tiny_recipe(output, corpus, weights, **changes):
    recipe = TrainRecipe(
        output=output,
        weights=weights,
        epochs=3,
        patience=99,
        dropout=0.1,
        data=DataRecipe(corpus="jsonl", path=corpus, test="test"),
        batches=BatchRecipe("packed", 1024, 256),
        optimizer=OptimizerRecipe(learning_rate=5e-3),
    )
    return with_changes(recipe, **changes)


def resumed_at(recipe, folder, task, monkeypatch, measuring):
    """The step from which a run goes on that broke off; it must end with the bits of an unbroken one.

    Args:
        recipe: of the unbroken run.
        folder: where the broken run writes.
        task: the recipe's task.
        monkeypatch: lets the measuring of this number, from 1, fail.
        measuring: the number.
    """
    broken = replace(recipe, output=folder)
    Trainer(recipe).run()
    measure, calls = task.measure, []

    def fails_once(self, split):
        calls.append(split)
        if len(calls) == measuring:
            raise InputError("Broken.", "Off.")
        return measure(self, split)

    monkeypatch.setattr(task, "measure", fails_once)
    with pytest.raises(InputError, match="Broken"):
        Trainer(broken).run()
    Trainer(broken).run()
    runs = (recipe.output, folder)
    first, second = (load_file(run / "last" / "training.safetensors") for run in runs)
    assert first.keys() == second.keys()
    assert all(torch.equal(value, second[name]) for name, value in first.items())
    figures = [json.loads((run / "best" / "metrics.json").read_text()) for run in runs]
    assert figures[0] == figures[1]
    events = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    (step,) = [event["step"] for event in events if event.get("event") == "resumed"]
    return step
