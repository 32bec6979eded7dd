"""A whole run: train, take the best checkpoint, measure the test split once, write the result."""

from pathlib import Path
from typing import Any

from listenwell.files import hash_files
from listenwell.results.metric_registry import units
from listenwell.results.store import Result, environment, write_result
from listenwell.training.loop import Trainer
from listenwell.training.recipe import TrainRecipe


def train(recipe: TrainRecipe) -> Path:
    """Run a recipe to its end; returns the run's folder, which holds best/ and result.json."""
    trainer = Trainer(recipe)
    valid = trainer.run()
    data = recipe.data
    if trainer.processes.is_first:
        best = trainer.best()
        results = {data.valid: valid}
        if data.test:
            trainer.task.load(best.folder)
            results[data.test] = trainer.measure(data.test)
        split = data.test or data.valid
        task = trainer.task
        metrics = {name: value for name, value in results[split].items() if name != task.counted}
        metrics["train_tokens_per_second"] = trainer.progress.tokens / max(1e-9, trainer.progress.seconds)
        metrics["train_seconds"] = trainer.progress.seconds
        metrics |= {f"valid_{name}": value for name, value in valid.items() if name == recipe.metric}
        surroundings: dict[str, Any] = environment()
        result = Result(
            task=task.table,
            system=recipe.output.name,
            metrics=tuple(metrics.items()),
            corpus=task.corpus,
            split=split,
            count=int(results[split][task.counted]),
            data=hash_files(task.data_files()),
            units=units(tuple(metrics)),
            conditions=tuple(_conditions(recipe, trainer).items()),
            seed=recipe.seed,
            checkpoint=hash_files([best.folder / name for name in best.sums]),
            **surroundings,
        )
        write_result(result, recipe.output / "result.json")
    trainer.processes.wait()
    trainer.processes.leave()
    return recipe.output


def _conditions(recipe: TrainRecipe, trainer: Trainer) -> dict[str, str]:
    """What a reader must know to compare the figures."""
    return {
        "model": recipe.model,
        "base": recipe.base_name,
        "limit": f"{data.limit} dialogues (or replies, of rankers) a split"
        if (data := recipe.data).limit
        else "none",
        "longest training sequence": f"{recipe.batches.row_tokens} tokens",
        "chosen by": f"{recipe.metric} on {recipe.data.valid}",
        "tuning": f"LoRA of rank {recipe.lora.rank}" if recipe.lora else "full fine-tuning",
        "batches": f"{recipe.batches.batching}, {recipe.batches.tokens:,} tokens a step",
        "dropout": f"{recipe.dropout:g}",
        "precision": recipe.precision,
        "epochs": f"{recipe.epochs:g}, best of validations every {recipe.validate_every:g}",
        "learning rate": f"{recipe.optimizer.learning_rate:g}, {recipe.optimizer.decay}",
        "count": trainer.task.counted,
        "steps": str(trainer.progress.steps),
        **trainer.task.conditions(),
    }
