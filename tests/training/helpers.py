"""A corpus of invented talks and a recipe that trains the tiny model on it in a second."""

from dataclasses import replace

from listenwell.dialogue import Dialogue, Turn
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
    return replace(recipe, **changes)
