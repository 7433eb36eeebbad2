"""Where tables come from: CSV, Parquet or Arrow, as a file, a folder or a pattern; and a fingerprint of them."""

from __future__ import annotations

import csv
import glob
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.io.errors import BadValueError, DuplicateError, EmptyDataError, MissingColumnError, UnreadableFileError
from coterie.io.files import MissingExtraError

if TYPE_CHECKING:
    import polars as pl

KINDS = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".csv": "CSV",
    ".arrow": "Arrow",
    ".ipc": "Arrow",
    ".feather": "Arrow",
}
OLDEST = (1, 38)  # before that, Polars lost errors while streaming, and rows with them
NO_SEPARATOR, LINE, ROW = "\x1f", "line", "row"  # a CSV file as lines
LOOK_AHEAD = 10_000  # rows of a CSV file from which the types of its columns are guessed


def import_polars() -> Any:
    """Return Polars, which is there with the extra `data` only."""
    try:
        import polars
    except ImportError:
        raise MissingExtraError("reading tables needs Polars, which comes with the extra coterie[data]") from None
    if tuple(map(int, polars.__version__.split(".")[:2])) < OLDEST:
        raise MissingExtraError(f"Polars {polars.__version__} is too old to stream; coterie[data] asks for a newer one")
    return polars


def data_files(path: str | PathLike[str]) -> list[Path]:
    """Return the files that a file, a folder (with all below it) or a pattern such as ``days/*.parquet`` stands for."""
    path = Path(path)
    if path.is_file():
        found = [path]
    elif path.is_dir():
        found = _visible(file for file in path.rglob("*") if file.suffix.lower() in KINDS)
        if not found:
            raise EmptyDataError(f"{path}: no file of this folder ends in {_endings()}")
    else:
        found = _visible(Path(name) for name in glob.glob(str(path), recursive=True))
        if not found:
            raise UnreadableFileError(f"{path}: there is no such file or folder, nor a file that matches it")
    for file in found:
        if file.suffix.lower() not in KINDS:
            raise UnreadableFileError(f"{file}: cannot tell what this is; the name of a table ends in {_endings()}")
    return sorted(found)


@dataclass(frozen=True)
class Source:
    """One file and how to scan it."""

    file: Path

    @property
    def kind(self) -> str:
        """ "Parquet", "CSV" or "Arrow"."""
        return KINDS[self.file.suffix.lower()]

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        """Names and types of the columns; for CSV, as the first rows suggest."""
        if self.file.stat().st_size == 0:
            raise EmptyDataError(f"{self.file}: the file is empty")
        if self.kind == "CSV":
            self._check_header()
        with self.reading("it is not, or was cut short"):
            return dict(self.scan().collect_schema())

    def scan(self, types: dict[str, Any] | None = None) -> pl.LazyFrame:
        """Return the whole table, still unread; `types` are those that a CSV file is read with."""
        pl = import_polars()
        if self.kind == "CSV":
            return pl.scan_csv(self.file, schema_overrides=types, infer_schema_length=LOOK_AHEAD)
        return pl.scan_parquet(self.file) if self.kind == "Parquet" else pl.scan_ipc(self.file)

    def _check_header(self) -> None:
        """Refuse names that are not UTF-8, and a name that stands twice."""
        with self.file.open("rb") as content:
            line = content.readline()
        try:
            names = next(csv.reader([line.decode("utf-8-sig")]), [])
        except UnicodeDecodeError:
            raise UnreadableFileError(f"{self.file}: the header is not UTF-8; save the file as UTF-8") from None
        if twice := [name for k, name in enumerate(names) if name in names[:k]]:
            raise DuplicateError(f"{self.file}: two columns are called {twice[0]!r}; give each a name of its own")

    def check_lengths(self) -> None:
        """Refuse the first row of a CSV file with fewer fields than the header has; with more, Polars refuses it."""
        if self.kind != "CSV":
            return
        pl, fields = import_polars(), len(self.schema)
        lines = pl.scan_csv(
            self.file, separator=NO_SEPARATOR, quote_char=None, has_header=False, schema={LINE: pl.String}
        )
        line = pl.col(LINE)
        short = (line.str.count_matches(",", literal=True) < fields - 1) & (line.str.strip_chars() != "")
        with self.reading():
            found = lines.with_row_index(ROW).filter(short).select(ROW, line.str.contains('"', literal=True))
            first = found.head(1).collect(engine="streaming")
        if first.is_empty():
            return
        row, quoted = first.row(0)
        row = self._short_row(fields) if quoted else row
        if row is not None:
            raise BadValueError(f"{self.file}: row {row} has fewer fields than the header, which has {fields}")

    def _short_row(self, fields: int) -> int | None:
        """The same with fields in quotation marks, which can hold commas and ends of lines: slower."""
        with self.file.open(newline="", encoding="utf-8-sig") as content:
            return next((k for k, row in enumerate(csv.reader(content)) if 0 < len(row) < fields), None)

    def require(self, columns: Iterable[str]) -> None:
        """Refuse a file without one of these columns."""
        for name in columns:
            if name not in self.schema:
                there = ", ".join(map(repr, self.schema))
                only = next(iter(self.schema)) if len(self.schema) == 1 else ""
                mark = next((mark for mark in ";\t|" if mark in only), None)
                there += "" if mark is None else f"; it seems to be separated by {mark!r}, where CSV has commas"
                raise MissingColumnError(f"{self.file}: there is no column {name!r}; the columns are {there}")

    @contextmanager
    def reading(self, guess: str = "it is damaged") -> Iterator[None]:
        """Turn what goes wrong while reading into one line."""
        try:
            yield
        except (import_polars().exceptions.PolarsError, OSError) as error:
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            message = f"{self.file}: cannot be read as {self.kind}; perhaps {guess} ({reason})"
            raise UnreadableFileError(message) from None


def sources(path: str | PathLike[str]) -> list[Source]:
    """Return the sources of a path; see :func:`data_files`."""
    return [Source(file) for file in data_files(path)]


def sha256_of(path: str | PathLike[str]) -> str:
    """Return the SHA-256 of a file, or, where there are several, of their digests in the order of their names.

    A model keeps it, and so says which data it was fitted on.
    """
    digests = []
    for file in data_files(path):
        with file.open("rb") as content:
            digests.append(hashlib.file_digest(content, "sha256"))
    if len(digests) == 1:
        return digests[0].hexdigest()
    return hashlib.sha256(b"".join(digest.digest() for digest in digests)).hexdigest()


def cell(file: Path, name: str, row: int) -> str:
    """Return where a value stands, for a message; rows are counted from 1, without the header of a CSV file."""
    return f"{file}: column {name!r}, row {row}"


def _visible(files: Iterable[Path]) -> list[Path]:
    return [file for file in files if file.is_file() and not file.name.startswith((".", "_"))]


def _endings() -> str:
    return ", ".join(KINDS)
