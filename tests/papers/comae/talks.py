"""Invented talks whose turns carry factors, tiny models of the family, and a recipe that trains one."""

from dataclasses import replace

import torch

from listenwell.dialogue import Dialogue, Factors
from listenwell.labels import ACTS, EXPRESSED_EMOTIONS
from listenwell.papers.comae.checkpoint import make_model
from listenwell.papers.comae.config import ComaeConfig
from listenwell.papers.comae.inputs import Inputs
from listenwell.runtime.text import Vocabulary
from listenwell.training.recipe import DataRecipe
from tests.training.helpers import talks, tiny_recipe, with_changes

CPU = torch.device("cpu")
FAMILY = [
    ComaeConfig(factors=factors, hierarchical=hierarchical)
    for factors, hierarchical in (
        ((), True),
        (("mechanisms",), True),
        (("act",), True),
        (("expressed_emotion",), True),
        (("mechanisms", "act"), False),
        (("mechanisms", "expressed_emotion"), False),
        (("act", "expressed_emotion"), False),
        (("mechanisms", "act", "expressed_emotion"), False),
        (("mechanisms", "act"), True),
        (("mechanisms", "expressed_emotion"), True),
        (("act", "expressed_emotion"), True),
        (("mechanisms", "act", "expressed_emotion"), True),
    )
]
"""The twelve models of CoMAE's Table 2."""


def told(dialogue, number=0):
    """The dialogue with factors on every turn; a reply's follow from its words."""
    turns = []
    for place, turn in enumerate(dialogue.turns):
        asks = turn.text.endswith("?")
        act = "questioning" if asks else ACTS[(number + place) % len(ACTS)]
        factors = Factors(
            act=act, expressed_emotion=EXPRESSED_EMOTIONS[(number + place) % len(EXPRESSED_EMOTIONS)]
        )
        if turn.speaker == dialogue.listener:
            mechanisms = ("exploration",) if asks else ("emotional_reaction",)
            factors = replace(factors, mechanisms=mechanisms)
        turns.append(replace(turn, factors=factors))
    return replace(dialogue, turns=tuple(turns))


def told_talks(count):
    return [told(dialogue, number) for number, dialogue in enumerate(talks(count))]


def told_examples(count):
    return [example for dialogue in told_talks(count) for example in dialogue.examples()]


def write_told(folder, train=12, valid=6, test=6):
    """An annotated corpus as `listenwell annotate` leaves it: FOLDER/jsonl/SPLIT.jsonl."""
    (folder / "jsonl").mkdir(parents=True, exist_ok=True)
    for split, count in (("train", train), ("valid", valid), ("test", test)):
        lines = [dialogue.to_json() for dialogue in told_talks(count)]
        (folder / "jsonl" / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def told_recipe(output, folder, weights, **changes):
    recipe = tiny_recipe(output, None, weights, model="comae", dropout=0.0)
    recipe = replace(recipe, data=DataRecipe(corpus="jsonl", annotated=folder, test="test"))
    return with_changes(recipe, **changes)


def tiny_comae(weights, seed=1, loud=False, **settings):
    """A model of the family on a tiny Llama, and what makes its inputs.

    Args:
        weights: the Llama's folder.
        seed: of the new parts.
        loud: the new parts are large, so that each of them moves every figure.
        settings: of its config.
    """
    torch.manual_seed(seed)
    config = ComaeConfig(**settings)
    model, folder = make_model(config, weights)
    if loud:
        for name, parameter in model.named_parameters():
            if not name.startswith("decoder."):
                torch.nn.init.normal_(parameter, std=0.3)
    return model.eval(), Inputs(Vocabulary.from_folder(folder), config)


def first_turns(dialogue, count):
    return Dialogue(dialogue.turns[:count], dialogue.id)
