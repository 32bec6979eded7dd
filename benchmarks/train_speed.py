"""How fast the training step is: tokens a second, and the share of the device's measured matrix peak.

Runs the real loop's step on real dialogues (no validation, no saving) after a warm-up, and a large bf16
matrix product for the peak. Model operations are counted as 6 a parameter and token, and those of the
output layer only where a token counts.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import torch

from listenwell.recipe import read_recipe
from listenwell.training.batching import Epoch
from listenwell.training.loop import Trainer
from listenwell.training.recipe import TrainRecipe


def matrix_peak(device: torch.device, size: int = 8192, runs: int = 30) -> float:
    """Operations a second of a square matrix product, in bf16 on a GPU and fp32 on a CPU."""
    on_gpu = device.type == "cuda"
    size, runs = (size, runs) if on_gpu else (2048, 3)
    a = torch.randn(size, size, device=device, dtype=torch.bfloat16 if on_gpu else torch.float32)
    for _ in range(3):
        a @ a
    _wait(device)
    begin = time.perf_counter()
    for _ in range(runs):
        a @ a
    _wait(device)
    return 2 * size**3 * runs / (time.perf_counter() - begin)


def step_speed(recipe: TrainRecipe, warm_up: int, steps: int) -> dict[str, float]:
    """Tokens a second over `steps` steps."""
    trainer = Trainer(recipe)
    trainer.task.model.train()
    epoch = Epoch(trainer.task.examples(), trainer.task.collate, recipe.batches, recipe.seed, 0)
    made = [step for _, step in zip(range(warm_up + steps), epoch.steps(), strict=False)]
    for step in made[:warm_up]:
        trainer._step(step, 1e-5)
    _wait(trainer.device)
    begin = time.perf_counter()
    for step in made[warm_up:]:
        trainer._step(step, 1e-5)
    _wait(trainer.device)
    seconds = time.perf_counter() - begin
    tokens = sum(batch.size for step in made[warm_up:] for batch in step.batches)
    targets = sum(step.targets for step in made[warm_up:])
    places = sum(batch.tokens.size for step in made[warm_up:] for batch in step.batches)
    head = trainer.task.model.get_input_embeddings().weight.numel()
    body = sum(p.numel() for p in trainer.task.model.parameters()) - head
    operations = 6 * (body * tokens + head * targets) / seconds
    peak = matrix_peak(trainer.device)
    return {
        "tokens_per_second": round(tokens / seconds),
        "targets_per_second": round(targets / seconds),
        "share_of_padding": round(1 - tokens / places, 4),
        "matrix_peak_tflops": round(peak / 1e12, 2),
        "share_of_peak": round(operations / peak, 4),
        "steps": float(len(made) - warm_up),
    }


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--warm-up", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--tokens", type=int, default=None, help="tokens a step, instead of the recipe's")
    parser.add_argument("--batching", default=None)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--weights", type=Path, default=None)
    options = parser.parse_args()
    settings = read_recipe(TrainRecipe, options.recipe)
    batches = replace(
        settings.batches,
        tokens=options.tokens or settings.batches.tokens,
        batching=options.batching or settings.batches.batching,
    )
    settings = replace(
        settings,
        batches=batches,
        weights=options.weights or settings.weights,
        compile=settings.compile and not options.no_compile,
        data=replace(settings.data, limit=options.limit),
    )
    figures = step_speed(settings, options.warm_up, options.steps)
    print(
        json.dumps(
            {"batching": batches.batching, "tokens": batches.tokens, "compile": settings.compile, **figures}
        )
    )
