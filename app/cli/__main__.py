"""Puts the `assay` command together."""

import sys
from typing import Annotated

import typer

from app import __version__
from app.cli.console import USAGE_EXIT, Mistake, say
from app.cli.doctor import doctor
from app.cli.score import score
from app.cli.serve import serve, worker
from app.cli.up import up
from app.settings import SettingsError

cli = typer.Typer(
    name="assay",
    help="Scores for language models' outputs that can be audited.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (up, serve, worker, score, doctor):
    cli.command()(command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"assay {__version__}")
        raise typer.Exit


@cli.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; a user's mistake ends it with one clear line and exit code 2."""
    try:
        cli()
    except (Mistake, SettingsError) as error:
        say(str(error))
        sys.exit(USAGE_EXIT)


if __name__ == "__main__":
    main()
