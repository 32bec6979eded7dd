"""`listenwell results`: write the results pages and figures, or check them."""

from pathlib import Path
from typing import Annotated

import typer


def results(
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Write nothing; fail where pages or figures are out of date, and for results from changed, "
            "mixed or unknown commits or with edited settings.",
        ),
    ] = False,
    figures: Annotated[
        bool, typer.Option("--figures", help="Draw the figures as well, as SVG and PNG.")
    ] = False,
    folder: Annotated[Path, typer.Option("--results", help="The folder with the result files.")] = Path(
        "results"
    ),
    docs: Annotated[Path, typer.Option(help="The folder for results.md, results/ and figures/.")] = Path(
        "docs"
    ),
) -> None:
    """Write docs/results.md and a page for each task from the result files, and print the headline table.

    With --figures, also draw the pictures in docs/figures.
    """
    from listenwell.cli.tables import grid_table
    from listenwell.evaluation.report.figures import draw
    from listenwell.evaluation.report.page import page_problems, write_pages
    from listenwell.evaluation.report.tables import headline_grid
    from listenwell.results.provenance import read_known, result_problems, row_marks
    from listenwell.results.store import read_results

    if check:
        if problems := result_problems(folder) + page_problems(folder, docs):
            typer.echo("\n".join(problems), err=True)
            raise typer.Exit(1)
        for known in read_known(folder):
            typer.echo(f"known problem, {len(known.files)} results: {known.note}")
        typer.echo("results: pages and result files agree")
        return
    rows = read_results(folder)
    if figures:
        for file in draw(rows, docs / "figures"):
            typer.echo(f"Drawn: {file}", err=True)
    for file in write_pages(folder, docs):
        typer.echo(f"Written: {file}", err=True)
    grid_table(headline_grid(rows, row_marks(folder)))
