"""`listenwell preference`: ratings, preference pairs and the reward model."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from listenwell.cli.options import CorpusPath

if TYPE_CHECKING:
    from listenwell.results.store import Result

preference = typer.Typer(
    no_args_is_help=True, help="Collect ratings, make preference pairs, fit a reward model."
)

Ratings = Annotated[
    list[Path], typer.Argument(help="Folders of rated sheets, or compact files (data/ratings/README.md).")
]
Corpus = Annotated[str, typer.Option(help="The corpus that was replied to.")]
Out = Annotated[Path, typer.Option(help="The file to write.")]
Appended = Annotated[Path, typer.Option(help="The JSONL file; pairs are appended.")]
Raters = Annotated[str, typer.Option(help="Who the raters were, for the conditions of the result.")]
Keep = Annotated[Path, typer.Option(help="The folder for the results.")]
Seed = Annotated[int, typer.Option(min=0, help="Of everything that is drawn.")]


Split = Annotated[str, typer.Option(help="Of the corpus that was replied to.")]


@preference.command()
def sheets(
    folder: Annotated[Path, typer.Argument(help="The folder to write.")],
    systems: Annotated[
        list[str], typer.Argument(help="NAME=FILE: a replies.jsonl, or MoEL's or MIME's file.")
    ],
    candidates: Annotated[int, typer.Option(help="Show so many candidates of the first file instead.")] = 0,
    count: Annotated[int, typer.Option(help="Contexts.")] = 80,
    per: Annotated[int, typer.Option(help="Contexts on a sheet.")] = 20,
    seed: Seed = 0,
    corpus: Corpus = "empathetic_dialogues",
    split: Split = "test",
    path: CorpusPath = None,
) -> None:
    """Write blind sheets for raters: replies of several systems to the same contexts, in random order.

    Example: listenwell preference sheets runs/rated ours=runs/ours/replies.jsonl --candidates 5 --split train
    """
    import random

    from listenwell.corpora import CORPORA
    from listenwell.corpora.sampling import Sampling, example_id
    from listenwell.errors import InputError
    from listenwell.evaluation.report.side_by_side import read_column
    from listenwell.files import sha256
    from listenwell.preference import rating_sheets
    from listenwell.preference.rating_sheets import PERSON, Offer

    loader = CORPORA.load(corpus)(path)
    loader.check(split)
    named = [option.partition("=") for option in systems]
    if not all(name and equals and file for name, equals, file in named):
        raise InputError("A system is given as NAME=FILE.", "Such as: ours=runs/ours/replies.jsonl")
    known = rating_sheets.candidates_of(Path(named[0][2])) if candidates else {}
    columns = [] if candidates else [read_column(name, Path(file)) for name, _, file in named]
    draw, offered = random.Random(seed), []
    for index, example in enumerate(loader.examples(split)):
        name = example_id(example, index)
        if name in known:
            shown = rating_sheets.candidate_offers(known[name], example, candidates, draw)
            offered.append((name, example, shown))
        elif columns:
            replies = {column.name: column.reply(name, example) for column in columns}
            offers = {system: Offer(reply.text, reply.plan) for system, reply in replies.items() if reply}
            if len(offers) == len(columns):
                offered.append((name, example, {PERSON: Offer(example.reply.text)} | offers))
    files = tuple(f"{name}: {Path(file).name}, sha256 {sha256(Path(file))[:12]}" for name, _, file in named)
    about = rating_sheets.Key(corpus, split, "", files, ())
    key = rating_sheets.write_sheets(folder, offered, Sampling(count, seed), per, about)
    typer.echo(f"{folder}: {len(key.entries)} contexts on {key.entries[-1].sheet} sheets")


@preference.command()
def compact(folder: Annotated[Path, typer.Argument(help="A folder of rated sheets.")], out: Out) -> None:
    """Write a folder's ratings as JSON lines without any text of the corpus, to be committed.

    Example: listenwell preference compact runs/rated --out data/ratings/candidates-train.jsonl
    """
    from listenwell.preference.ratings import compact_ratings

    typer.echo(f"{out}: {compact_ratings(folder, out):,} ratings")


@preference.command()
def score(
    ratings: Annotated[Path, typer.Argument(help="A folder of rated sheets, or a compact file.")],
    raters: Raters,
    keep: Keep,
    ours: Annotated[
        list[str] | None, typer.Option(help="NAME=FOLDER with the run.json of its replies.")
    ] = None,
    people: Annotated[str, typer.Option(help="The name of the row of people's replies.")] = "human",
) -> None:
    """Write a result of every rated system, with the raters' agreement."""
    from listenwell.preference.score import checkpoint_of, results_of

    results = results_of(ratings, raters, dict(map(checkpoint_of, ours or ())), people)
    _write(results, keep)
    typer.echo(dict(results[0].conditions)["rater agreement"])


@preference.command()
def pairs(
    checkpoint: Annotated[
        Path, typer.Argument(help="A planned generator's checkpoint, or its run's folder.")
    ],
    annotated: Annotated[Path, typer.Option(help="The folder that holds CORPUS/SPLIT.jsonl.")],
    out: Annotated[Path, typer.Option(help="The JSONL file; a stopped run goes on.")],
    negatives: Annotated[
        Literal["both", "own", "mismatched", "hard"],
        typer.Option(help="Rejected replies: the generator's own, mismatched ones, both, or hard negatives."),
    ] = "both",
    corpus: Corpus = "empathetic_dialogues",
    split: Split = "train",
    count: Annotated[int, typer.Option(help="Contexts; 0 takes all.")] = 0,
    seed: Seed = 1,
    rows: Annotated[int | None, typer.Option(help="Replies in a batch: 256 on a GPU, or 8.")] = None,
    temperature: Annotated[float | None, typer.Option(help="Of the generator's own replies.")] = None,
) -> None:
    """Write preference pairs from an annotated corpus, to train with DPO."""
    from dataclasses import replace

    import torch

    from listenwell.errors import CorpusError
    from listenwell.preference import pairs as making
    from listenwell.preference.hard_negatives import hard_negative_pairs

    file = annotated / corpus / f"{split}.jsonl"
    if not file.is_file():
        command = f"listenwell annotate {corpus} --split {split} --top 1 --out {file}"
        raise CorpusError(f"There is no {file}.", f"Write it: {command}")
    default = making.GPU_ROWS if torch.cuda.is_available() else making.CPU_ROWS
    settings = making.Settings(count, seed, default if rows is None else rows)
    if temperature is not None:
        settings = replace(settings, temperature=temperature)
    ways = {
        "both": making.own_and_mismatched_pairs,
        "own": making.own_pairs,
        "mismatched": making.mismatched_pairs,
        "hard": hard_negative_pairs,
    }
    counts = making.make_pairs(checkpoint, file, out, settings, ways[negatives])
    typer.echo(f"{out}: {', '.join(f'{n:,} {source}' for source, n in sorted(counts.items()))} pairs")


@preference.command("on-policy-pairs")
def on_policy(
    replies: Annotated[Path, typer.Argument(help="The replies.jsonl of a listener with several candidates.")],
    out: Appended,
    corpus: Corpus = "empathetic_dialogues",
    split: Split = "train",
    gap: Annotated[float, typer.Option(help="Least difference of the two totals.")] = 1.5,
) -> None:
    """Write preference pairs of the candidate the reranker puts first against the last."""
    from listenwell.preference.candidate_pairs import ON_POLICY, on_policy_pairs
    from listenwell.preference.pairs import add_pairs
    from listenwell.preference.ratings import contexts_of

    rows = list(on_policy_pairs(replies, contexts_of(corpus, split), gap))
    add_pairs(out, rows)
    typer.echo(f"{out}: {len(rows):,} {ON_POLICY} pairs")


@preference.command("rated-pairs")
def rated(
    ratings: Ratings,
    out: Appended,
    split: Split = "train",
    gap: Annotated[float, typer.Option(help="Least difference of the two overall ratings.")] = 1.0,
    each: Annotated[int, typer.Option(help="Pairs of a context at most.")] = 3,
    plan_drift: Annotated[
        int, typer.Option(help="Besides, pairs of a context that keep replies to their plans.")
    ] = 0,
    writers: Annotated[
        bool,
        typer.Option(
            "--writers",
            help="Also prefer the writers' replies of our own conversations, in the plain manner.",
        ),
    ] = False,
) -> None:
    """Write preference pairs of rated replies, to train a soft prompt or an adapter with DPO."""
    from collections import Counter

    from listenwell.preference.candidate_pairs import (
        plain_and_stateful,
        plan_drift_pairs,
        rated_pairs,
        writer_pairs,
    )
    from listenwell.preference.pairs import add_pairs
    from listenwell.preference.ratings import rated_contexts
    from listenwell.training.preference_pairs import Pair

    contexts, rows = rated_contexts(ratings, split), list[Pair]()
    if writers:
        contexts = [(plain_and_stateful(dialogue), context) for dialogue, context in contexts]
        rows += writer_pairs(contexts)
    for dialogue, context in contexts:
        rows += rated_pairs(dialogue, context, gap, each)
        rows += plan_drift_pairs(dialogue, context, plan_drift)
    add_pairs(out, rows)
    counts = Counter(pair.source for pair in rows)
    kinds = ", ".join(f"{count:,} {source}" for source, count in counts.items()) or "no"
    typer.echo(f"{out}: {kinds} pairs of {len(contexts):,} contexts")


@preference.command("fit-reward")
def fit(
    ratings: Ratings,
    out: Annotated[Path, typer.Option(help="The folder; RUN/reward_model is found where RUN trained it.")],
    generator: Annotated[
        Path | None,
        typer.Option("--generator", "--speaker", help="Whose replies they are; the shipped one's."),
    ] = None,
    split: Split = "train",
    ridge: Annotated[float | None, typer.Option(help="Strength of the regularization; 3000.")] = None,
    held_out: Annotated[list[Path] | None, typer.Option(help="Ratings of valid, to measure on.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Fit to so many contexts, drawn at random; each takes a second.")
    ] = None,
) -> None:
    """Fit the reward model of a generator to ratings of its replies."""
    from listenwell.generators.planned import SHIPPED
    from listenwell.generators.reward_model import RIDGE
    from listenwell.preference.fit_reward import fit_reward

    strength = RIDGE if ridge is None else ridge
    typer.echo(
        json.dumps(fit_reward(ratings, generator or SHIPPED, out, split, strength, held_out or (), limit))
    )


@preference.command()
def agreement(
    ratings: Annotated[
        Path, typer.Argument(help="Ratings of candidates: a folder of sheets, or a compact file.")
    ],
    replies: Annotated[Path, typer.Argument(help="The replies.jsonl that the candidates come from.")],
    raters: Raters,
    keep: Keep,
) -> None:
    """Write how far each reranking feature agrees with raters."""
    from listenwell.preference.agreement import results_of

    _write(results_of(ratings, replies, raters), keep)


def _write(results: "list[Result]", keep: Path) -> None:
    from listenwell.results.store import file_name, write_result

    for result in results:
        write_result(result, keep / file_name(result))
        typer.echo(f"{result.system}: {dict(result.metrics)}")
