"""`listenwell corpus factors`: how factors hang together, how often labels occur, and their words."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from listenwell.cli.options import AsJson
from listenwell.cli.terminal import visible

if TYPE_CHECKING:
    from listenwell.corpora import Reader
    from listenwell.corpora.sampling import Sampling
    from listenwell.dialogue import Dialogue
    from listenwell.papers.corpus_analysis.factors import Analysis

Name = Annotated[str, typer.Argument(help="A corpus; `listenwell corpus list` shows them.")]
Split = Annotated[
    str | None,
    typer.Option(help="One split, also of --annotated; otherwise every one that is there."),
]
Where = Annotated[
    Path | None,
    typer.Option("--path", help="The corpus's folder or file; otherwise looked for under LISTENWELL_DATA."),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only so many dialogues, drawn with the seed.")]
Out = Annotated[
    Path | None, typer.Option(help="The folder for tables and figures; otherwise under runs/factors.")
]
Seed = Annotated[int, typer.Option(min=0, help="Of the sample and of the intervals.")]
Made = Annotated[
    Path | None,
    typer.Option("--annotated", help="The corpus as `listenwell annotate` wrote it: nothing is read anew."),
]

_SPLITS = 8  # names of splits in a label; notes can hold anything


def factors(
    name: Name,
    split: Split = None,
    path: Where = None,
    limit: Limit = None,
    out: Out = None,
    seed: Seed = 0,
    annotated: Made = None,
    as_json: AsJson = False,
) -> None:
    """Show how mechanisms, acts and expressed emotions hang together, and what is typical of each label.

    Turns are annotated first, unless they have their factors. Writes factors.json, factors.md and figures as
    SVG and PNG: the analysis of CoMAE's §4.5, EmpatheticDialogues' Figure 3 and MEED2's Figure 2.

    Example: listenwell corpus factors empathetic_dialogues --split test --limit 500
    """
    from listenwell.corpora.sampling import Sampling
    from listenwell.evaluation.report.drawing import need_matplotlib
    from listenwell.files import written_whole
    from listenwell.papers.corpus_analysis.factor_figures import CAPTIONS, draw
    from listenwell.papers.corpus_analysis.factor_page import page, shortened
    from listenwell.papers.corpus_analysis.factors import analyse
    from listenwell.results.drawing import need_matplotlib
    from listenwell.serialization import dumps, indented

    need_matplotlib()  # before the long work
    source = _source(name, split, path, annotated)
    survey = _survey(source)
    source = _named(source, survey)
    work = _Work(source, Sampling(limit, seed), survey)
    analysis = analyse(work.dialogues(), seed)
    if not analysis.replies:
        raise _no_replies(source)
    folder = out or Path("runs") / "factors" / f"{name}-{source.label}"
    result = _result(work, analysis, seed)
    where = shortened(visible(source.split), 40)
    heading = f"{name} {where} · dialogues: {analysis.dialogues:,} · replies: {analysis.replies:,}"
    drawn = dict.fromkeys(file.stem for file in draw(analysis, heading, folder))
    facts = {
        "corpus": f"{name} {source.split}",
        "annotator": str(result["annotator"]),
        **result["conditions"],
    }
    for file, text in (
        ("factors.json", indented(result)),
        ("factors.md", page(analysis, facts, [(figure, CAPTIONS[figure]) for figure in drawn])),
    ):
        with written_whole(folder / file) as written:
            written.write(text.encode())
    if as_json:
        typer.echo(dumps(result))
    else:
        _show(analysis)
    for line in source.reader.report.lines():
        typer.echo(f"  {visible(line)}", err=True)
    typer.echo(visible(f"Written to {folder}: factors.json, factors.md and {len(drawn)} figures."), err=True)


@dataclass(frozen=True)
class _Source:
    """Where the dialogues come from."""

    name: str
    reader: "Reader"
    splits: tuple[str, ...]
    split: str
    """The splits in words."""
    label: str
    """Their name in the folder's."""
    annotated: Path | None = None
    wanted: str | None = None
    """The split to keep, where the dialogues of a file note their own."""

    def dialogues(self) -> "Iterator[Dialogue]":
        """All of them in order; what the reader skips is counted once, however often this is called."""
        for dialogue in self.everything():
            if self.wanted in (None, dialogue.note("split")):
                yield dialogue
            elif dialogue.note("split") is None:
                self.reader.report.skip("has no note of its split", dialogue.id)

    def everything(self) -> "Iterator[Dialogue]":
        """The same with those of other splits."""
        from listenwell.corpora import Report
        from listenwell.dialogue import Dialogue

        self.reader.report = Report()
        for split in self.splits:
            for item in self.reader.read(split):
                if isinstance(item, Dialogue):
                    yield item


@dataclass(frozen=True)
class _Survey:
    """What a first reading finds."""

    dialogues: int
    replies: int
    known: int
    """Replies with at least one factor that the analysis counts."""
    complete: int
    """Replies with mechanisms, act and tone."""
    splits: Counter[str | None]
    """Dialogues by their note of the split; None where they have none."""


@dataclass
class _Work:
    """The dialogues on their way to the analysis; annotated where they must be."""

    source: _Source
    sampling: "Sampling"
    survey: _Survey
    key: str | None = None
    """The annotator's, once there is one; of an annotated file the one that its dialogues note."""

    @property
    def needs_annotator(self) -> bool:
        """Whether anything is missing that an annotator could add."""
        return self.source.annotated is None and self.survey.complete < self.survey.replies

    def dialogues(self) -> "Iterator[Dialogue]":
        """Those of the sample, with factors."""
        from listenwell.progress import progress

        chosen = {place for place, _ in self.sampling.draw(range(self.survey.dialogues))}
        drawn = (one for place, one in enumerate(self.source.dialogues()) if place in chosen)
        if not self.needs_annotator:
            for one in drawn:
                self.key = one.note("annotator") or self.key
                yield one
            return
        from listenwell.annotators.annotator import Annotator

        annotator = Annotator.load()
        self.key, start = annotator.key, time.monotonic()
        with progress(
            f"annotating {self.source.name}", total=len(chosen), unit="dialogues", rate=True
        ) as advance:
            for dialogue in annotator.annotate_all(drawn):
                yield dialogue
                advance(1)
        seconds = max(time.monotonic() - start, 1e-9)
        typer.echo(f"{len(chosen):,} dialogues annotated, {len(chosen) / seconds:,.1f} a second.", err=True)

    def conditions(self) -> dict[str, str]:
        """Every switch that can move a number."""
        from listenwell.papers.corpus_analysis.factor_pairs import DRAWS
        from listenwell.papers.corpus_analysis.factor_words import PRIOR_WORDS, SEEN, TYPICAL

        total = self.survey.dialogues
        taken = min(self.sampling.limit or total, total)
        return {
            "dialogues": self.sampling.describe(total, taken),
            "factors": self._annotation(),
            "replies": "turns of the listener right after another person's",
            "pairs": "each mechanism of a reply makes one; in replies with a mechanism (CoMAE §4.4, §4.5), "
            "or in all, as the table says",
            "mutual information": "Shannon's, of the counts, in bits",
            "interval": f"95 %, {DRAWS:,} bootstrap samples of dialogues, numpy default_rng"
            f"({self.sampling.seed}), moved to the mean",
            "words": "listenwell.words, without marks",
            "typical words": f"log-odds, informative Dirichlet prior of {PRIOR_WORDS:g} words, z from "
            f"{TYPICAL} up, {SEEN} times or more",
        }

    def _annotation(self) -> str:
        if self.source.annotated is not None:
            return f"as they stand in {visible(self.source.annotated.name)}"
        return (
            "read by the annotators where the corpus gives none" if self.needs_annotator else "the corpus's"
        )


def _source(name: str, split: str | None, path: Path | None, annotated: Path | None) -> _Source:
    from listenwell.cli.corpus import chosen_splits, open_reader
    from listenwell.corpora.own import OwnJsonl
    from listenwell.errors import InputError, unknown_name

    reader = open_reader(name, path)
    if annotated is None:
        splits = chosen_splits(reader, split)
        label = splits[0] if len(splits) == 1 else "all"
        return _Source(name, reader, splits, "+".join(splits), label)
    if path is not None:
        raise InputError("--path and --annotated both say where to read.", "Give one of the two.")
    if split is not None and split not in reader.splits:
        raise unknown_name(f"split of {name}", split, reader.splits)
    if not annotated.expanduser().is_file():
        raise InputError(
            f"There is no file {annotated}.", f"Make it with: listenwell annotate {name} --out FILE"
        )
    label = split or annotated.stem
    return _Source(name, OwnJsonl(annotated), ("all",), label, label, annotated.expanduser(), split)


def _named(source: _Source, survey: _Survey) -> _Source:
    """An annotated file's source with the splits that are in it, in words."""
    if source.annotated is None or source.wanted is not None or not any(survey.splits):
        return source
    names = ["no split" if split is None else split for split in survey.splits]
    if len(names) > _SPLITS:
        names = [*names[:_SPLITS], "…"]
    return replace(source, split="+".join(names))


def _survey(source: _Source) -> _Survey:
    """Read once to know how much there is, and whether it has its factors."""
    from listenwell.dialogue import Factors
    from listenwell.errors import InputError
    from listenwell.papers.corpus_analysis.factors import replies
    from listenwell.progress import progress

    dialogues = found = known = complete = 0
    splits: Counter[str | None] = Counter()
    with progress(f"reading {source.name}", unit="dialogues") as advance:
        for dialogue in source.everything():
            advance(1)
            splits[dialogue.note("split")] += 1
            if source.wanted not in (None, dialogue.note("split")):
                continue
            dialogues += 1
            for _, turn in replies(dialogue):
                has = turn.factors or Factors()
                given = [value is not None for value in (has.mechanisms, has.act, has.tone)]
                found, known, complete = found + 1, known + any(given), complete + all(given)
    if source.wanted is not None and source.wanted not in splits:
        raise _no_split(source, splits)
    if not found:
        raise _no_replies(source)
    if source.annotated is not None and not known:
        raise InputError(
            f"No reply in {source.annotated} has mechanisms, act or tone.",
            f"Make it with: listenwell annotate {source.name} --out FILE",
        )
    return _Survey(dialogues, found, known, complete, splits)


def _no_split(source: _Source, splits: Counter[str | None]) -> Exception:
    from listenwell.errors import InputError

    there = ", ".join(visible(split) for split in list(splits)[:_SPLITS] if split)
    return InputError(
        f"No dialogue in {source.annotated} notes that it is of the split {source.wanted}"
        f"{f'; there are: {there}' if there else ', or of any'}.",
        f"Leave --split out, or make the file with: listenwell annotate {source.name} "
        f"--split {source.wanted} --out FILE",
    )


def _no_replies(source: _Source) -> Exception:
    from listenwell.errors import CorpusError

    return CorpusError(
        f"{source.name} {visible(source.split)} has no replies: no turn of the listener follows another "
        "person's.",
        "Name a corpus of conversations, such as empathetic_dialogues; a larger --limit can help too.",
    )


def _result(work: _Work, analysis: "Analysis", seed: int) -> dict[str, Any]:
    """All of factors.json."""
    from listenwell.files import hash_files
    from listenwell.results.store import environment

    reader, around = work.source.reader, environment()
    return {
        "task": "factors",
        "corpus": work.source.name,
        "split": visible(work.source.split),
        "count": analysis.replies,
        "data": hash_files(file for split in work.source.splits for file in reader.check(split)),
        "annotator": work.key,
        "seed": seed,
        "conditions": work.conditions(),
        **around,
        "versions": dict(around["versions"]),  # type: ignore[call-overload]
        **analysis.to_dict(),
    }


def _show(analysis: "Analysis") -> None:
    """The mutual information and the paper's three tables, in the terminal."""
    from listenwell.cli.result_tables import grid_table
    from listenwell.papers.corpus_analysis.factor_page import PAPER, information_grid, pair_grid

    grids = [information_grid(analysis)]
    grids += [pair_grid(table) for table in analysis.tables if table.pairing in PAPER]
    for grid in grids:
        if grid.rows:
            grid_table(grid)
