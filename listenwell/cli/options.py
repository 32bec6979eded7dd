"""Options that several commands share, each described once."""

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[
    str,
    typer.Option(
        help="Who answers: planned, prompted, retrieval (from a --pool), or comae or vanilla with --weights."
    ),
]
Recipe = Annotated[Path | None, typer.Option(help="A YAML file with the model's settings.")]
Weights = Annotated[
    Path | None,
    typer.Option(help="Your own folder with weights: a base model's, a .gguf file, or a trained checkpoint."),
]
Pool = Annotated[
    str | None,
    typer.Option(help="With --model retrieval, replies to choose from: a file, a corpus, or CORPUS:SPLIT."),
]
Candidates = Annotated[
    int | None,
    typer.Option(min=1, help="How many replies to propose; of several, the listener's judges choose."),
]
Plans = Annotated[
    int | None, typer.Option(min=1, help="With the model planned: how many different plans to word.")
]
Emotion = Annotated[
    str | None, typer.Option(help="Take the person to feel this, such as sad, whatever was heard.")
]
Mechanisms = Annotated[
    list[str] | None,
    typer.Option(
        "--mechanism",
        help="Steer: emotional_reaction (ER), interpretation (IP), exploration (EX), or none; repeatable.",
    ),
]
Act = Annotated[str | None, typer.Option(help="Steer: what the reply does, such as questioning.")]
Tone = Annotated[str | None, typer.Option(help="Steer: the emotion it expresses, such as caring.")]
Precision = Annotated[
    str | None, typer.Option(help="int8 (the default), or fp32: exact, at twice the time and memory.")
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        help="Switch a part off: understand, plan, choose, voice, or a judge such as reader; repeatable."
    ),
]
Seed = Annotated[int | None, typer.Option(min=0, help="The same seed gives the same reply.")]
PersonaLines = Annotated[
    list[str] | None,
    typer.Option("--persona-line", help="A sentence about the listener, in the first person; repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
