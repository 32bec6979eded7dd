"""The one loop that trains every model: data order, step, validate, save, resume.

Imports nothing but torch, transformers, peft, safetensors, numpy and the standard library (and what these
bring along), so that it runs on a bare GPU machine: `python -m listenwell.training RECIPE.yaml`.
"""

from typing import TYPE_CHECKING

from listenwell.registry import Registry

if TYPE_CHECKING:
    from listenwell.training.task import Task

TASKS: "Registry[type[Task]]" = Registry(
    "trainable model",
    {
        "vanilla": "listenwell.training.causal:CausalTask",
        "planned": "listenwell.training.planned:PlannedTask",
        "preferred": "listenwell.training.preference:PreferenceTask",
        "voice": "listenwell.training.soft_prompt:VoiceTask",
        "comae": "listenwell.papers.comae.training:ComaeTask",
        "bag": "listenwell.training.fasttext:BagTask",
        "ear": "listenwell.training.classifier:EarTask",
        "ranker": "listenwell.training.rankers:RankTask",
        "reader": "listenwell.training.pairwise:ReaderTask",
    },
)
"""Name to task; a recipe's `model` takes these."""
