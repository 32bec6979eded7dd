"""`listenwell evaluate`: measure a model's replies, or replies that someone else made."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from listenwell.cli.options import AsJson, Recipe, Weights
from listenwell.files import slug

if TYPE_CHECKING:
    from listenwell.corpora import Reader
    from listenwell.evaluation.embedder import Embedder
    from listenwell.evaluation.ledger import Result
    from listenwell.evaluation.sample import Sampling


Limit = Annotated[int | None, typer.Option(min=1, help="Measure a sample of this size, drawn with the seed.")]
Out = Annotated[Path | None, typer.Option(help="The folder for result.json; otherwise under runs/evaluate.")]
Replies = Annotated[
    Path | None,
    typer.Option(help='Measure these: a file that MoEL or MIME released, or JSONL with {"reply": "…"}.'),
]
System = Annotated[
    str | None, typer.Option(help="Which system of a released file, or the row's name for JSONL.")
]
Keep = Annotated[
    Path | None, typer.Option(help="Put a copy here too, as TASK-SYSTEM.json; such as: results.")
]
Where = Annotated[
    Path | None,
    typer.Option("--path", help="The corpus's folder; otherwise looked for under LISTENWELL_DATA."),
]
Ears = Annotated[
    list[Path] | None,
    typer.Option("--ears", help="A trained annotators' folder, instead of the shipped one; repeatable."),
]
Heads = Annotated[
    list[str] | None, typer.Option("--head", help="Of annotators: measure this head alone; repeatable.")
]
Rankers = Annotated[
    list[Path] | None,
    typer.Option("--ranker", help="A trained ranker's folder, instead of the shipped one; repeatable."),
]
Encoder = Annotated[
    Path | None, typer.Option(help="Your own sentence encoder's folder, instead of all-MiniLM-L6-v2.")
]


def evaluate(
    model: Annotated[
        str | None,
        typer.Argument(
            help="Who answers: prompted, or vanilla with --weights; annotators and rankers ask those."
        ),
    ] = None,
    corpus: Annotated[str, typer.Option(help="Whose contexts are answered.")] = "empathetic_dialogues",
    split: Annotated[str, typer.Option(help="Which part of the corpus.")] = "test",
    limit: Limit = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample and of the replies.")] = 0,
    out: Out = None,
    replies: Replies = None,
    system: System = None,
    keep: Keep = None,
    path: Where = None,
    recipe: Recipe = None,
    weights: Weights = None,
    encoder: Encoder = None,
    ears: Ears = None,
    head: Heads = None,
    ranker: Rankers = None,
    as_json: AsJson = False,
) -> None:
    """Measure replies and write result.json: figures with units, and all that could move them.

    A run that was stopped goes on where it was: replies are kept in replies.jsonl as they are made. With
    --replies, no model speaks: the file's replies are measured by the same code. With annotators, every head
    is measured on its own corpus; several --ears are seeds of one recipe. With rankers, the true reply is
    looked for among 100; several --ranker are seeds of one recipe, --limit is a number of pools.

    Example: listenwell evaluate prompted --corpus empathetic_dialogues --split test --limit 500
    """
    from listenwell.cli.evaluate_rankers import of_rankers
    from listenwell.cli.result_tables import show_result
    from listenwell.corpora import CORPORA
    from listenwell.evaluation.embedder import Embedder
    from listenwell.evaluation.ledger import write_result
    from listenwell.evaluation.sample import Sampling

    if model == "annotators":
        own = not any((replies, path, recipe, weights, encoder, ranker, corpus != "empathetic_dialogues"))
        return _of_annotators(ears, head, split, Sampling(limit, seed), system, (out, keep), own, as_json)
    if model == "rankers":
        own = not any((replies, recipe, weights, encoder, ears, head, seed))
        folder = out or _folder("rankers", corpus, split)
        return of_rankers(ranker, (corpus, split, path, limit), system, (folder, keep), own, as_json)
    _check(model, replies, system if replies is None else None, bool(ears or head or ranker))
    reader, sampling = CORPORA.load(corpus)(path), Sampling(limit, seed)
    if replies is not None:
        result = _of_file(replies, system, reader, split, sampling, encoder)
        folder = out or _folder(result.system, corpus, split)
    else:
        folder = out or _folder(str(model), corpus, split)
        embedder = Embedder.load(encoder)
        result = _of_model(str(model), recipe, weights, reader, split, sampling, folder, embedder)
    write_result(result, folder / "result.json")
    if keep is not None:
        write_result(result, keep / f"{result.task}-{slug(result.system)}.json")
    show_result(result, folder / "result.json", as_json)


def _check(model: str | None, replies: Path | None, system: str | None, is_odd: bool) -> None:
    from listenwell.errors import InputError

    if (model is None) == (replies is None):
        raise InputError("Name either a model or a file of --replies.", "Try: listenwell evaluate prompted")
    if system is not None:
        raise InputError("--system names a row of --replies.", "Leave it out: a model has its own name.")
    if is_odd:
        raise InputError(
            "--ears and --head are of annotators, --ranker of rankers.", "Try: listenwell evaluate annotators"
        )


def _of_annotators(
    ears: list[Path] | None,
    heads: list[str] | None,
    split: str,
    sampling: "Sampling",
    system: str | None,
    places: tuple[Path | None, Path | None],
    own: bool,
    as_json: bool,
) -> None:
    """Measure annotators; `own`: only options of theirs were given."""
    from listenwell.annotators.annotator import SHIPPED, find_ears
    from listenwell.cli.result_tables import grid_table
    from listenwell.errors import InputError
    from listenwell.evaluation.ledger import write_result
    from listenwell.evaluation.tables import figure_grids
    from listenwell.evaluation.understanding import Scope, evaluate_ears

    if not own:
        raise InputError(
            "Annotators are measured on their own corpora.",
            "Give --ears, --head, --split, --limit, --seed, --out, --keep or --system.",
        )
    name = system or "annotators"
    folder = places[0] or _folder(name, "understanding", split)
    folders = [place for ear in ears or [SHIPPED] for place in find_ears(ear)]
    results = evaluate_ears(folders, Scope(split, sampling, tuple(heads or ())), name)
    for result in results:
        for place in filter(None, (folder, places[1])):
            write_result(result, place / f"{result.task}-{slug(result.system)}.json")
        if as_json:
            typer.echo(result.to_json())
    if not as_json:
        for grid in figure_grids(results[0].task, results):
            grid_table(grid)
    typer.echo(f"Written to {folder}.", err=True)


def _of_file(
    file: Path, system: str | None, reader: "Reader", split: str, sampling: "Sampling", encoder: Path | None
) -> "Result":
    from listenwell.evaluation.embedder import Embedder
    from listenwell.evaluation.given import read_given
    from listenwell.evaluation.protocol import evaluate_given

    given = read_given(file, system, reader, split, sampling)
    seed = None if sampling.limit is None else sampling.seed
    return evaluate_given(given, reader.name, split, Embedder.load(encoder), seed)


def _of_model(
    model: str,
    recipe: Path | None,
    weights: Path | None,
    reader: "Reader",
    split: str,
    sampling: "Sampling",
    folder: Path,
    embedder: "Embedder",
) -> "Result":
    from listenwell.evaluation.protocol import Run, evaluate_listener, model_files
    from listenwell.files import hash_files
    from listenwell.listener import Listener

    reader.check(split)
    listener = Listener.load(model, recipe=recipe, weights=weights, understand=False)
    files = model_files(listener.speak, weights)
    run = Run(reader, split, sampling, folder, hash_files(files) if files else None)
    return evaluate_listener(listener, run, embedder)


def _folder(system: str, corpus: str, split: str) -> Path:
    return Path("runs") / "evaluate" / f"{slug(system)}-{corpus}-{split}"
