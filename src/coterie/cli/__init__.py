"""The command line. What a command needs is imported when it runs, so that `coterie --help` is quick."""

from __future__ import annotations

from inspect import cleandoc
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from coterie import __version__
from coterie.cli.codes import ExitCode
from coterie.cli.coefficients import coefficients
from coterie.cli.demo import demo
from coterie.cli.federate import federate
from coterie.cli.fit import fit
from coterie.cli.graph import graph
from coterie.cli.inspect import inspect
from coterie.cli.paper import paper
from coterie.cli.predict import predict
from coterie.cli.report import report
from coterie.cli.resolve import resolve

HELP = """\
Learn one model for every node of a network of local datasets, with a proof of how good the answer is.

You have a table with one row per measurement, a column that says where each row comes from (a station, a hospital, a
shop: the nodes), and edges between nodes that are alike, or coordinates to find them by. Then

coterie fit rows.csv --node station --target rain --graph edges.csv --out model

coterie predict model new.csv --out predictions.csv

coterie report model --out report.html

`coterie fit --help` explains the options of a command; `coterie demo` shows what comes out, without any data.
"""
EPILOG = "Exit codes:\n\n" + "\n\n".join(f"{code:>4}  {code.sentence}" for code in ExitCode)


def _unwrapped(text: str) -> str:
    """Join the lines of each paragraph; the terminal wraps them anew."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in cleandoc(text).split("\n\n"))


class _Commands(TyperGroup):
    """Keeps the arguments of the command line, which are saved with a model that is fitted."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.obj = list(args)
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help=_unwrapped(HELP),
    epilog=EPILOG,
)
for command in (fit, predict, inspect, coefficients, report, graph, resolve, demo, paper):
    app.command(help=_unwrapped(command.__doc__ or ""))(command)
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
