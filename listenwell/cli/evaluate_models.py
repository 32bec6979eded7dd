"""`listenwell evaluate annotators|rankers`, `listenwell ensemble`, and options that all evaluations share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from listenwell.cli.options import AsJson, CorpusPath
from listenwell.cli.terminal import visible
from listenwell.files import slug

if TYPE_CHECKING:
    from listenwell.results.store import Result

SCORES = Path("runs") / "scores"
"""Where scores of pools are kept."""

Model = Annotated[
    str, typer.Argument(help="The generator: planned, prompted, or comae or vanilla with --weights.")
]
Corpus = Annotated[str, typer.Option(help="The corpus of the contexts.")]
Split = Annotated[str, typer.Option(help="The split of the corpus.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Use a sample of this size, drawn with the seed.")]
Seed = Annotated[int, typer.Option(min=0, help="The seed of the sample and of the replies.")]
Out = Annotated[Path | None, typer.Option(help="The folder for the result; otherwise under runs/evaluate.")]
Keep = Annotated[
    Path | None, typer.Option(help="Write a copy here too, as TASK/SYSTEM.json; such as results.")
]
AnnotatedFolder = Annotated[
    Path | None,
    typer.Option(
        "--annotated", help="For gold factors: the folder with NAME/SPLIT.jsonl of `listenwell annotate`."
    ),
]
Table = Annotated[str | None, typer.Option(help="The table of the row, where it is not the usual one.")]
Workers = Annotated[int, typer.Option(min=1, help="Processes that share the work, and a GPU.")]
Classifiers = Annotated[
    list[Path] | None,
    typer.Option(
        "--classifier", "--ears", help="A trained classifier, instead of the shipped one; repeatable."
    ),
]
Heads = Annotated[list[str] | None, typer.Option("--head", help="Measure only this head; repeatable.")]
Rankers = Annotated[
    list[Path] | None,
    typer.Option("--ranker", help="A trained ranker's folder, instead of the shipped one; repeatable."),
]


def result_folder(system: str, corpus: str, split: str) -> Path:
    """The default folder for a result; different evaluations never share one."""
    return Path("runs") / "evaluate" / f"{slug(system)}-{corpus}-{split}"


def _write_to(result: "Result", *folders: Path | None) -> None:
    from listenwell.results.store import file_name, write_result

    for folder in filter(None, folders):
        write_result(result, folder / file_name(result))


def annotators(
    classifier: Classifiers = None,
    head: Heads = None,
    split: Split = "test",
    limit: Limit = None,
    seed: Seed = 0,
    out: Out = None,
    keep: Keep = None,
    system: Annotated[str | None, typer.Option(help="The name of the row.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure every head of the annotators on its own corpus. Several --classifier are seeds of a recipe."""
    from listenwell.annotators.annotator import SHIPPED, find_classifiers
    from listenwell.cli.tables import grid_table
    from listenwell.corpora.sampling import Sampling
    from listenwell.evaluation.report.tables import figure_grids
    from listenwell.evaluation.understanding import Scope, evaluate_classifiers

    name = system or "annotators"
    folder = out or result_folder(name, "understanding", split)
    checkpoints = [path for named in classifier or [SHIPPED] for path in find_classifiers(named)]
    scope = Scope(split, Sampling(limit, seed), tuple(head or ()))
    results = evaluate_classifiers(checkpoints, scope, name)
    for result in results:
        _write_to(result, folder, keep)
        if as_json:
            typer.echo(result.to_json())
    if not as_json:
        for grid in figure_grids(results[0].task, results):
            grid_table(grid)
    typer.echo(f"Written to {folder}.", err=True)


def rankers(
    ranker: Rankers = None,
    corpus: Corpus = "empathetic_dialogues",
    split: Split = "test",
    path: CorpusPath = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Measure only so many pools of 100.")] = None,
    out: Out = None,
    keep: Keep = None,
    system: Annotated[str | None, typer.Option(help="The name of the row.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure how well rankers find the true reply among 100; several --ranker are seeds of one recipe."""
    from listenwell.cli.tables import show_result
    from listenwell.evaluation.ranking import evaluate_rankers
    from listenwell.rankers.ranker import Ranker
    from listenwell.rankers.scoring import Pools

    pools = Pools(corpus, split, path=path, most=limit)
    folders: list[Path | None] = [*ranker] if ranker else [None]
    scorers = [Ranker.load(folder).scorer for folder in folders]
    result = evaluate_rankers(scorers, system or scorers[0].name, pools, SCORES)
    target = out or result_folder("rankers", corpus, split)
    _write_to(result, target, keep)
    show_result(result, target, as_json)


def ensemble(
    member: Annotated[list[Path], typer.Argument(help="Runs or checkpoints of rankers (or of a generator).")],
    out: Annotated[Path, typer.Option(help="The folder of the ensemble.")],
    corpus: Corpus = "empathetic_dialogues",
    split: Annotated[str, typer.Option(help="The split to fit the weights on; never test.")] = "valid",
    pools: Annotated[int | None, typer.Option(min=1, help="Use only so many pools of 100.")] = None,
    as_json: AsJson = False,
) -> None:
    """Combine rankers: fit the weights that make the true replies of the validation split likeliest.

    The ensemble is a checkpoint like any ranker: `listenwell evaluate rankers --ranker FOLDER` measures it,
    `listenwell rank --ranker FOLDER` uses it.
    """
    import json

    from listenwell.evaluation.ranking import fit_ensemble
    from listenwell.rankers.scoring import Pools

    fitted = fit_ensemble(member, Pools(corpus, split, most=pools), SCORES, out)
    weights = dict(zip(map(str, member), fitted.weights, strict=True))
    if as_json:
        typer.echo(json.dumps({"ensemble": str(out), "weights": weights}, ensure_ascii=False))
        return
    for name, weight in weights.items():
        typer.echo(f"{weight:10.4f}  {visible(name)}")
    typer.echo(f"Written to {out}.", err=True)
