"""`listenwell rank`: the best replies of a large pool for a talk."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from listenwell.cli.options import AsJson, EncoderWeights, OldPersonaLines, PersonaLines
from listenwell.cli.terminal import one_line, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from listenwell.dialogue import Dialogue
    from listenwell.retrieval.search import PoolReply, PoolSearch

Context = Annotated[
    list[str],
    typer.Option(
        "--context",
        help="What was said; repeat it for a talk, whose last turn is answered. - reads standard input.",
    ),
]
PoolName = Annotated[
    str, typer.Option(help="A file (a reply a line, or JSONL), a corpus, or CORPUS:SPLIT; train otherwise.")
]
Top = Annotated[int, typer.Option(min=1, help="How many replies to show.")]
Candidates = Annotated[
    int, typer.Option(min=1, help="How many of the quick search the full ranker reads again.")
]
Longest = Annotated[int, typer.Option(min=1, help="Characters of the longest reply that is kept.")]
RankerFolder = Annotated[
    Path | None, typer.Option("--ranker", help="Your own ranker's folder, instead of the shipped one.")
]

Runs = Annotated[list[Path], typer.Argument(metavar="RUN…", help="Training runs or checkpoints.")]
ScoresFolder = Annotated[Path, typer.Option("--out", help="The folder for the scores.")]
CorpusName = Annotated[str, typer.Option(help="The corpus whose replies are ranked.")]
Splits = Annotated[list[str] | None, typer.Option("--split", help="Repeatable; otherwise valid and test.")]
PoolCount = Annotated[int | None, typer.Option("--pools", help="Only so many pools of each split.")]
Unshuffled = Annotated[bool, typer.Option("--unshuffled", help="Also the test split's neighbours as pools.")]


def rank(
    context: Context,
    pool: PoolName,
    persona: PersonaLines = None,
    top: Top = 10,
    candidates: Candidates = 100,
    longest: Longest = 1000,
    ranker: RankerFolder = None,
    weights: EncoderWeights = None,
    as_json: AsJson = False,
    persona_line: OldPersonaLines = None,
) -> None:
    """Choose the best replies from a pool of up to millions.

    The pool is encoded once and kept in the cache folder; a run that was stopped goes on where it was by the
    same command. Empty, doubled and over-long replies are left out and counted.

    Example: listenwell rank --context "I lost my job." --pool empathetic_dialogues
    """
    import time

    from listenwell.retrieval.pool import find_pool

    dialogue = _dialogue(context, [*(persona or ()), *(persona_line or ())])
    replies_to_rank = find_pool(pool, longest)

    from listenwell.rankers.ranker import Ranker
    from listenwell.retrieval.search import PoolSearch

    selector = Ranker.load(ranker, weights)
    try:
        search = PoolSearch.open(selector, replies_to_rank)
    except KeyboardInterrupt:
        typer.echo("\nStopped. What is encoded is kept: the same command goes on from there.", err=True)
        raise typer.Exit(130) from None
    begin = time.perf_counter()
    replies = search.search(dialogue, top, candidates)
    seconds = time.perf_counter() - begin
    if as_json:
        from listenwell.serialization import dumps

        typer.echo(dumps(_as_json(dialogue, search, replies, seconds)))
    else:
        _table(replies)
    for line in _remarks(search, seconds):
        typer.echo(visible(line), err=True)


def _dialogue(context: "Sequence[str]", persona: "Sequence[str]") -> "Dialogue":
    """The turns in order; the last is the other person's, and before it they take turns."""
    from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Persona, Turn
    from listenwell.errors import InputError

    if list(context).count("-") > 1:
        raise InputError("Standard input can be read once.", "Give - for one --context only.")
    texts = [sys.stdin.buffer.read().decode("utf-8", "replace") if text == "-" else text for text in context]
    if any(not text.strip() for text in texts):
        raise InputError("A --context is empty.", "Say something in each.")
    turns = tuple(
        Turn(SPEAKER if (len(texts) - index) % 2 else LISTENER, text) for index, text in enumerate(texts)
    )
    return Dialogue(turns, personas=(Persona(LISTENER, tuple(persona)),) if persona else ())


def _as_json(
    dialogue: "Dialogue", search: "PoolSearch", replies: "Sequence[PoolReply]", seconds: float
) -> dict[str, Any]:
    """The answer for programs."""
    index = search.index
    return {
        # `place` is how earlier releases called the index.
        "replies": [{**reply.to_dict(), "place": reply.index} for reply in replies],
        "context": dialogue.to_dict(),
        "ranker": search.selector.name,
        "pool": {
            "name": index.name,
            "replies": index.contents.count,
            "hash": index.key.pool,
            "left_out": dict(index.contents.skipped),
        },
        "seconds": round(seconds, 4),
        "notices": list(search.notices),
    }


def _table(replies: "Sequence[PoolReply]") -> None:
    """A reply a line, as text and never as markup."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold")
    for title in ("", "score", "first"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("reply", overflow="fold")
    for number, reply in enumerate(replies, start=1):
        text = Text(one_line(reply.text))
        table.add_row(str(number), f"{reply.score:.2f}", f"{reply.first_score:.2f}", text)
    Console().print(table)


def _remarks(search: "PoolSearch", seconds: float) -> list[str]:
    """What a user should know of the pool, for people."""
    contents = search.index.contents
    left_out = sum(count for _, count in contents.skipped)
    cleaned = f"{left_out:,} left out" if left_out else "nothing left out"
    figures = f"{contents.count:,} replies in {search.index.name}, {cleaned}; searched in {seconds:.3f} s."
    return [figures, *(f"  {remark}" for remark in contents.remarks), *search.notices]


def score_pools(
    runs: Runs,
    out: ScoresFolder,
    corpus: CorpusName = "empathetic_dialogues",
    split: Splits = None,
    pools: PoolCount = None,
    unshuffled: Unshuffled = False,
) -> None:
    """Score every pool of a split with trained rankers, and keep the scores.

    `listenwell evaluate rankers` and `listenwell ensemble` read them from there. A stopped run continues by
    the same command.

    Example: listenwell score-pools runs/cobert --out runs/scores --split valid
    """
    from listenwell.metrics import recall_at
    from listenwell.rankers.ensemble import load_scorer
    from listenwell.rankers.scoring import Pools, pool_scores, ranks

    for folder in runs:
        scorer = load_scorer(folder)
        for name in split or ("valid", "test"):
            for shuffled in (True, False) if unshuffled and name == "test" else (True,):
                part = Pools(corpus, name, shuffled, most=pools)
                recall = recall_at(ranks(pool_scores(scorer, part, out)), 1)
                typer.echo(visible(f"{folder}: {part}: R@1 {recall:.2f}"))
