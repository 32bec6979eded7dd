"""`listenwell evaluate --task …` of generators that plan, and `listenwell compare`: replies side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from listenwell.evaluation.generator_results import Row
    from listenwell.evaluation.outputs import Given
    from listenwell.results.store import Result

REPLIES, PERPLEXITY, PLANNING, REALIZATION = TASKS = ("replies", "perplexity", "planning", "realization")

Task = Annotated[
    str,
    typer.Option(help=f"What is measured: {', '.join(TASKS)}; all but replies are of generators that plan."),
]
Factors = Annotated[
    str | None,
    typer.Option(help="Ask the generator alone, under gold, predicted, none or marginal factors."),
]
Annotated_ = Annotated[
    Path | None,
    typer.Option("--annotated", help="The folder with NAME/SPLIT.jsonl of `listenwell annotate`."),
]
Beside = Annotated[
    Path | None,
    typer.Option(help="With --task planning and --replies planning.jsonl: that of the other of a pair."),
]
Table = Annotated[str | None, typer.Option(help="The table of the row, where it is not the usual one.")]
Systems = Annotated[
    list[str], typer.Argument(metavar="NAME=FILE…", help="Systems and their files of replies.")
]


def check_task(task: str) -> None:
    """Refuse a task that is none, with the near ones."""
    from listenwell.errors import unknown_name

    if task not in TASKS:
        raise unknown_name("task", task, TASKS)


def of_generators(task: str, row: "Row", encoder: Path | None) -> "Result":
    """Measure a generator alone: its perplexity, its plans, or its replies and what they realize.

    Args:
        task: one of TASKS.
        row: who is asked for what.
        encoder: of replies, another sentence encoder's folder.
    """
    from listenwell.evaluation.generator_results import evaluate_perplexity, evaluate_planning, generate_all
    from listenwell.evaluation.saved_runs import read_made

    if task == PERPLEXITY:
        return evaluate_perplexity(row)
    if task == PLANNING:
        return evaluate_planning(row)
    given = read_made(generate_all(row), row.job.asked.source)
    return of_given(task, given, None, encoder, row.table)


def of_given(
    task: str, given: "Given", seed: int | None, encoder: Path | None, table: str | None
) -> "Result":
    """Measure replies that are there: what they are like, or what they realize of their plans."""
    from listenwell.annotators.replies import REPLY_HEADS
    from listenwell.errors import InputError
    from listenwell.evaluation.embedder import Embedder
    from listenwell.evaluation.empathy import load_readers
    from listenwell.evaluation.protocol import evaluate_given
    from listenwell.evaluation.saved_runs import evaluate_realization

    if task == REALIZATION:
        return evaluate_realization(given, load_readers(*REPLY_HEADS), table)
    if task != REPLIES:
        raise InputError(f"A file of replies has no {task}.", "Ask a model, or leave --task out.")
    readers = load_readers() if given.contexts else None
    return evaluate_given(given, Embedder.load(encoder), seed, readers, table)


def compare(
    system: Systems,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/side_by_side.md"),
    count: Annotated[int, typer.Option(min=1, help="How many contexts.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw.")] = 0,
    corpus: Annotated[str, typer.Option(help="Whose contexts.")] = "empathetic_dialogues",
    split: Annotated[str, typer.Option(help="Which part of the corpus.")] = "test",
    path: Annotated[Path | None, typer.Option(help="The corpus's folder.")] = None,
) -> None:
    """Write replies of several systems side by side, and the person's own, as a page to read.

    Contexts are drawn by seed from those that all systems answered. A file is a replies.jsonl of `listenwell
    evaluate`, or one that MoEL or MIME released; of those, NAME says which system is meant.

    Example: listenwell compare ours=runs/evaluate/mine/replies.jsonl MoEL=moel_generation_result.txt
    """
    from listenwell.corpora import CORPORA
    from listenwell.corpora.sampling import Sampling
    from listenwell.errors import InputError
    from listenwell.evaluation.report.side_by_side import read_column, side_by_side
    from listenwell.files import written_whole

    columns = []
    for given in system:
        name, equals, file = given.partition("=")
        if not (name and equals and file):
            raise InputError(f"{given!r} is no NAME=FILE.", "Try: listenwell compare ours=replies.jsonl")
        columns.append(read_column(name, Path(file)))
    reader = CORPORA.load(corpus)(path)
    reader.check(split)
    page = side_by_side(columns, list(reader.examples(split)), Sampling(count, seed), f"{corpus} {split}")
    with written_whole(out) as page_file:
        page_file.write(page.encode("utf-8", "replace"))
    typer.echo(f"Written: {out}", err=True)
