"""`listenwell compare`: replies of several systems side by side."""

from pathlib import Path
from typing import Annotated

import typer

from listenwell.cli.evaluate_models import Corpus, Split
from listenwell.cli.options import CorpusPath

Systems = Annotated[
    list[str], typer.Argument(metavar="NAME=FILE…", help="Systems and their files of replies.")
]


def compare(
    system: Systems,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/side_by_side.md"),
    count: Annotated[int, typer.Option(min=1, help="How many contexts.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the sample.")] = 0,
    corpus: Corpus = "empathetic_dialogues",
    split: Split = "test",
    path: CorpusPath = None,
) -> None:
    """Write a page with the replies of several systems side by side, and the human reply.

    Contexts are sampled from those that all systems answered. A file is a replies.jsonl of `listenwell
    evaluate`, or one that MoEL or MIME released; of those, NAME selects the system.

    Example: listenwell compare ours=runs/evaluate/mine/replies.jsonl MoEL=moel_generation_result.txt
    """
    from listenwell.corpora import CORPORA
    from listenwell.corpora.sampling import Sampling
    from listenwell.errors import InputError
    from listenwell.evaluation.report.side_by_side import read_column, side_by_side
    from listenwell.files import written_whole

    columns = []
    for argument in system:
        name, equals, file = argument.partition("=")
        if not (name and equals and file):
            raise InputError(f"{argument!r} is no NAME=FILE.", "Try: listenwell compare ours=replies.jsonl")
        columns.append(read_column(name, Path(file)))
    reader = CORPORA.load(corpus)(path)
    reader.check(split)
    page = side_by_side(columns, list(reader.examples(split)), Sampling(count, seed), f"{corpus} {split}")
    with written_whole(out) as page_file:
        page_file.write(page.encode("utf-8", "replace"))
    typer.echo(f"Written: {out}", err=True)
