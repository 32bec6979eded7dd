"""`listenwell evaluate`: generate and score replies, and measure perplexity and plans."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from listenwell.cli.evaluate_models import (
    AnnotatedFolder,
    Corpus,
    Keep,
    Limit,
    Model,
    Out,
    Seed,
    Split,
    Table,
    Workers,
    annotators,
    rankers,
    result_folder,
)
from listenwell.cli.options import AsJson, CorpusPath, Recipe, Weights, Without
from listenwell.errors import InputError

if TYPE_CHECKING:
    from listenwell.evaluation.request import EvaluationSplit
    from listenwell.evaluation.systems import System
    from listenwell.results.store import Result


class _Verbs(TyperGroup):
    """A group whose error for the old flat form, `listenwell evaluate MODEL`, names the new verb."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - click's, or typer's copy of it
        if args and args[0] not in (*self.commands, "-h", "--help"):
            raise InputError(
                f"`listenwell evaluate {args[0]}` does not say what to evaluate.",
                f"Use one of the verbs {', '.join(self.commands)}, such as: listenwell evaluate replies "
                f"{'FILE' if args[0].startswith('-') else args[0]}",
            )
        return super().parse_args(ctx, args)


evaluate = typer.Typer(
    cls=_Verbs,
    no_args_is_help=True,
    help="Measure replies, perplexity, plans, annotators and rankers; write results with all conditions.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Source = Annotated[
    str,
    typer.Argument(
        metavar="MODEL|FILE",
        help="A generator, which answers now; or a file: replies.jsonl of a run, one that MoEL or MIME "
        'released, or JSONL with {"reply": "…"}.',
    ),
]
Plans = Annotated[
    str,
    typer.Argument(
        metavar="MODEL|FILE",
        help="A generator that plans; replies.jsonl of a run, for plan adherence; or planning.jsonl.",
    ),
]
Row = Annotated[
    str | None, typer.Option(help="The name of the row; of a released file, the system to measure.")
]
Encoder = Annotated[
    Path | None, typer.Option(help="Your own sentence encoder's folder, instead of all-MiniLM-L6-v2.")
]
FactorKind = Annotated[
    str | None, typer.Option(help="Evaluate the generator alone, under gold, predicted or no (none) factors.")
]
FactorKinds = Annotated[
    list[str] | None, typer.Option(help="gold, predicted (the default), none or marginal; repeatable.")
]
Against = Annotated[
    Path | None,
    typer.Option("--against", "--beside", help="With planning.jsonl: that of the other model of a pair."),
]


@evaluate.command()
def replies(
    source: Source,
    corpus: Corpus = "empathetic_dialogues",
    split: Split = "test",
    path: CorpusPath = None,
    limit: Limit = None,
    seed: Seed = 0,
    out: Out = None,
    keep: Keep = None,
    system: Row = None,
    recipe: Recipe = None,
    weights: Weights = None,
    factors: FactorKind = None,
    without: Without = None,
    annotated: AnnotatedFolder = None,
    encoder: Encoder = None,
    workers: Workers = 1,
    table: Table = None,
    as_json: AsJson = False,
) -> None:
    """Score replies with every reply metric; a MODEL generates them first.

    A MODEL answers as a whole listener, or with --factors as a generator alone. A run that was interrupted
    continues: replies are kept in replies.jsonl as they are generated.

    Example: listenwell evaluate replies prompted --split test --limit 500
    """
    from listenwell.corpora import CORPORA
    from listenwell.corpora.sampling import Sampling
    from listenwell.evaluation import score
    from listenwell.evaluation.embedder import Embedder
    from listenwell.evaluation.generate import generate as generate_replies
    from listenwell.evaluation.outputs import load_outputs, load_run
    from listenwell.evaluation.request import EvaluationRequest
    from listenwell.evaluation.systems import PREDICTED

    if _is_file(source):
        if any((recipe, weights, factors, without, annotated, workers > 1)):
            raise InputError(
                f"The replies in {source} exist already.",
                "Leave out --recipe, --weights, --factors, --without, --annotated and --workers.",
            )
        file = Path(source)
        folder = out or result_folder(system or file.stem, corpus, split)
        outputs = load_outputs(file, CORPORA.load(corpus)(path), split, system, Sampling(limit, seed))
    else:
        off = " ".join(["without", *without]) if without else ""
        folder = out or result_folder(f"{source} {factors or ''} {off}", corpus, split)
        model = _system(source, weights, recipe, factors, without)
        data = _split(corpus, split, path, annotated, limit, seed)
        request = EvaluationRequest(model, data, folder, factors or PREDICTED, system, workers=workers)
        outputs = load_run(generate_replies(request), request.split.source)
    annotator = score.load_annotator() if outputs.contexts else None
    drawn = None if limit is None else seed
    result = score.score_replies(outputs, Embedder.load(encoder), drawn, annotator, table)
    _write(result, folder, keep, as_json)


@evaluate.command()
def generate(
    model: Model,
    out: Annotated[Path, typer.Option(help="The folder for replies.jsonl; one run continues in one folder.")],
    corpus: Corpus = "empathetic_dialogues",
    split: Split = "test",
    path: CorpusPath = None,
    limit: Limit = None,
    seed: Seed = 0,
    system: Row = None,
    recipe: Recipe = None,
    weights: Weights = None,
    factors: FactorKind = None,
    without: Without = None,
    annotated: AnnotatedFolder = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="With --factors gold: the whole listener, under these factors.")
    ] = False,
    perplexity: Annotated[
        bool,
        typer.Option("--perplexity", "--likelihood", help="With --factors: save the perplexity as well."),
    ] = False,
    workers: Workers = 1,
) -> None:
    """Generate the replies of a model to a split, for `listenwell evaluate replies OUT/replies.jsonl`.

    The model answers as a whole listener, or with --factors as a generator alone. Needs none of the metrics'
    libraries: replies can be generated on one machine and scored on another.
    """
    from listenwell.evaluation.generate import generate as generate_replies
    from listenwell.evaluation.request import EvaluationRequest
    from listenwell.evaluation.systems import PREDICTED

    target = _system(model, weights, recipe, factors, without, whole)
    data = _split(corpus, split, path, annotated, limit, seed)
    request = EvaluationRequest(target, data, out, factors or PREDICTED, system, workers=workers)
    typer.echo(f"Written: {generate_replies(request, perplexity)}")


@evaluate.command()
def perplexity(
    model: Model,
    factors: FactorKinds = None,
    corpus: Corpus = "empathetic_dialogues",
    split: Split = "test",
    path: CorpusPath = None,
    limit: Limit = None,
    seed: Seed = 0,
    out: Out = None,
    keep: Keep = None,
    system: Row = None,
    recipe: Recipe = None,
    weights: Weights = None,
    annotated: AnnotatedFolder = None,
    workers: Workers = 1,
    table: Table = None,
    as_json: AsJson = False,
) -> None:
    """Measure the perplexity of the human replies under a generator alone, one row a kind of factors."""
    from listenwell.evaluation.perplexity import evaluate_perplexity
    from listenwell.evaluation.request import EvaluationRequest
    from listenwell.evaluation.systems import PREDICTED

    data = _split(corpus, split, path, annotated, limit, seed)
    for kind in factors or [PREDICTED]:
        folder = out or result_folder(f"{model} {kind} perplexity", corpus, split)
        target = _system(model, weights, recipe, kind)
        request = EvaluationRequest(target, data, folder, kind, system, table, workers)
        _write(evaluate_perplexity(request), folder, keep, as_json, several=len(factors or ()) > 1)


@evaluate.command()
def plans(
    source: Plans,
    against: Against = None,
    corpus: Corpus = "empathetic_dialogues",
    split: Split = "test",
    path: CorpusPath = None,
    limit: Limit = None,
    seed: Seed = 0,
    out: Out = None,
    keep: Keep = None,
    system: Row = None,
    recipe: Recipe = None,
    weights: Weights = None,
    annotated: AnnotatedFolder = None,
    workers: Workers = 1,
    table: Table = None,
    as_json: AsJson = False,
) -> None:
    """Measure plans: how well a MODEL predicts the factors of human replies, or plan adherence of replies.

    A MODEL is measured on annotated replies (CoMAE's Table 4) and leaves planning.jsonl, of which two can be
    compared with --against. Of a run's replies.jsonl, the share of replies that carry out their plan is
    measured (CoMAE's Table 5).
    """
    from listenwell.annotators.heads import REPLY_HEADS
    from listenwell.corpora import CORPORA
    from listenwell.corpora.sampling import Sampling
    from listenwell.evaluation import score
    from listenwell.evaluation.factor_prediction import compare_pair, evaluate_factor_prediction
    from listenwell.evaluation.outputs import load_outputs
    from listenwell.evaluation.request import EvaluationRequest
    from listenwell.evaluation.systems import GOLD

    folder = out or result_folder(f"{system or Path(source).stem} plans", corpus, split)
    if against is not None:
        result = compare_pair(Path(source), against)
    elif _is_file(source):
        loader, sampling = CORPORA.load(corpus)(path), Sampling(limit, seed)
        outputs = load_outputs(Path(source), loader, split, system, sampling)
        result = score.score_plan_adherence(outputs, score.load_annotator(*REPLY_HEADS), table)
    else:
        model = _system(source, weights, recipe, GOLD)
        data = _split(corpus, split, path, annotated, limit, seed)
        request = EvaluationRequest(model, data, folder, GOLD, system, table, workers)
        result = evaluate_factor_prediction(request)
    _write(result, folder, keep, as_json)


evaluate.command()(annotators)
evaluate.command()(rankers)


def _system(
    model: str,
    weights: Path | None,
    recipe: Path | None,
    factors: str | None,
    without: list[str] | None = None,
    whole: bool = False,
) -> "System":
    """The model that is evaluated: a whole listener, or with factors the generator alone."""
    from listenwell.evaluation.systems import System

    if without and factors and not whole:
        raise InputError(
            "--without switches off parts of a whole listener.", "Leave out --factors, which removes all."
        )
    return System(model, weights, recipe, whole or factors is None, tuple(without or ()))


def _split(
    corpus: str, split: str, path: Path | None, annotated: Path | None, limit: int | None, seed: int
) -> "EvaluationSplit":
    """The examples, or an error that says how to get the corpus."""
    from listenwell.corpora.sampling import Sampling
    from listenwell.evaluation.request import EvaluationSplit

    examples = EvaluationSplit(corpus, split, path, annotated, Sampling(limit, seed))
    examples.source.files(split)
    return examples


def _is_file(source: str) -> bool:
    """Whether a source is meant as a file: it exists, or does not look like the name of a model."""
    return Path(source).is_file() or "/" in source or "." in source


def _write(result: "Result", folder: Path, keep: Path | None, as_json: bool, several: bool = False) -> None:
    """Write result.json (TASK/SYSTEM.json where `several` share a folder), and a copy; print the result."""
    from listenwell.cli.tables import show_result
    from listenwell.results.store import file_name, write_result

    file = folder / (file_name(result) if several else "result.json")
    write_result(result, file)
    if keep is not None:
        write_result(result, keep / file_name(result))
    show_result(result, file, as_json)
