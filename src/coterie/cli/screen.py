"""What is shown: results as a table on standard output, progress on standard error, on terminals only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from coterie.cli.echo import echo


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: drawn on a terminal, aligned plain text in a pipe or a file."""
    if sys.stdout.isatty():
        _draw_table(header, rows)
        return
    lines = [header, *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]
    for line in lines:
        echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _draw_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(*header, box=SIMPLE_HEAD)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


@contextmanager
def working(quiet: bool) -> Iterator[Callable[[str, float | None], None]]:
    """Yield a function to call with what is being done and, where it is known, the part that is done, 0 to 1."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def tell(what: str, done: float | None = None) -> None:
            bar.update(task, description=what, total=None if done is None else 1.0, completed=done or 0.0)

        yield tell


@contextmanager
def progress(n_steps: int) -> Iterator[Callable[[str], None]]:
    """Yield a function to call, with a few words, whenever one of n_steps pieces of work begins."""
    with working(quiet=False) as tell:
        begun = 0

        def step(what: str) -> None:
            nonlocal begun
            tell(f"{begun}/{n_steps}  {what}", begun / n_steps)
            begun += 1

        yield step


def show_json(result: Mapping[str, Any]) -> None:
    """Print one JSON object; numbers that are not finite become strings."""
    import json

    from coterie.io.model import plain

    echo(json.dumps(plain(result), allow_nan=False))


def say(message: str, quiet: bool) -> None:
    """Print a message on standard error."""
    if not quiet:
        echo(f"coterie: {message}", err=True)
