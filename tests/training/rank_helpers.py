"""Rankers that learn from ten invented talks in a second."""

import torch

from listenwell.dialogue import Dialogue, Persona, Turn
from listenwell.rankers.config import RankerConfig
from listenwell.training.rankers import RankingTask
from listenwell.training.recipe import BatchRecipe, DataRecipe, OptimizerRecipe, TrainRecipe
from listenwell.training.task_configs import RankingTaskConfig
from tests.rankers.tiny_rankers import SHORT
from tests.tiny import ENCODER
from tests.training.helpers import THINGS, with_changes

CPU = torch.device("cpu")
VERBS = ["found", "lost", "sold", "saw", "missed", "painted", "bought", "left", "heard", "drew", "met", "won"]


def talks(count):
    """No two replies are alike; every second one who replies has a persona."""
    for number in range(count):
        thing, verb = THINGS[number % 12], VERBS[number * 5 % 12]
        turns = (
            Turn("speaker", f"i {verb} my {thing} {number}"),
            Turn("listener", f"what {verb} {thing} {number} ?"),
        )
        known = (Persona("listener", (f"my {thing} is great", "i am happy")),) if number % 2 else ()
        yield Dialogue(turns, f"talk-{number}", known)


def write_talks(folder, **splits):
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in splits.items():
        lines = [talk.to_json() for talk in talks(count)]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def recipe_of(folder, ranker=None, counts=(10, 10, 10), **changes):
    """A recipe over talks in `folder`; the ranker's settings in a dictionary."""
    corpus = write_talks(folder / "data", **dict(zip(("train", "valid", "test"), counts, strict=True)))
    recipe = TrainRecipe(
        output=folder / "run",
        model="ranker",
        base=ENCODER,
        epochs=4,
        patience=99,
        validate_every=1,
        metric="error",
        data=DataRecipe("jsonl", corpus, test="test"),
        batches=BatchRecipe("examples", examples=5),
        optimizer=OptimizerRecipe(learning_rate=1e-2, weight_decay=0.0),
        task=RankingTaskConfig(RankerConfig(**({"model": "bi"} | SHORT | (ranker or {})))),
    )
    return with_changes(recipe, **changes)


def task_of(folder, ranker=None, **changes):
    return RankingTask.prepare(recipe_of(folder, ranker, **changes), CPU)
