"""`listenwell study`: run grids of training recipes, and put what came out of them into the ledger."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from listenwell.sweeps.grid import Plan

RESULTS = Path("results")


def sweep(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="YAML files; see recipes/.")],
    parallel: Annotated[int, typer.Option(min=1, help="How many runs share the machine.")] = 1,
    only: Annotated[list[str] | None, typer.Option(metavar="ROW", help="A row to run; repeatable.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Only these seeds, such as 1,2.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only so many dialogues of each split, for a rehearsal.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(min=0, help="Stop after so long.")] = None,
    root: Annotated[Path, typer.Option(help="Where the runs' folders are.")] = Path("runs"),
    aggregate_only: Annotated[
        bool, typer.Option("--gather-only", help="Run nothing; gather what is there.")
    ] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="Gather also rows with missing seeds; their conditions say so.")
    ] = False,
    results: Annotated[
        Path | None,
        typer.Option(help="The folder for the rows' result files; results/, for a rehearsal none."),
    ] = None,
) -> None:
    """Run studies: grids of training recipes, several seeds a row. Then gather them: one result a row.

    Stopped at any moment, the same command goes on. On a bare machine: python -m listenwell.sweeps.run
    """
    from listenwell.cli.terminal import visible
    from listenwell.progress import progress
    from listenwell.sweeps.grid import choose, read_plans
    from listenwell.sweeps.run import run_all, seed_list

    def say(line: str) -> None:
        typer.echo(visible(line), err=True)

    plans = read_plans(files, root, limit)
    runs = choose(plans, only or (), seed_list(seeds) if seeds else ())
    code = 0
    if not aggregate_only:
        with progress("running the study", len(runs), "runs") as advance:
            outcome = run_all(runs, parallel, seconds, say, advance)
        say(f"study: {outcome}")
        code = outcome.code
    if limit is not None and results is None:
        say("A rehearsal is not gathered: name a folder with --results to do it.")
    elif code and not partial:
        say("Nothing is gathered: --gather-only --partial takes what is there.")
    else:
        _aggregate(plans, results or RESULTS, only or (), partial)
    raise typer.Exit(code)


def _aggregate(plans: "Sequence[Plan]", folder: Path, only: "Sequence[str]", partial: bool) -> None:
    """Write the rows and name the files."""
    from listenwell.cli.terminal import visible
    from listenwell.sweeps.aggregate import aggregate

    gathered = aggregate(plans, folder, only, partial)
    for line in gathered.lacking:
        typer.echo(visible(f"missing: {line}"), err=True)
    for file in gathered.files:
        typer.echo(visible(f"Written: {file}"))
