"""`listenwell train`: run a training recipe, or go on with one that was stopped."""

from pathlib import Path
from typing import Annotated

import typer

from listenwell.cli.options import Rehearsal


def train(
    recipe: Annotated[Path, typer.Argument(help="A YAML file; see recipes/.")],
    output: Annotated[Path | None, typer.Option(help="The run's folder, instead of the recipe's.")] = None,
    base: Annotated[
        str | None,
        typer.Option(
            help="The base model, instead of the recipe's: a folder or .gguf file of the Llama, Qwen or "
            "Gemma family."
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="The corpus's folder, instead of the recipe's.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The seed, instead of the recipe's.")] = None,
    limit: Rehearsal = None,
) -> None:
    """Train a model by a recipe. Stopped at any moment, the same command goes on from the last save.

    Several processes: torchrun --nproc-per-node 2 -m listenwell.training RECIPE.yaml
    """
    from dataclasses import replace

    from listenwell.recipe import read_recipe
    from listenwell.runtime.weights import base_of
    from listenwell.training.recipe import TrainRecipe
    from listenwell.training.run import train as run

    settings = read_recipe(TrainRecipe, recipe)
    if base:
        settings = replace(settings, base=base_of(base), weights=None)
    chosen = replace(settings.data, path=data or settings.data.path, limit=limit or settings.data.limit)
    drawn = settings.seed if seed is None else seed
    folder = run(replace(settings, output=output or settings.output, seed=drawn, data=chosen))
    typer.echo(f"The best checkpoint is {folder / 'best'}; its figures are in {folder / 'result.json'}.")
