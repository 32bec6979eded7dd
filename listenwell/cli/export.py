"""`listenwell export`: a trained generator as an ordinary model for other engines."""

from pathlib import Path
from typing import Annotated, Literal

import typer


def export(
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="The folder (hf) or file (gguf) to write.")
    ],
    to: Annotated[
        Literal["hf", "gguf"],
        typer.Option(help="hf: a Hugging Face folder; gguf: a file for llama.cpp and Ollama."),
    ],
    weights: Annotated[
        Path | None, typer.Option(help="A run or one of its checkpoints (default: the shipped generator).")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing target.")] = False,
) -> None:
    """Export a generator, with its adapter merged, for other engines.

    The model generates its plan as special tokens before the reply; engines leave these out of the text.

    Example: listenwell export generator --to hf --weights runs/planned
    """
    from listenwell.checkpoint import find_checkpoint, open_checkpoint
    from listenwell.errors import CheckpointError, InputError
    from listenwell.export import merged, write_gguf, write_hugging_face
    from listenwell.generators.planned import KIND, SHIPPED
    from listenwell.generators.vanilla import KIND as CAUSAL

    if target.exists() and not overwrite:
        raise InputError(f"{target} exists already.", "Name another target, or give --overwrite.")
    saved = open_checkpoint(find_checkpoint(weights or SHIPPED))
    if saved.kind not in (KIND, CAUSAL):
        raise CheckpointError(
            f"{saved.folder} holds a {saved.kind!r}, no generator.", "Name the folder of a generator."
        )
    model = merged(saved)
    if to == "hf":
        write_hugging_face(model, target)
    else:
        write_gguf(model, target, f"listenwell {saved.kind}")
    typer.echo(f"Written to {target}.")
