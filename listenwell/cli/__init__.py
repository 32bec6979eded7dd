"""The command line: one file per command. Heavy imports are inside the commands, so that --help is fast."""

import errno
import os
import sys

import typer

from listenwell.cli.annotate import annotate
from listenwell.cli.chat import chat
from listenwell.cli.compare import compare
from listenwell.cli.corpus import corpus
from listenwell.cli.evaluate import evaluate
from listenwell.cli.evaluate_models import ensemble
from listenwell.cli.export import export
from listenwell.cli.preference import preference
from listenwell.cli.rank import rank, score_pools
from listenwell.cli.reply import reply
from listenwell.cli.results import results
from listenwell.cli.safety import safety
from listenwell.cli.serve import serve
from listenwell.cli.sweep import sweep
from listenwell.cli.train import train
from listenwell.errors import ListenwellError, MissingExtraError
from listenwell.version import __version__

TRAINING = ("torch", "transformers", "peft")
"""Packages of the extra `train`; a reply needs none of them."""

app = typer.Typer(
    name="listenwell",
    help="Empathetic dialogue you can install, steer, train and measure.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(chat)
app.command()(serve)
app.command()(reply)
app.command()(annotate)
app.command()(rank)
app.command()(score_pools)
app.add_typer(evaluate, name="evaluate")
app.command()(ensemble)
app.command()(compare)
app.command()(results)
app.command()(train)
app.command()(export)
app.command()(sweep)
app.command("study", hidden=True, deprecated=True)(sweep)  # the name of earlier releases
app.add_typer(corpus, name="corpus")
app.add_typer(preference, name="preference")
app.add_typer(safety, name="safety")


def _show_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"listenwell {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Empathetic dialogue you can install, steer, train and measure."""


def main() -> None:
    """Run the command line; a known error is one line on standard error and exit code 1."""
    try:
        app()
    except ListenwellError as error:
        typer.echo(f"listenwell: {error}", err=True)
        sys.exit(1)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in TRAINING:
            raise
        typer.echo(f"listenwell: {MissingExtraError(str(error.name), 'train', 'This')}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        typer.echo(f"listenwell: Cannot write the output: {error.strerror}. Free some space.", err=True)
        # Buffered output cannot be written either: exit without flushing.
        os._exit(1)
