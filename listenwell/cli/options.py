"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from listenwell.errors import InputError
from listenwell.generators import DEFAULT, INSTRUCTED

Model = Annotated[
    str,
    typer.Option(
        help="The model: planned, prompted, retrieval (with --pool), instructed (see --base), or comae or "
        "vanilla (with --weights)."
    ),
]
Recipe = Annotated[Path | None, typer.Option(help="A YAML file with the generator's settings.")]
Weights = Annotated[
    Path | None,
    typer.Option(help="Your own weights: a base model's folder, a .gguf file, or a trained checkpoint."),
]
Base = Annotated[
    Path | None,
    typer.Option(
        help="A larger instruct model of yours instead, told how to listen: a folder or .gguf file of the "
        "Llama, Qwen or Gemma family."
    ),
]
Pool = Annotated[
    str | None,
    typer.Option(help="For --model retrieval, replies to select from: a file, a corpus, or CORPUS:SPLIT."),
]
Candidates = Annotated[
    int | None, typer.Option(min=1, help="How many replies to generate; several are reranked.")
]
Plans = Annotated[
    int | None, typer.Option(min=1, help="For the model planned: how many different plans to try.")
]
Emotion = Annotated[
    str | None, typer.Option(help="The other person's emotion, such as sad, instead of the predicted one.")
]
Mechanisms = Annotated[
    list[str] | None,
    typer.Option(
        "--mechanisms",
        help="Communication mechanism: emotional_reaction (ER), interpretation (IP), exploration (EX), or "
        "none; repeatable.",
    ),
]
Act = Annotated[str | None, typer.Option(help="Steer: the reply's dialogue act, such as questioning.")]
ExpressedEmotion = Annotated[
    str | None,
    typer.Option("--expressed-emotion", "--tone", help="Steer: the emotion it expresses, such as caring."),
]
Precision = Annotated[
    str | None, typer.Option(help="int8 (the default), or fp32: exact, with twice the time and memory.")
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        help="Switch a part off: understand, plan, rerank, guard, soft_prompt, or a reranking feature "
        "such as brevity; repeatable."
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
CorpusPath = Annotated[
    Path | None,
    typer.Option("--path", help="The corpus's folder or file; otherwise looked for under LISTENWELL_DATA."),
]
AnySplit = Annotated[
    str | None, typer.Option(help="One split of a corpus; otherwise every one that is there.")
]
EncoderWeights = Annotated[
    Path | None, typer.Option("--weights", help="Your own folder with the encoder's base weights.")
]
Rehearsal = Annotated[
    int | None, typer.Option(min=1, help="Only so many dialogues of each split, for a rehearsal.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def chosen_model(model: str, weights: Path | None, base: Path | None) -> tuple[str, Path | None]:
    """The model and its weights: with a base, the instructed generator on it."""
    if base is None:
        return model, weights
    if weights is not None or model not in (DEFAULT, INSTRUCTED):
        raise InputError(
            "With --base there is neither --model nor --weights: it names a model of its own.",
            "Leave them out, or leave --base out.",
        )
    return INSTRUCTED, base
