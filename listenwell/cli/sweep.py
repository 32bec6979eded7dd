"""`listenwell sweep`: run grids of training recipes, and aggregate their results over seeds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from listenwell.cli.options import Rehearsal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from listenwell.sweeps.grid import Sweep

RESULTS = Path("results")


def sweep(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="YAML files; see recipes/.")],
    parallel: Annotated[int, typer.Option(min=1, help="How many runs share the machine.")] = 1,
    only: Annotated[list[str] | None, typer.Option(metavar="ROW", help="A row to run; repeatable.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Only these seeds, such as 1,2.")] = None,
    limit: Rehearsal = None,
    seconds: Annotated[float | None, typer.Option(min=0, help="Stop after so long.")] = None,
    root: Annotated[Path, typer.Option(help="Where the runs' folders are.")] = Path("runs"),
    aggregate_only: Annotated[
        bool, typer.Option("--aggregate-only", "--gather-only", help="Run nothing; aggregate what is there.")
    ] = False,
    partial: Annotated[
        bool,
        typer.Option("--partial", help="Aggregate also rows with missing seeds; their conditions say so."),
    ] = False,
    results: Annotated[
        Path | None,
        typer.Option(help="The folder for the rows' result files; results/, for a rehearsal none."),
    ] = None,
) -> None:
    """Run grids of training recipes, several seeds a row. Then aggregate them: one result a row.

    Stopped at any moment, the same command goes on.
    """
    from listenwell.cli.terminal import visible
    from listenwell.progress import progress
    from listenwell.sweeps.grid import read_sweeps, select
    from listenwell.sweeps.run import run_all, seed_list

    def echo(line: str) -> None:
        typer.echo(visible(line), err=True)

    sweeps = read_sweeps(files, root, limit)
    runs = select(sweeps, only or (), seed_list(seeds) if seeds else ())
    code = 0
    if not aggregate_only:
        with progress("running the sweep", len(runs), "runs") as advance:
            outcome = run_all(runs, parallel, seconds, echo, advance)
        echo(f"sweep: {outcome}")
        code = outcome.code
    if limit is not None and results is None:
        echo("A rehearsal is not aggregated: name a folder with --results to do it.")
    elif code and not partial:
        echo("Nothing is aggregated: --aggregate-only --partial takes what is there.")
    else:
        _aggregate(sweeps, results or RESULTS, only or (), partial)
    raise typer.Exit(code)


def _aggregate(sweeps: "Sequence[Sweep]", folder: Path, only: "Sequence[str]", partial: bool) -> None:
    """Write the rows and name the files."""
    from listenwell.cli.terminal import visible
    from listenwell.sweeps.aggregate import aggregate

    aggregated = aggregate(sweeps, folder, only, partial)
    for line in aggregated.lacking:
        typer.echo(visible(f"missing: {line}"), err=True)
    for file in aggregated.files:
        typer.echo(visible(f"Written: {file}"))
