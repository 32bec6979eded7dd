"""Options that the verbs of `listenwell evaluate` share, and the folders for their results."""

from pathlib import Path
from typing import Annotated

import typer

from listenwell.files import slug

Model = Annotated[
    str, typer.Argument(help="The generator: planned, prompted, or comae or vanilla with --weights.")
]
Corpus = Annotated[str, typer.Option(help="The corpus of the contexts.")]
Split = Annotated[str, typer.Option(help="The split of the corpus.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Use a sample of this size, drawn with the seed.")]
Seed = Annotated[int, typer.Option(min=0, help="The seed of the sample and of the replies.")]
Out = Annotated[Path | None, typer.Option(help="The folder for the result; otherwise under runs/evaluate.")]
Keep = Annotated[
    Path | None,
    typer.Option(help="Write a copy here too, as TASK-SYSTEM.json; such as results."),
]
Where = Annotated[
    Path | None,
    typer.Option("--path", help="The folder of the corpus; otherwise searched under LISTENWELL_DATA."),
]
AnnotatedFolder = Annotated[
    Path | None,
    typer.Option(
        "--annotated", help="For gold factors: the folder with NAME/SPLIT.jsonl of `listenwell annotate`."
    ),
]
Table = Annotated[str | None, typer.Option(help="The table of the row, where it is not the usual one.")]
Workers = Annotated[int, typer.Option(min=1, help="Processes that share the work, and a GPU.")]


def result_folder(system: str, corpus: str, split: str) -> Path:
    """The default folder for a result; different evaluations never share one."""
    return Path("runs") / "evaluate" / f"{slug(system)}-{corpus}-{split}"
