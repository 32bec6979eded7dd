"""`listenwell results`: print the tables of all results and write them to the docs."""

from pathlib import Path
from typing import Annotated

import typer


def results(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail where the docs disagree with the results.")
    ] = False,
    figures: Annotated[
        bool, typer.Option("--figures", help="Draw the figures as well, as SVG and PNG.")
    ] = False,
    folder: Annotated[Path, typer.Option("--results", help="The folder with the result files.")] = Path(
        "results"
    ),
    docs: Annotated[Path, typer.Option(help="The folder that gets results.md and figures/.")] = Path("docs"),
) -> None:
    """Print one section a task: ours, the papers', the gap, the conditions, the command.

    The same goes to docs/results.md, and with --figures the pictures to docs/figures.
    """
    from listenwell.cli.result_tables import grid_table
    from listenwell.evaluation.report.page import page_problems, write_page
    from listenwell.evaluation.report.tables import figure_grids, gap_grid, read_results, tasks

    if check:
        if problems := page_problems(folder, docs):
            typer.echo("\n".join(problems), err=True)
            raise typer.Exit(1)
        typer.echo("results: docs and result files agree")
        return
    found = read_results(folder)
    if figures:
        from listenwell.evaluation.report.figures import draw

        for file in draw(found, docs / "figures"):
            typer.echo(f"Drawn: {file}", err=True)
    typer.echo(f"Written: {write_page(found, docs)}", err=True)
    for task in tasks(found):
        typer.echo(f"\n{task}")
        for grid in (*figure_grids(task, found), gap_grid(task, found)):
            if grid.rows:
                grid_table(grid)
