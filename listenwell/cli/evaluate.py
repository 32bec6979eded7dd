"""`listenwell evaluate`: measure a model's replies, or replies that someone else made."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from listenwell.cli.evaluate_generators import (
    PLANNING,
    REPLIES,
    Annotated_,
    Beside,
    Factors,
    Table,
    Task,
    check_task,
    of_generators,
    of_given,
)
from listenwell.cli.options import AsJson, Recipe, Weights, Without
from listenwell.files import slug

if TYPE_CHECKING:
    from listenwell.corpora.sampling import Sampling
    from listenwell.evaluation.generator_results import Row
    from listenwell.results.store import Result


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
Classifiers = Annotated[
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
            help="Who answers: planned, prompted, or comae or vanilla with --weights; or annotators, rankers."
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
    classifiers: Classifiers = None,
    head: Heads = None,
    ranker: Rankers = None,
    task: Task = REPLIES,
    factors: Factors = None,
    without: Without = None,
    annotated: Annotated_ = None,
    beside: Beside = None,
    table: Table = None,
    as_json: AsJson = False,
) -> None:
    """Measure replies and write result.json: figures with units, and all that could move them.

    A run that was stopped goes on where it was: replies are kept in replies.jsonl as they are made. With
    --replies, no model speaks: the file's replies are measured by the same code. With annotators, every head
    is measured on its own corpus; several --ears are seeds of one recipe. With rankers, the true reply is
    looked for among 100; several --ranker are seeds of one recipe, --limit is a number of pools. Speakers
    that plan are asked alone with --factors, or for another --task.

    Example: listenwell evaluate prompted --corpus empathetic_dialogues --split test --limit 500
    """
    from listenwell.cli.evaluate_rankers import of_rankers
    from listenwell.corpora.sampling import Sampling

    speaks = (factors, without, annotated, beside, table, task != REPLIES)
    if model == "annotators":
        own = not any((replies, path, recipe, weights, encoder, ranker, corpus != "empathetic_dialogues"))
        own = own and not any(speaks)
        return _of_annotators(
            classifiers, head, split, Sampling(limit, seed), system, (out, keep), own, as_json
        )
    if model == "rankers":
        own = not any((replies, recipe, weights, encoder, classifiers, head, seed, *speaks))
        folder = out or _folder("rankers", corpus, split)
        return of_rankers(ranker, (corpus, split, path, limit), system, (folder, keep), own, as_json)
    asked = _Asked(model, replies, system, corpus, split, path, annotated, Sampling(limit, seed))
    how = _How(task, factors, tuple(without or ()), recipe, weights, encoder, beside, table)
    _check(asked, how, bool(classifiers or head or ranker))
    folder = out or _folder(_name(asked, how), corpus, split)
    _write(_measured(asked, how, folder), (folder, keep), as_json)


@dataclass(frozen=True)
class _Asked:
    """Whose replies are measured, and to which contexts."""

    model: str | None
    replies: Path | None
    system: str | None
    corpus: str
    split: str
    path: Path | None
    annotated: Path | None
    sampling: "Sampling"


@dataclass(frozen=True)
class _How:
    """What is measured, and how the model is switched."""

    task: str
    factors: str | None
    without: tuple[str, ...]
    recipe: Path | None
    weights: Path | None
    encoder: Path | None
    beside: Path | None
    table: str | None

    @property
    def alone(self) -> bool:
        """Whether a generator is asked alone, without the rest of the listener."""
        return self.factors is not None or self.task != REPLIES


def _measured(asked: _Asked, how: _How, folder: Path) -> "Result":
    if asked.replies is not None:
        return _of_file(asked.replies, asked, how)
    if how.alone:
        return of_generators(how.task, _row(asked, how, folder), how.encoder)
    return _of_model(asked, how, folder)


def _name(asked: _Asked, how: _How) -> str:
    """The folder's name, where none is given: different questions never share one."""
    if asked.replies is not None:
        return f"{asked.system or asked.replies.stem} {how.task if how.alone else ''}"
    off = f"without {' '.join(how.without)}" if how.without else ""
    return f"{asked.model} {how.factors or ''} {how.task if how.alone else ''} {off}"


def _check(asked: _Asked, how: _How, is_odd: bool) -> None:
    from listenwell.errors import InputError

    check_task(how.task)
    if (asked.model is None) == (asked.replies is None):
        raise InputError("Name either a model or a file of --replies.", "Try: listenwell evaluate prompted")
    if asked.model is not None and asked.system is not None and not how.alone:
        raise InputError("--system names a row of --replies.", "Leave it out: a model has its own name.")
    if how.without and (asked.model is None or how.alone):
        raise InputError("--without is of a whole listener.", "Name its model, and leave out --factors.")
    if asked.replies is not None and how.factors is not None:
        raise InputError("--factors are of a model that speaks now.", "Leave them out: the file says.")
    if how.beside is not None and (how.task != PLANNING or asked.replies is None):
        raise InputError(
            "--beside holds two files of plans against each other.",
            "Give --task planning --replies FIRST/planning.jsonl --beside SECOND/planning.jsonl",
        )
    if is_odd:
        raise InputError(
            "--ears and --head are of annotators, --ranker of rankers.", "Try: listenwell evaluate annotators"
        )


def _of_annotators(
    classifiers: list[Path] | None,
    heads: list[str] | None,
    split: str,
    sampling: "Sampling",
    system: str | None,
    places: tuple[Path | None, Path | None],
    own: bool,
    as_json: bool,
) -> None:
    """Measure annotators; `own`: only options of theirs were given."""
    from listenwell.annotators.annotator import SHIPPED, find_classifiers
    from listenwell.cli.result_tables import grid_table
    from listenwell.errors import InputError
    from listenwell.evaluation.report.tables import figure_grids
    from listenwell.evaluation.understanding import Scope, evaluate_classifiers
    from listenwell.results.store import write_result

    if not own:
        raise InputError(
            "Annotators are measured on their own corpora.",
            "Give --ears, --head, --split, --limit, --seed, --out, --keep or --system.",
        )
    name = system or "annotators"
    folder = places[0] or _folder(name, "understanding", split)
    folders = [place for classifier in classifiers or [SHIPPED] for place in find_classifiers(classifier)]
    results = evaluate_classifiers(folders, Scope(split, sampling, tuple(heads or ())), name)
    for result in results:
        for place in filter(None, (folder, places[1])):
            write_result(result, place / f"{result.task}-{slug(result.system)}.json")
        if as_json:
            typer.echo(result.to_json())
    if not as_json:
        for grid in figure_grids(results[0].task, results):
            grid_table(grid)
    typer.echo(f"Written to {folder}.", err=True)


def _of_file(file: Path, asked: _Asked, how: _How) -> "Result":
    """Replies in a file: of a run of ours, with all it says of itself, or of someone else."""
    from listenwell.corpora import CORPORA
    from listenwell.evaluation.generator_results import paired
    from listenwell.evaluation.outputs import read_given
    from listenwell.evaluation.saved_runs import is_made, read_made

    if how.beside is not None:
        return paired(file, how.beside)
    reader, sampling = CORPORA.load(asked.corpus)(asked.path), asked.sampling
    if is_made(file) and sampling.limit is None:
        given = read_made(file, reader, asked.system)
    else:
        given = read_given(file, asked.system, reader, asked.split, sampling)
    seed = None if sampling.limit is None else sampling.seed
    return of_given(how.task, given, seed, how.encoder, how.table)


def _row(asked: _Asked, how: _How, folder: Path) -> "Row":
    """A generator alone, asked for the replies of a corpus."""
    from listenwell.evaluation.generator_results import Row
    from listenwell.evaluation.systems import PREDICTED, Asked, System
    from listenwell.evaluation.workers import Job

    what = Asked(asked.corpus, asked.split, asked.path, asked.annotated, asked.sampling)
    who = System(str(asked.model), how.weights, how.recipe)
    return Row(Job(who, what, how.factors or PREDICTED, folder), asked.system, how.table)


def _of_model(asked: _Asked, how: _How, folder: Path) -> "Result":
    """A whole listener, perhaps with parts switched off."""
    from listenwell.corpora import CORPORA
    from listenwell.evaluation.embedder import Embedder
    from listenwell.evaluation.empathy import load_readers
    from listenwell.evaluation.protocol import Run, evaluate_listener, model_files
    from listenwell.evaluation.systems import System
    from listenwell.files import hash_files

    reader = CORPORA.load(asked.corpus)(asked.path)
    reader.check(asked.split)
    who = System(str(asked.model), how.weights, how.recipe, whole=True, without=how.without)
    listener = who.listener()
    files = model_files(listener.generate, how.weights)
    checkpoint = hash_files(files) if files else None
    run = Run(reader, asked.split, asked.sampling, folder, checkpoint, load_readers(), how.without)
    return evaluate_listener(listener, run, Embedder.load(how.encoder))


def _write(result: "Result", places: tuple[Path, Path | None], as_json: bool) -> None:
    from listenwell.cli.result_tables import show_result
    from listenwell.results.store import file_name, write_result

    folder, keep = places
    write_result(result, folder / "result.json")
    if keep is not None:
        write_result(result, keep / file_name(result))
    show_result(result, folder / "result.json", as_json)


def _folder(system: str, corpus: str, split: str) -> Path:
    return Path("runs") / "evaluate" / f"{slug(system)}-{corpus}-{split}"
