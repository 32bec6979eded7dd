"""`listenwell corpus factors` and `listenwell corpus listeners`: the papers' analyses of a corpus."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from listenwell.cli.options import AnySplit, AsJson, CorpusPath
from listenwell.cli.terminal import visible

if TYPE_CHECKING:
    from listenwell.corpora import CorpusLoader
    from listenwell.dialogue import Dialogue
    from listenwell.errors import CorpusError
    from listenwell.papers.corpus_analysis.listeners import Comparison

Name = Annotated[str, typer.Argument(help="A corpus; `listenwell corpus list` shows them.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only so many dialogues, drawn with the seed.")]
Out = Annotated[Path | None, typer.Option(help="The folder for tables and figures; otherwise under runs/.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the sample, the intervals and the random sets.")]
Annotations = Annotated[
    Path | None,
    typer.Option("--annotated", help="The corpus as `listenwell annotate` wrote it: not annotated again."),
]
Runs = Annotated[int, typer.Option(min=2, help="How often two random sets are drawn.")]
Least = Annotated[
    int, typer.Option(min=1, help="Leave out emotions whose second listener has fewer replies.")
]
_SPLITS = 8  # names of splits in a heading; notes can hold anything


def factors(
    name: Name,
    split: AnySplit = None,
    path: CorpusPath = None,
    limit: Limit = None,
    out: Out = None,
    seed: Seed = 0,
    annotated: Annotations = None,
    as_json: AsJson = False,
) -> None:
    """Show how mechanisms, acts and expressed emotions depend on each other, and the words of each label.

    Turns without factors are annotated first. Writes factors.json, factors.md and figures as SVG and PNG: the
    analysis of CoMAE's §4.5, EmpatheticDialogues' Figure 3 and MEED2's Figure 2.

    Example: listenwell corpus factors empathetic_dialogues --split test --limit 500
    """
    from listenwell.corpora.sampling import Sampling
    from listenwell.results.drawing import need_matplotlib

    need_matplotlib()  # before the long work
    from listenwell.papers.corpus_analysis import factor_report
    from listenwell.papers.corpus_analysis.factors import analyse, conditions

    loader, splits, dialogues, part = _dialogues(name, split, path, annotated)
    sampling = Sampling(limit, seed)
    drawn = [dialogue for _, dialogue in sampling.draw(dialogues)] if dialogues else []
    chosen, annotator, source = _with_factors(name, drawn, annotated)
    analysis = analyse(chosen, seed)
    sample = sampling.describe(len(dialogues), len(drawn))
    stated = {"dialogues": sample, "factors": source, **conditions(seed)}
    label = split or (annotated.stem if annotated else "all" if len(splits) > 1 else splits[0])
    folder = out or Path("runs") / "factors" / f"{name}-{label}"
    about = {"split": visible(part), "annotator": annotator, "seed": seed, "count": analysis.replies}
    result = _about("factors", name, loader, splits) | about | {"conditions": stated} | analysis.to_dict()
    heading = f"{name} {factor_report.shortened(visible(part), 40)}"
    facts = {"corpus": f"{name} {part}", "annotator": str(annotator), **stated}
    factor_report.write_report(analysis, heading, facts, folder)
    _finish(folder, result, factor_report.cross_grids(analysis)[:4], loader.report.lines(), as_json)


def listeners(
    name: Name,
    split: AnySplit = None,
    path: CorpusPath = None,
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
    from listenwell.corpora import CORPORA
    from listenwell.metrics.checks import library
    from listenwell.progress import progress
    from listenwell.results.drawing import need_matplotlib

    need_matplotlib()  # before the long work
    library("sklearn.feature_extraction.text", "scikit-learn", "Comparing listeners by TF-IDF")
    from listenwell.papers.corpus_analysis.listeners import BY, compare, draw, finding, grid, reply_row

    loader = CORPORA.load(name)(path)
    splits = loader.chosen(split)
    rows, where = [], f"{name} {'+'.join(splits)}"
    with progress(f"reading {name}", unit="replies") as advance:
        for example in (example for part in splits for example in loader.examples(part)):
            rows.append(reply_row(example))
            advance(1)
    comparison = compare(rows, runs, least, seed)
    if comparison.pairs.empty:
        raise _not_comparable(where, loader, comparison, least)
    conditions = {
        "groups": BY[comparison.by],
        "listeners": f"the two with the most replies, {least} or more each; of equals who came first",
        "random sets": f"disjoint, as large as the listeners', from all replies to the emotion; {runs} draws "
        f"by numpy default_rng({seed}), without replacement",
        "similarity": "cosine of TF-IDF vectors, each set one document; smooth idf over all replies compared",
        "words": "listenwell.words, without marks",
        "spread": "standard deviation of the draws, n − 1",
    }
    folder = out or Path("runs") / "listeners" / f"{name}-{'all' if len(splits) > 1 else splits[0]}"
    about = {"split": "+".join(splits), "count": comparison.replies, "seed": seed, "conditions": conditions}
    result = _about("listeners", name, loader, splits) | about | comparison.to_dict()
    draw(comparison, f"{where} · replies: {comparison.replies:,}", folder)
    lines = [*_left_out(comparison), *loader.report.lines()]
    _finish(folder, result, [grid(comparison)], lines, as_json)
    if not as_json:
        typer.echo(finding(comparison))


def _left_out(comparison: "Comparison") -> list[str]:
    """Which replies were not compared, one line a reason."""
    from listenwell.papers.corpus_analysis.listeners import BY

    lines = [f"groups: {BY[comparison.by]}"] if comparison.by != "emotion" else []
    if comparison.unnamed:
        lines.append(f"left out {comparison.unnamed:,}: replies of nobody known")
    if comparison.unlabelled:
        lines.append(f"left out {comparison.unlabelled:,}: replies without an emotion")
    return lines + [f"left out {emotion}: {why}" for emotion, why in comparison.left_out.items()]


def _dialogues(
    name: str, split: str | None, path: Path | None, annotated: Path | None
) -> tuple["CorpusLoader", tuple[str, ...], list["Dialogue"], str]:
    """The loader, the splits it reads, their dialogues, and the splits in words.

    Of an annotated file, a split's dialogues are those that note it.
    """
    from listenwell.corpora import CORPORA
    from listenwell.corpora.own import OwnJsonl
    from listenwell.dialogue import Dialogue
    from listenwell.errors import InputError, unknown_name

    loader, advice = CORPORA.load(name)(path), f"Make it with: listenwell annotate {name} --out FILE"
    if annotated is not None:
        if path is not None:
            raise InputError("--path and --annotated both say where to read.", "Give one of the two.")
        if split is not None and split not in loader.splits:
            raise unknown_name(f"split of {name}", split, loader.splits)
        if not annotated.expanduser().is_file():
            raise InputError(f"There is no file {annotated}.", advice)
        loader = OwnJsonl(annotated.expanduser())
    splits = ("all",) if annotated else loader.chosen(split)
    items = [item for part in splits for item in loader.read(part) if isinstance(item, Dialogue)]
    if annotated is None:
        return loader, splits, items, "+".join(splits)
    noted = list(dict.fromkeys(item.note("split") for item in items))
    if split is None:
        names = [part or "no split" for part in noted[:_SPLITS]] + ["…"] * (len(noted) > _SPLITS)
        return loader, splits, items, "+".join(names) if any(noted) else annotated.stem
    if split not in noted:
        there = ", ".join(visible(part) for part in noted[:_SPLITS] if part)
        raise InputError(
            f"No dialogue in {annotated} notes that it is of the split {split}"
            f"{f'; there are: {there}' if there else ', or of any'}.",
            f"Leave --split out, or make it with: listenwell annotate {name} --split {split} --out FILE",
        )
    for item in items:
        if item.note("split") is None:
            loader.report.skip("has no note of its split", item.id)
    return loader, splits, [item for item in items if item.note("split") == split], split


def _with_factors(
    name: str, dialogues: list["Dialogue"], annotated: Path | None
) -> tuple[list["Dialogue"], str | None, str]:
    """The dialogues with factors, the annotator's key, and in words where the factors come from."""
    from listenwell.errors import CorpusError, InputError
    from listenwell.papers.corpus_analysis.factors import turn_table
    from listenwell.progress import progress

    turns = turn_table(dialogues)
    is_known = turns.loc[turns["is_reply"], ["mechanisms", "act", "expressed_emotion"]].notna().to_numpy()
    if not len(is_known):
        raise CorpusError(
            f"{name} has no replies: no turn of the listener follows another person's.",
            "Name a corpus of conversations, such as empathetic_dialogues; a larger --limit can help too.",
        )
    if annotated is not None and not is_known.any():
        advice = f"Make it with: listenwell annotate {name} --out FILE"
        raise InputError(f"No reply in {annotated} has mechanisms, act or expressed emotion.", advice)
    if annotated is not None or is_known.all():
        source = "the corpus's" if annotated is None else f"as they stand in {visible(annotated.name)}"
        keys = (dialogue.note("annotator") for dialogue in dialogues)
        return dialogues, next(filter(None, keys), None), source
    from listenwell.annotators.annotator import Annotator

    annotator, result = Annotator.load(), []
    with progress(f"annotating {name}", total=len(dialogues), unit="dialogues", rate=True) as advance:
        for dialogue in annotator.annotate_all(dialogues):
            result.append(dialogue)
            advance(1)
    return result, annotator.key, "predicted by the annotators where the corpus gives none"


def _not_comparable(
    where: str, loader: "CorpusLoader", comparison: "Comparison", least: int
) -> "CorpusError":
    """Why no two listeners can be compared, and what to do."""
    from listenwell.corpora.empathetic_dialogues import LISTENER_WORKER, EmpatheticDialogues
    from listenwell.errors import CorpusError

    if not comparison.replies:
        return CorpusError(f"{where} has no replies.", "Name a corpus of conversations, such as pec.")
    if comparison.unnamed == comparison.replies:
        advice = (
            "This copy's speaker_idx has 0 and 1 in place of workers' numbers: get the publisher's own files "
            "with `listenwell corpus download empathetic_dialogues --path FOLDER`, and give --path."
            if isinstance(loader, EmpatheticDialogues)
            else f"Name the person as the dialogue's `listener` and its turns' `speaker`, or in the note "
            f"`{LISTENER_WORKER}`; of the known corpora, empathetic_dialogues and pec name them."
        )
        return CorpusError(f"{where} does not say who listens: its replies name no person.", advice)
    if comparison.listeners < 2:
        return CorpusError(f"Only one person listens in all of {where}.", "Name one with several listeners.")
    problem = f"No emotion in {where} has two listeners with {least} replies or more each."
    return CorpusError(problem, "Give a smaller --least, or more of the corpus.")


def _about(task: str, name: str, loader: "CorpusLoader", splits: tuple[str, ...]) -> dict[str, Any]:
    """What every result file holds besides its settings and numbers."""
    from listenwell.files import hash_files
    from listenwell.results.store import environment

    data = hash_files(file for split in splits for file in loader.check(split))
    around: dict[str, Any] = environment()
    return {"task": task, "corpus": name, "data": data, **around, "versions": dict(around["versions"])}


def _finish(folder: Path, result: dict[str, Any], grids: list[Any], lines: list[str], as_json: bool) -> None:
    """Write TASK.json, print the tables or the JSON, and say on standard error what else there is."""
    from listenwell.cli.tables import grid_table
    from listenwell.files import written_whole
    from listenwell.serialization import dumps, indented

    with written_whole(folder / f"{result['task']}.json") as file:
        file.write(indented(result).encode())
    if as_json:
        typer.echo(dumps(result))
    for grid in grids if not as_json else ():
        if grid.rows:
            grid_table(grid)
    for line in lines:
        typer.echo(f"  {visible(line)}", err=True)
    files = ", ".join(sorted(path.name for path in folder.iterdir()))
    typer.echo(visible(f"Written to {folder}: {files}."), err=True)
