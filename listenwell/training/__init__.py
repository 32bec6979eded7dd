"""The one loop that trains every model: data order, step, validate, save, resume.

Imports nothing but torch, transformers, peft, safetensors, numpy and the standard library (and what these
bring along), so that it runs on a bare GPU machine: `python -m listenwell.training RECIPE.yaml`.
"""

from typing import TYPE_CHECKING

from listenwell.registry import Registry

if TYPE_CHECKING:
    from listenwell.training.recipe import TaskConfig
    from listenwell.training.task import Task

_CONFIGS = "listenwell.training.task_configs"
_ALIASES = {"preferred": "preference", "voice": "soft_prompt", "bag": "fasttext", "ear": "classifier"}

TASKS: "Registry[type[Task]]" = Registry(
    "trainable model",
    {
        "vanilla": "listenwell.training.causal:CausalTask",
        "planned": "listenwell.training.planned:PlannedTask",
        "preference": "listenwell.training.preference:PreferenceTask",
        "soft_prompt": "listenwell.training.preference:PreferenceTask",
        "reward": "listenwell.preference.reward_training:RewardTask",
        "comae": "listenwell.papers.comae.training:ComaeTask",
        "fasttext": "listenwell.training.fasttext:FastTextTask",
        "classifier": "listenwell.training.classifier:ClassifierTask",
        "ranker": "listenwell.training.rankers:RankingTask",
    },
    aliases=_ALIASES,
)
"""Name to task; a recipe's `model` takes these."""

TASK_CONFIGS: "Registry[type[TaskConfig]]" = Registry(
    "trainable model",
    {
        "vanilla": f"{_CONFIGS}:CausalTaskConfig",
        "planned": f"{_CONFIGS}:PlannedTaskConfig",
        "preference": f"{_CONFIGS}:PreferenceTaskConfig",
        "soft_prompt": f"{_CONFIGS}:SoftPromptTaskConfig",
        "reward": f"{_CONFIGS}:RewardTaskConfig",
        "comae": "listenwell.papers.comae.config:ComaeTaskConfig",
        "fasttext": f"{_CONFIGS}:FastTextTaskConfig",
        "classifier": f"{_CONFIGS}:ClassifierTaskConfig",
        "ranker": f"{_CONFIGS}:RankingTaskConfig",
    },
    aliases=_ALIASES,
)
"""Name to the dataclass of the task's own settings, which imports no torch."""
