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
        "preference": "listenwell.training.preference:PreferenceTask",
        "soft_prompt": "listenwell.training.soft_prompt:SoftPromptTask",
        "comae": "listenwell.papers.comae.training:ComaeTask",
        "fasttext": "listenwell.training.fasttext:FastTextTask",
        "classifier": "listenwell.training.classifier:ClassifierTask",
        "ranker": "listenwell.training.rankers:RankTask",
        "pairwise": "listenwell.training.pairwise:PairwiseTask",
    },
    aliases={"preferred": "preference", "voice": "soft_prompt", "bag": "fasttext", "ear": "classifier"},
)
"""Name to task; a recipe's `model` takes these."""
