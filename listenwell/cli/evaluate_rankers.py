"""`listenwell evaluate rankers` and `listenwell ensemble`: rankers measured, and joined to one."""

from pathlib import Path
from typing import Annotated

import typer

from listenwell.cli.options import AsJson
from listenwell.cli.terminal import visible

SCORES = Path("runs") / "scores"
"""Where scores of pools are kept."""


def of_rankers(
    folders: list[Path] | None,
    part: tuple[str, str, Path | None, int | None],
    system: str | None,
    places: tuple[Path, Path | None],
    own: bool,
    as_json: bool,
) -> None:
    """Measure rankers; several folders are seeds of one recipe.

    Args:
        folders: of trained rankers; the shipped one where there is none.
        part: corpus, split, path and number of pools.
        system: the row's name.
        places: the folder for the result, and another for a copy.
        own: only options of rankers were given.
        as_json: print the result for programs.
    """
    from listenwell.cli.result_tables import show_result
    from listenwell.errors import InputError
    from listenwell.evaluation.ranking import evaluate_rankers
    from listenwell.rankers.ranker import Ranker
    from listenwell.rankers.scoring import Pools
    from listenwell.results.store import file_name, write_result

    if not own:
        raise InputError(
            "Rankers are measured on pools of replies.",
            "Give --ranker, --corpus, --path, --split, --limit, --out, --keep or --system.",
        )
    corpus, split, path, most = part
    given = Pools(corpus, split, path=path, most=most)
    chosen: list[Path | None] = [*folders] if folders else [None]
    scorers = [Ranker.load(folder).scorer for folder in chosen]
    result = evaluate_rankers(scorers, system or scorers[0].name, given, SCORES)
    for place in filter(None, places):
        write_result(result, place / file_name(result))
    show_result(result, places[0], as_json)


def ensemble(
    member: Annotated[list[Path], typer.Argument(help="Runs or checkpoints of rankers (or of a generator).")],
    out: Annotated[Path, typer.Option(help="The ensemble's folder.")],
    corpus: Annotated[
        str, typer.Option(help="Whose pools the weights are fitted on.")
    ] = "empathetic_dialogues",
    split: Annotated[str, typer.Option(help="Which part; never test.")] = "valid",
    pools: Annotated[int | None, typer.Option(min=1, help="Only so many pools of 100.")] = None,
    as_json: AsJson = False,
) -> None:
    """Join rankers to one: weights under which the true replies of validation are likeliest.

    The ensemble is a checkpoint like any ranker: `listenwell evaluate rankers --ranker FOLDER` measures it,
    `listenwell rank --ranker FOLDER` asks it.
    """
    import json

    from listenwell.evaluation.ranking import fit_ensemble
    from listenwell.rankers.scoring import Pools

    found = fit_ensemble(member, Pools(corpus, split, most=pools), SCORES, out)
    weights = dict(zip([str(place) for place in member], found.weights, strict=True))
    if as_json:
        typer.echo(json.dumps({"ensemble": str(out), "weights": weights}, ensure_ascii=False))
        return
    for name, weight in weights.items():
        typer.echo(f"{weight:10.4f}  {visible(name)}")
    typer.echo(f"Written to {out}.", err=True)
