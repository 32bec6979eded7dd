"""Pairs of good and dull replies, a tiny planned generator, and a recipe that goes on from it."""

from dataclasses import replace

from listenwell.generators.plans import plan_of
from listenwell.training.loop import Trainer
from listenwell.training.preference_pairs import Pair
from listenwell.training.recipe import LoraRecipe, OptimizerRecipe
from listenwell.training.task_configs import PairsRecipe, PreferenceRecipe
from tests.training.helpers import tiny_recipe, with_changes
from tests.training.test_planned import annotated

LORA = LoraRecipe(rank=4, alpha=8, dropout=0.0)
HELD_OUT = 0.3


def pairs():
    """Each reply against a dull one, `own`, and against one about something else, `other`."""
    for talk in annotated(24):
        for example in talk.examples():
            context = example.context
            for source, worse in (("own", "Oh no, that is sad."), ("other", "How did it go?")):
                yield Pair(context, plan_of(example), example.reply.text, worse, source)


def make_home(folder, llama):
    """A corpus, pairs, and a planned generator, in a folder that is there."""
    (folder / "data").mkdir()
    for split, count in (("train", 24), ("valid", 8), ("test", 6)):
        lines = [dialogue.to_json() for dialogue in annotated(count)]
        (folder / "data" / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "pairs.jsonl").write_text("\n".join(pair.to_json() for pair in pairs()) + "\n")
    start = tiny_recipe(folder / "start", folder / "data", llama, model="planned", lora=LORA)
    fast = {"optimizer": OptimizerRecipe(2e-2), "dropout": 0.0, "epochs": 25, "validate_every": 25}
    Trainer(replace(start, **fast)).run()
    return folder


def preference_recipe(output, home, llama, model="preference"):
    """To go on from that generator with those pairs."""
    return tiny_recipe(
        output,
        home / "data",
        llama,
        model=model,
        lora=LORA,
        dropout=0.0,
        metric="preference_loss",
        pairs=PairsRecipe((("jsonl", 0),), start=home / "start" / "best"),
        preference=PreferenceRecipe(home / "pairs.jsonl", held_out=HELD_OUT),
    )


def changed(recipe, **changes):
    """The same with other settings of preferences."""
    return with_changes(recipe, preference=replace(recipe.task.preference, **changes))
