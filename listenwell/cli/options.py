"""Options that several commands share, each described once."""

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[
    str,
    typer.Option(
        help="The generator: planned, prompted, retrieval (needs --pool), comae or vanilla (need --weights)."
    ),
]
Recipe = Annotated[Path | None, typer.Option(help="A YAML file with the generator's settings.")]
Weights = Annotated[
    Path | None,
    typer.Option(help="A folder with base weights or a trained checkpoint, or a .gguf file."),
]
Pool = Annotated[
    str | None,
    typer.Option(help="With --model retrieval: the pool of replies, as a file, a corpus, or CORPUS:SPLIT."),
]
Candidates = Annotated[
    int | None,
    typer.Option(min=1, help="How many candidates to generate; the reranker orders them."),
]
Plans = Annotated[
    int | None,
    typer.Option(min=1, help="With --model planned: how many different plans to generate replies for."),
]
Emotion = Annotated[
    str | None, typer.Option(help="The user's emotion, such as sad, instead of the predicted one.")
]
Mechanisms = Annotated[
    list[str] | None,
    typer.Option(
        "--mechanisms",
        help="Communication mechanism: emotional_reaction (ER), interpretation (IP), exploration (EX), or "
        "none; repeatable.",
    ),
]
Act = Annotated[str | None, typer.Option(help="Dialogue act of the reply, such as questioning.")]
Tone = Annotated[str | None, typer.Option(help="Emotion that the reply expresses, such as caring.")]
Precision = Annotated[
    str | None, typer.Option(help="int8 (default), or fp32: exact, at twice the time and memory.")
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        help="Disable a stage (understand, plan, rerank, guard), soft_prompt, or a reranking feature such as "
        "reward; repeatable."
    ),
]
Seed = Annotated[int | None, typer.Option(min=0, help="The same seed gives the same reply.")]
PersonaLines = Annotated[
    list[str] | None,
    typer.Option("--persona", help="A sentence about the listener, in the first person; repeatable."),
]
OldMechanisms = Annotated[list[str] | None, typer.Option("--mechanism", hidden=True)]
OldPersonaLines = Annotated[list[str] | None, typer.Option("--persona-line", hidden=True)]
"""Names of earlier versions, still accepted."""
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
