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
        "voice": "listenwell.training.voice:VoiceTask",
        "comae": "listenwell.training.comae:ComaeTask",
        "bag": "listenwell.training.bag:BagTask",
        "ear": "listenwell.training.ears:EarTask",
        "ranker": "listenwell.training.rankers:RankTask",
        "reader": "listenwell.training.reader:ReaderTask",
    },
)
"""Name to task; a recipe's `model` takes these."""
