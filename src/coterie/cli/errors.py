"""Errors as one line on standard error instead of a traceback."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn, TextIO

import typer

from coterie.cli.codes import CODES, ExitCode
from coterie.cli.echo import echo
from coterie.io.errors import DataError
from coterie.io.files import check_writable


class BadInputError(Exception):
    """An option that the user can put right; the message says how."""


@contextmanager
def plain_errors(quiet: bool = False) -> Iterator[None]:
    """Turn what can go wrong outside the program into one line and an exit code; `quiet`: warnings are not shown."""
    from coterie.engines.gpu.device import NoGPU
    from coterie.io.files import MissingExtraError
    from coterie.kernels import compilation

    with warnings.catch_warnings(), _ended_like_ctrl_c():
        compilation.silent = quiet
        warnings.simplefilter("ignore" if quiet else "default", UserWarning)
        warnings.showwarning = _one_line
        try:
            yield
        except BadInputError as error:
            end(error, ExitCode.USAGE)
        except DataError as error:
            end(error, next(CODES[kind] for kind in type(error).__mro__ if kind in CODES))
        except (MissingExtraError, NoGPU, OSError) as error:
            end(error, ExitCode.FAILED)
        except MemoryError as error:
            end(str(error) or "there is not enough memory", ExitCode.TOO_LARGE)
        except KeyboardInterrupt:
            end("interrupted; nothing was written", ExitCode.INTERRUPTED)


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Inside, SIGTERM does what Ctrl-C does: a fit writes its best model."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _press)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _press(number: int, frame: FrameType | None) -> None:
    """Do what Ctrl-C would do; in a process that ignores it, as those that scripts put in the background do, end it."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)


def end(why: Exception | str, code: ExitCode) -> NoReturn:
    """Say in one line why a command ends, and end it."""
    echo(f"coterie: {' '.join(str(why).split())}", err=True)
    raise typer.Exit(code) from None


def check_numbers(**options: float | None) -> None:
    """Refuse what is no number: the lower ends of ranges let it through."""
    for name, value in options.items():
        if value is not None and value != value:
            raise BadInputError(f"--{name.replace('_', '-')} {value}: give a number")


def check_folder(out: Path, option: str = "--out") -> None:
    """Refuse a folder that cannot be written to before any work is done."""
    nearest = next(p for p in (out, *out.absolute().parents) if p.exists())
    if not nearest.is_dir():
        raise BadInputError(f"{option} {out}: {nearest} is a file; name a folder to write to")
    try:
        check_writable(nearest)
    except PermissionError as error:
        raise PermissionError(f"{option} {out}: {error}") from None


def check_file(out: Path, *inputs: Path) -> None:
    """Refuse a file that cannot be written, or that is read from, before any work is done."""
    if out.is_dir():
        raise BadInputError(f"--out {out} is a folder; name a file to write to")
    if any(out.resolve().is_relative_to(given.resolve()) for given in inputs):
        raise BadInputError(f"--out {out} is, or lies in, what is read; name another file to write to")
    check_folder(out.parent)


def check_table(out: Path, *inputs: Path) -> None:
    """Refuse, besides, a name that does not say what kind of table to write."""
    from coterie.io.formats import KINDS

    check_file(out, *inputs)
    if out.suffix.lower() not in KINDS:
        raise BadInputError(f"--out {out}: cannot tell what to write; the name of a table ends in {', '.join(KINDS)}")


def _one_line(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    echo(f"coterie: warning: {message}", err=True)
