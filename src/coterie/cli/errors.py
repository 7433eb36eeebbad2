"""Errors as one line on standard error, for people who did not write the program."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import typer


class BadInputError(Exception):
    """Something that the user can put right; the message says what."""


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn what can go wrong outside the program into one line and an exit code: 2 for bad input, else 1."""
    from coterie.io.files import MissingExtraError

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = _one_line
        try:
            yield
        except BadInputError as error:
            typer.echo(f"coterie: {error}", err=True)
            raise typer.Exit(2) from None
        except (MissingExtraError, OSError) as error:
            typer.echo(f"coterie: {error}", err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            typer.echo("coterie: interrupted; nothing was written", err=True)
            raise typer.Exit(130) from None


def check_folder(out: Path) -> None:
    """Refuse a folder that cannot be written to before any work is done."""
    nearest = next(p for p in (out, *out.absolute().parents) if p.exists())
    if not nearest.is_dir():
        raise BadInputError(f"--out {out}: {nearest} is a file; name a folder to write to")


def _one_line(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    typer.echo(f"coterie: warning: {message}", err=True)
