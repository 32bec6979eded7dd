"""Rankers over the tiny encoder, with opinions of their own, and talks to ask them about."""

import torch

from listenwell import checkpoint
from listenwell.dialogue import Dialogue, Persona, Turn
from listenwell.rankers.config import CobertSettings, RankerConfig
from listenwell.rankers.inputs import Inputs
from listenwell.rankers.model import KIND, make_ranker, save_ranker
from listenwell.runtime.text import Vocabulary

SHORT = {"context_tokens": 24, "persona_tokens": 24, "reply_tokens": 16}
"""Three texts of such lengths have room in the tiny encoder, one after the other too."""
TALKS = [
    Dialogue((Turn("a", "my dog died"), Turn("b", "so sorry"), Turn("a", "i am sad")), listener="b"),
    Dialogue(
        (Turn("a", "i got the new job"),),
        listener="b",
        personas=(Persona("b", ("i am happy", "my dog is great")),),
    ),
    Dialogue((Turn("b", "what happened ?"), Turn("a", "good luck to you")), listener="b"),
]
REPLIES = [
    "so sorry to hear that",
    "good luck !",
    "what happened to my dog ?",
    "great",
    "so sorry to hear that",
]


def tiny_ranker(encoder, model="cobert", lora=False, seed=1, **config):
    """A ranker whose own weights, and adapter, are random; and its inputs."""
    settings = RankerConfig(**({"model": model} | SHORT | config))
    torch.manual_seed(seed)
    ranker, folder = make_ranker(settings, encoder)
    if lora:
        from listenwell.training.adapters import add_lora
        from listenwell.training.recipe import LoraRecipe

        ranker.backbone.encoder = add_lora(
            ranker.backbone.encoder, LoraRecipe(4, 8, 0.0), settings.base, "FEATURE_EXTRACTION"
        )
    with torch.no_grad():
        for name, parameter in ranker.named_parameters():
            if "lora_" in name or (not lora and parameter.ndim > 1):
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return ranker.eval(), Inputs(Vocabulary.from_folder(folder), settings)


def keep_ranker(ranker, folder):
    """The ranker as a checkpoint."""
    with checkpoint.writing(folder, KIND) as place:
        save_ranker(ranker, place)
    return folder


def ship_tiny(encoder, folder, monkeypatch):
    """A tiny ranker instead of the shipped one."""
    ranker = tiny_ranker(encoder, cobert=CobertSettings(vectors=0.5))[0]
    monkeypatch.setattr("listenwell.rankers.ranker.SHIPPED", keep_ranker(ranker, folder / "tiny shipped"))


def texts(inputs, talks=TALKS, replies=REPLIES):
    return inputs.contexts(talks), inputs.personas(talks), inputs.replies(replies)
