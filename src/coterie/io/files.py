"""Files that are either whole or not there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class MissingExtraError(ImportError):
    """An optional part of Coterie is not installed; the message names it."""


@contextmanager
def staged(out: Path) -> Iterator[Path]:
    """Yield a temporary folder whose files go to `out` if, and only if, the block ends well.

    A new `out` appears in one step. In a folder that exists, files of the same names are replaced one by one,
    each in one step, and others are left alone; the temporary folder is then inside it, since a folder may be a mount
    point, or the only one around that can be written to.
    """
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"{out} is a file; name a folder to write to")
    out.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".coterie-", dir=out if out.exists() else out.parent))
    try:
        yield folder
        _hand_over(folder, out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def staged_file(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`, which it gets if, and only if, the block ends well."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file to write to")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(folder: Path) -> None:
    """Refuse a folder that exists and in which no file can be made."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise PermissionError(f"{folder} cannot be written to ({error.strerror})") from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file in one step: readers see the old content or the new."""
    with staged_file(path) as temporary:
        temporary.write_bytes(content)


def _hand_over(folder: Path, out: Path) -> None:
    folder.chmod(0o755)  # temporary folders are private, results are not
    if not out.exists():
        os.rename(folder, out)
        return
    for path in sorted(folder.rglob("*")):
        target = out / path.relative_to(folder)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            os.replace(path, target)
