"""`listenwell corpus factors` and `listenwell corpus listeners`: the papers' analyses of a corpus."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from listenwell.cli.options import AsJson
from listenwell.cli.terminal import visible

if TYPE_CHECKING:
    from listenwell.corpora import CorpusLoader
    from listenwell.dialogue import Dialogue

Name = Annotated[str, typer.Argument(help="A corpus; `listenwell corpus list` shows them.")]
Split = Annotated[str | None, typer.Option(help="One split; otherwise every one that is there.")]
Where = Annotated[
    Path | None,
    typer.Option("--path", help="The corpus's folder or file; otherwise looked for under LISTENWELL_DATA."),
]
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
    split: Split = None,
    path: Where = None,
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
    _need("matplotlib", "pandas")  # before the long work
    from listenwell.corpora.sampling import Sampling
    from listenwell.papers.corpus_analysis import factor_report
    from listenwell.papers.corpus_analysis.factors import DRAWS, analyse
    from listenwell.papers.corpus_analysis.words import PRIOR_WORDS, SEEN, TYPICAL

    loader, splits, label = _corpus(name, split, path, annotated)
    dialogues, part = _dialogues(name, loader, splits, split, annotated)
    sampling = Sampling(limit, seed)
    drawn = [dialogue for _, dialogue in sampling.draw(dialogues)] if dialogues else []
    chosen, annotator, source = _annotated(name, drawn, annotated)
    analysis = analyse(chosen, seed)
    prior = f"log-odds, Dirichlet prior of {PRIOR_WORDS:g} words, z from {TYPICAL} up, {SEEN} times or more"
    conditions = {
        "dialogues": sampling.describe(len(dialogues), len(drawn)),
        "factors": source,
        "replies": "turns of the listener right after another person's",
        "pairs": "each mechanism of a reply makes a pair; of replies with one (CoMAE §4.4), or of all",
        "mutual information": "Shannon's, of the counts, in bits",
        "interval": f"95 %, {DRAWS:,} bootstrap samples of dialogues, default_rng({seed}), moved to the mean",
        "words": "listenwell.words, without marks",
        "typical words": prior,
    }
    folder = out or Path("runs") / "factors" / f"{name}-{label}"
    about = {"split": visible(part), "annotator": annotator, "seed": seed, "count": analysis.replies}
    result = (
        _result("factors", name, loader, splits, {**about, "conditions": conditions}) | analysis.to_dict()
    )
    counts = f"dialogues: {analysis.dialogues:,} · replies: {analysis.replies:,}"
    heading = f"{name} {factor_report.shortened(visible(part), 40)} · {counts}"
    figures = list(dict.fromkeys(file.stem for file in factor_report.draw(analysis, heading, folder)))
    facts = {"corpus": f"{name} {part}", "annotator": str(annotator), **conditions}
    page = factor_report.page(analysis, facts, figures)
    _write(folder, result, as_json, factor_report.grids(analysis)[:4], {"factors.md": page})
    _report(loader, folder, [])


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
    _need("matplotlib", "pandas", "sklearn.feature_extraction.text")  # before the long work
    from listenwell.papers.corpus_analysis.listeners import BY, compare, draw, finding, grid, reply_row
    from listenwell.progress import progress

    loader, splits, label = _corpus(name, split, path, None)
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
    folder = out or Path("runs") / "listeners" / f"{name}-{label}"
    about = {"split": "+".join(splits), "count": comparison.replies, "seed": seed, "conditions": conditions}
    result = _result("listeners", name, loader, splits, about) | comparison.to_dict()
    draw(comparison, f"{where} · replies: {comparison.replies:,}", folder)
    _write(folder, result, as_json, [grid(comparison)], {})
    if not as_json:
        typer.echo(finding(comparison))
    lines = [f"groups: {BY[comparison.by]}"] if comparison.by != "emotion" else []
    for count, what in (
        (comparison.unnamed, "of nobody known"),
        (comparison.unlabelled, "without an emotion"),
    ):
        lines += [f"left out {count:,}: replies {what}"] if count else []
    _report(
        loader, folder, lines + [f"left out {emotion}: {why}" for emotion, why in comparison.left_out.items()]
    )


def _need(*modules: str) -> None:
    """Raise the error that names the install command where a package is missing."""
    from importlib import import_module

    from listenwell.errors import MissingExtraError

    for module in modules:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            package, extra = ("scikit-learn", "bench") if module.startswith("sklearn") else (module, "plots")
            raise MissingExtraError(package, extra, "Analysing a corpus") from error


def _corpus(
    name: str, split: str | None, path: Path | None, annotated: Path | None
) -> tuple["CorpusLoader", tuple[str, ...], str]:
    """The loader, its splits, and their name in the folder's."""
    from listenwell.cli.corpus import chosen_splits, open_loader
    from listenwell.corpora.own import OwnJsonl
    from listenwell.errors import InputError, unknown_name

    loader = open_loader(name, path)
    if annotated is None:
        splits = chosen_splits(loader, split)
        return loader, splits, splits[0] if len(splits) == 1 else "all"
    if path is not None:
        raise InputError("--path and --annotated both say where to read.", "Give one of the two.")
    if split is not None and split not in loader.splits:
        raise unknown_name(f"split of {name}", split, loader.splits)
    if not annotated.expanduser().is_file():
        raise InputError(
            f"There is no file {annotated}.", f"Make it with: listenwell annotate {name} --out FILE"
        )
    return OwnJsonl(annotated.expanduser()), ("all",), split or annotated.stem


def _dialogues(
    name: str, loader: "CorpusLoader", splits: tuple[str, ...], split: str | None, annotated: Path | None
) -> tuple[list["Dialogue"], str]:
    """All dialogues of the splits, those of one split of an annotated file, and the splits in words."""
    from listenwell.dialogue import Dialogue
    from listenwell.errors import InputError

    items = [item for part in splits for item in loader.read(part) if isinstance(item, Dialogue)]
    if annotated is None:
        return items, "+".join(splits)
    noted = list(dict.fromkeys(item.note("split") for item in items))
    if split is None:
        names = [part or "no split" for part in noted[:_SPLITS]] + ["…"] * (len(noted) > _SPLITS)
        return items, "+".join(names) if any(noted) else annotated.stem
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
    return [item for item in items if item.note("split") == split], split


def _annotated(
    name: str, dialogues: list["Dialogue"], annotated: Path | None
) -> tuple[list["Dialogue"], str | None, str]:
    """The dialogues with factors, the annotator's key, and in words where the factors come from."""
    from listenwell.dialogue import Factors
    from listenwell.errors import CorpusError, InputError
    from listenwell.papers.corpus_analysis.factors import is_reply
    from listenwell.progress import progress

    replies = [
        turn.factors or Factors()
        for dialogue in dialogues
        for index, turn in enumerate(dialogue.turns)
        if is_reply(dialogue, index)
    ]
    known = [
        [value is not None for value in (factors.mechanisms, factors.act, factors.tone)]
        for factors in replies
    ]
    if not replies:
        raise CorpusError(
            f"{name} has no replies: no turn of the listener follows another person's.",
            "Name a corpus of conversations, such as empathetic_dialogues; a larger --limit can help too.",
        )
    if annotated is not None and not any(map(any, known)):
        raise InputError(
            f"No reply in {annotated} has mechanisms, act or tone.",
            f"Make it with: listenwell annotate {name} --out FILE",
        )
    if annotated is not None or all(map(all, known)):
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


def _not_comparable(where: str, loader: "CorpusLoader", comparison: Any, least: int) -> Exception:  # noqa: ANN401
    """Why no two listeners can be compared, and what to do."""
    from listenwell.corpora.empathetic_dialogues import LISTENER_WORKER, EmpatheticDialogues
    from listenwell.errors import CorpusError

    problem = f"No emotion in {where} has two listeners with {least} replies or more each."
    advice = "Give a smaller --least, or more of the corpus."
    if not comparison.replies:
        problem, advice = f"{where} has no replies.", "Name a corpus of conversations, such as pec."
    elif comparison.unnamed == comparison.replies:
        problem = f"{where} does not say who listens: its replies name no person."
        advice = (
            "This copy's speaker_idx has 0 and 1 in place of workers' numbers: get the publisher's own files "
            "with `listenwell corpus download empathetic_dialogues --path FOLDER`, and give --path."
            if isinstance(loader, EmpatheticDialogues)
            else f"Name the person as the dialogue's `listener` and its turns' `speaker`, or in the note "
            f"`{LISTENER_WORKER}`; of the known corpora, empathetic_dialogues and pec name them."
        )
    elif comparison.listeners < 2:
        problem, advice = (
            f"Only one person listens in all of {where}.",
            "Name a corpus with several listeners.",
        )
    return CorpusError(problem, advice)


def _result(
    task: str, name: str, loader: "CorpusLoader", splits: tuple[str, ...], about: dict[str, Any]
) -> dict[str, Any]:
    """What every result file holds besides its numbers."""
    from listenwell.files import hash_files
    from listenwell.results.store import environment

    around = environment()
    data = hash_files(file for split in splits for file in loader.check(split))
    versions = dict(around["versions"])  # type: ignore[call-overload]
    return {"task": task, "corpus": name, "data": data, **about, **around, "versions": versions}


def _write(
    folder: Path, result: dict[str, Any], as_json: bool, grids: list[Any], pages: dict[str, str]
) -> None:
    """Write TASK.json and the pages, and print the tables, or the JSON."""
    from listenwell.cli.result_tables import grid_table
    from listenwell.files import written_whole
    from listenwell.serialization import dumps, indented

    for name, text in {f"{result['task']}.json": indented(result), **pages}.items():
        with written_whole(folder / name) as file:
            file.write(text.encode())
    if as_json:
        typer.echo(dumps(result))
    for grid in grids if not as_json else ():
        if grid.rows:
            grid_table(grid)


def _report(loader: "CorpusLoader", folder: Path, lines: list[str]) -> None:
    files = ", ".join(sorted(file.name for file in folder.iterdir()))
    for line in (*lines, *loader.report.lines()):
        typer.echo(f"  {visible(line)}", err=True)
    typer.echo(visible(f"Written to {folder}: {files}."), err=True)
