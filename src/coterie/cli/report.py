"""coterie report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.echo import echo
from coterie.cli.errors import check_file, plain_errors
from coterie.cli.options import ModelArgument, QuietOption


def report(
    model: Annotated[Path, ModelArgument],
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    quiet: Annotated[bool, QuietOption] = False,
) -> None:
    """Write a page with pictures of a model: one HTML file that opens from disk and fetches nothing."""
    with plain_errors(quiet):
        check_file(out)
        from coterie import load, write_report

        write_report(load(model), out)
        if not quiet:
            echo(f"Report written to {out}")
