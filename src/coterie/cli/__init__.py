"""The command line. What a command needs is imported when it runs, so that `coterie --help` is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from coterie import __version__
from coterie.cli.demo import demo
from coterie.cli.federate import federate
from coterie.cli.paper import paper

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Learn one model for every node of a network of local datasets, with a proof of how good the answer is.",
)
app.command()(demo)
app.command()(paper)
app.add_typer(federate, name="federate")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coterie {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass
