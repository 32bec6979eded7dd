"""`listenwell corpus listeners`: whether two people's replies differ more than random ones."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from listenwell.cli.options import AsJson
from listenwell.cli.terminal import visible

if TYPE_CHECKING:
    from listenwell.corpora import Reader
    from listenwell.errors import ListenwellError
    from listenwell.papers.corpus_analysis.listeners import Comparison, Said

Name = Annotated[str, typer.Argument(help="A corpus; `listenwell corpus list` shows them.")]
Split = Annotated[str | None, typer.Option(help="One split; otherwise every one that is there.")]
Where = Annotated[
    Path | None,
    typer.Option("--path", help="The corpus's folder or file; otherwise looked for under LISTENWELL_DATA."),
]
Out = Annotated[
    Path | None, typer.Option(help="The folder for the figure and its data; otherwise under runs/listeners.")
]
Runs = Annotated[int, typer.Option(min=2, help="How often two random sets are drawn.")]
Least = Annotated[int, typer.Option(min=1, help="Leave out emotions whose second listener said less.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the random sets.")]


def listeners(
    name: Name,
    split: Split = None,
    path: Where = None,
    out: Out = None,
    runs: Runs = 5,
    least: Least = 5,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Show whether two people reply to an emotion more differently than two random sets of replies do.

    For each emotion, the two listeners with the most replies are compared by TF-IDF, beside random sets as
    large as theirs; a corpus without emotions is one group. Writes listeners.json and the figure as SVG and
    PNG: PEC's Figure 1. The corpus must say who listens; of EmpatheticDialogues the publisher's files do.

    Example: listenwell corpus listeners empathetic_dialogues --split train
    """
    from listenwell.files import written_whole
    from listenwell.papers.corpus_analysis.listener_figures import draw, finding
    from listenwell.papers.corpus_analysis.listeners import need_scikit_learn
    from listenwell.results.drawing import need_matplotlib
    from listenwell.serialization import dumps, indented

    need_matplotlib()  # before the long work
    need_scikit_learn()
    work = _Work.open(name, split, path)
    comparison = work.compare(runs, least, seed)
    folder = out or Path("runs") / "listeners" / f"{name}-{work.label}"
    result = _result(work, comparison, runs, least, seed)
    heading = f"{name} {'+'.join(work.splits)} · replies: {comparison.replies:,}"
    draw(comparison, heading, folder)
    with written_whole(folder / "listeners.json") as file:
        file.write(indented(result).encode())
    if as_json:
        typer.echo(dumps(result))
    else:
        _show(comparison)
        typer.echo(finding(comparison))
    for line in (*_remarks(comparison), *work.reader.report.lines()):
        typer.echo(f"  {visible(line)}", err=True)
    typer.echo(visible(f"Written to {folder}: listeners.json, listeners.svg, listeners.png."), err=True)


@dataclass(frozen=True)
class _Work:
    """Where the replies come from."""

    name: str
    reader: "Reader"
    splits: tuple[str, ...]

    @classmethod
    def open(cls, name: str, split: str | None, path: Path | None) -> "_Work":
        from listenwell.cli.corpus import chosen_splits, open_reader

        reader = open_reader(name, path)
        return cls(name, reader, chosen_splits(reader, split))

    @property
    def label(self) -> str:
        """The splits' name in the folder's."""
        return self.splits[0] if len(self.splits) == 1 else "all"

    def compare(self, runs: int, least: int, seed: int) -> "Comparison":
        """Read every reply once and compare; what cannot be compared is an error that says why."""
        from listenwell.papers.corpus_analysis.listeners import compare
        from listenwell.progress import progress

        replies = self._replies()
        with progress("comparing listeners", unit="emotions") as advance:
            comparison = compare(replies, runs, least, seed, advance)
        if not comparison.pairs:
            raise self._fault(comparison, least)
        return comparison

    def _replies(self) -> "list[Said]":
        from listenwell.papers.corpus_analysis.listeners import said
        from listenwell.progress import progress

        found = []
        with progress(f"reading {self.name}", unit="replies") as advance:
            for split in self.splits:
                for example in self.reader.examples(split):
                    found.append(said(example))
                    advance(1)
        return found

    def _fault(self, comparison: "Comparison", least: int) -> "ListenwellError":
        """Why there is nothing to compare, and what to do."""
        from listenwell.errors import CorpusError

        where = f"{self.name} {'+'.join(self.splits)}"
        if not comparison.replies:
            return CorpusError(
                f"{where} has no replies: no turn of the listener follows another.",
                "Name a corpus of conversations, such as empathetic_dialogues.",
            )
        if comparison.unnamed == comparison.replies:
            return CorpusError(
                f"{where} does not say who listens: its replies name no person.", self._naming()
            )
        if comparison.listeners < 2:
            return CorpusError(
                f"Only one person listens in all of {where}; a comparison needs two.",
                "Give a corpus with several listeners, or all of its splits.",
            )
        return CorpusError(
            f"No emotion in {where} has two listeners with {least} replies or more each.",
            "Give a smaller --least, or more of the corpus.",
        )

    def _naming(self) -> str:
        from listenwell.corpora.empathetic_dialogues import LISTENER_WORKER, EmpatheticDialogues

        if isinstance(self.reader, EmpatheticDialogues):
            return (
                "This copy's speaker_idx has 0 and 1 in place of workers' numbers: get the publisher's own "
                "files with `listenwell corpus download empathetic_dialogues --path FOLDER`, and give --path."
            )
        return (
            f"Name the person as the dialogue's `listener` and its turns' `generator`, or in the note "
            f"`{LISTENER_WORKER}`; of the known corpora, empathetic_dialogues and pec name them."
        )


def _result(work: _Work, comparison: "Comparison", runs: int, least: int, seed: int) -> dict[str, Any]:
    """All of listeners.json."""
    from listenwell.files import hash_files
    from listenwell.papers.corpus_analysis.listeners import BY
    from listenwell.results.store import environment

    around = environment()
    return {
        "task": "listeners",
        "corpus": work.name,
        "split": "+".join(work.splits),
        "count": comparison.replies,
        "data": hash_files(file for split in work.splits for file in work.reader.check(split)),
        "seed": seed,
        "conditions": {
            "groups": BY[comparison.by],
            "listeners": f"the two with the most replies to the emotion, {least} or more each; of equals who "
            "came first",
            "random sets": f"disjoint, as large as the listeners', from all replies to the emotion; {runs} "
            f"draws by numpy default_rng({seed}), without replacement",
            "similarity": "cosine of TF-IDF vectors, each set one document; scikit-learn's smooth idf over "
            "all replies compared, each one document",
            "words": "listenwell.words, without marks",
            "spread": "standard deviation of the draws, n − 1",
        },
        **around,
        "versions": dict(around["versions"]),  # type: ignore[call-overload]
        **comparison.to_dict(),
    }


def _remarks(comparison: "Comparison") -> list[str]:
    """What was left out of the comparison, a line each."""
    from listenwell.papers.corpus_analysis.listeners import BY

    lines = [f"groups: {BY[comparison.by]}"] if comparison.by != "emotion" else []
    for count, what in (
        (comparison.unnamed, "replies of nobody known"),
        (comparison.unlabelled, "replies without an emotion"),
    ):
        lines += [f"left out {count:,}: {what}"] if count else []
    return lines + [f"left out {emotion}: {why}" for emotion, why in comparison.left_out]


def _show(comparison: "Comparison") -> None:
    from listenwell.cli.result_tables import grid_table
    from listenwell.papers.corpus_analysis.listener_figures import grid

    grid_table(grid(comparison))
