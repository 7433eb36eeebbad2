"""Where tables come from: CSV, Parquet or Arrow, in a file, a folder, a pattern or standard input; a fingerprint."""

from __future__ import annotations

import csv
import glob
import hashlib
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.io.errors import BadValueError, DuplicateError, EmptyDataError, MissingColumnError, UnreadableFileError
from coterie.io.files import MissingExtraError
from coterie.io.formats import KINDS, STANDARD_INPUT, Table, TextFormat, ending, endings, unpacked

if TYPE_CHECKING:
    import polars as pl

OLDEST = (1, 38)  # before that, Polars lost errors while streaming, and rows with them
NO_SEPARATOR, LINE, ROW = "\x1f", "line", "row"  # a CSV file as lines
TAB = "\t"
NOTHING = "NA"  # what R writes where there is no number
OTHER_LETTERS = "give its --encoding, such as latin-1 or utf-16, or save it as UTF-8"
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
    if isinstance(path, Table) and path.comes_in:
        return [STANDARD_INPUT]
    path = Path(path)
    if path.is_file():
        found = [path]
    elif path.is_dir():
        found = _visible(file for file in path.rglob("*") if ending(file) in KINDS)
        if not found:
            raise EmptyDataError(f"{path}: no file of this folder ends in {endings()}")
    else:
        found = _visible(Path(name) for name in glob.glob(str(path), recursive=True))
        if not found:
            raise UnreadableFileError(f"{path}: there is no such file or folder, nor a file that matches it")
    for file in found:
        if ending(file) not in KINDS:
            raise UnreadableFileError(f"{file}: cannot tell what this is; the name of a table ends in {endings()}")
    return sorted(found)


@dataclass(frozen=True)
class Source:
    """One file and how to scan it: what it is called, how its text is written, and where it can be read."""

    file: Path
    text: TextFormat
    content: Path

    @property
    def kind(self) -> str:
        """ "Parquet", "CSV" or "Arrow"."""
        return KINDS[ending(self.content)]

    @property
    def entire(self) -> Source:
        """The file; that of a piece is the one that it is a piece of."""
        return self

    @property
    def separator(self) -> str:
        """The sign between the columns of a CSV file."""
        return self.text.separator_of(self.file)

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        """Names and types of the columns; for CSV, as the first rows suggest."""
        if self.content.stat().st_size == 0:
            raise EmptyDataError(f"{self.file}: the file is empty")
        if self.kind == "CSV":
            self._check_header()
        with self.reading("it is not, or was cut short"):
            return dict(self.scan().collect_schema())

    def scan(self, types: dict[str, Any] | None = None, gaps: Iterable[str] = ()) -> pl.LazyFrame:
        """Return the whole table, still unread.

        `types` are those that a CSV file is read with, `gaps` its columns in which NA stands for nothing.
        """
        pl = import_polars()
        if self.kind == "CSV":
            return pl.scan_csv(
                self.content,
                separator=self.separator,
                decimal_comma=self.text.decimal == ",",
                schema_overrides=types,
                null_values=dict.fromkeys(gaps, NOTHING) or None,
                infer_schema_length=LOOK_AHEAD,
            )
        return pl.scan_parquet(self.content) if self.kind == "Parquet" else pl.scan_ipc(self.content)

    @cached_property
    def _header(self) -> bytes:
        with self.reading(), unpacked(self.content) as content:
            return content.readline()

    @property
    def is_separated(self) -> bool:
        """Whether the separator stands in the header, where there is one."""
        return self.kind != "CSV" or self.separator.encode() in self._header

    def _check_header(self) -> None:
        """Refuse names that are not UTF-8, and a name that stands twice."""
        try:
            names = next(csv.reader([self._header.decode("utf-8-sig")], delimiter=self.separator), [])
        except UnicodeDecodeError:
            raise UnreadableFileError(f"{self.file}: the header is not UTF-8; {OTHER_LETTERS}") from None
        if twice := [name for k, name in enumerate(names) if name in names[:k]]:
            raise DuplicateError(f"{self.file}: two columns are called {twice[0]!r}; give each a name of its own")

    def check_lengths(self) -> None:
        """Refuse the first row of a CSV file with fewer fields than the header has; with more, Polars refuses it."""
        if self.kind != "CSV":
            return
        pl, fields = import_polars(), len(self.schema)
        lines = pl.scan_csv(
            self.content, separator=NO_SEPARATOR, quote_char=None, has_header=False, schema={LINE: pl.String}
        )
        line = pl.col(LINE)
        short = (line.str.count_matches(self.separator, literal=True) < fields - 1) & (line.str.strip_chars() != "")
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
        """The same with fields in quotation marks, which can hold separators and ends of lines: slower."""
        with unpacked(self.content) as content, io.TextIOWrapper(content, "utf-8-sig", newline="") as text:
            rows = csv.reader(text, delimiter=self.separator)
            return next((k for k, row in enumerate(rows) if 0 < len(row) < fields), None)

    def require(self, columns: Iterable[str]) -> None:
        """Refuse a file without one of these columns."""
        for name in columns:
            if name not in self.schema:
                there = ", ".join(map(repr, self.schema))
                only = next(iter(self.schema)) if len(self.schema) == 1 else ""
                mark = next((mark for mark in ";\t|," if mark in only), None)
                there += "" if mark is None else f"; it seems to be separated by {mark!r}: {_separator_option(mark)}"
                raise MissingColumnError(f"{self.file}: there is no column {name!r}; the columns are {there}")

    @contextmanager
    def reading(self, guess: str = "it is damaged") -> Iterator[None]:
        """Turn what goes wrong while reading into one line."""
        try:
            yield
        except (import_polars().exceptions.PolarsError, OSError) as error:
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            if "invalid utf-8" in reason:
                raise UnreadableFileError(f"{self.file}: the text is not UTF-8; {OTHER_LETTERS}") from None
            message = f"{self.file}: cannot be read as {self.kind}; perhaps {guess} ({reason})"
            raise UnreadableFileError(message) from None


def sources(path: str | PathLike[str]) -> list[Source]:
    """Return the sources of a path; see :func:`data_files`."""
    table = Table.of(path)
    return [Source(file, table.text, table.readable(file)) for file in data_files(table)]


def sha256_of(path: str | PathLike[str]) -> str:
    """Return the SHA-256 of a file, or, where there are several, of their digests in the order of their names.

    A model keeps it, and so says which data it was fitted on.
    """
    digests, table = [], Table.of(path)
    for file in data_files(table):
        with table.raw(file).open("rb") as content:
            digests.append(hashlib.file_digest(content, "sha256"))
    if len(digests) == 1:
        return digests[0].hexdigest()
    return hashlib.sha256(b"".join(digest.digest() for digest in digests)).hexdigest()


def cell(file: Path, name: str, row: int) -> str:
    """Return where a value stands, for a message; rows are counted from 1, without the header of a CSV file."""
    return f"{file}: column {name!r}, row {row}"


def _visible(files: Iterable[Path]) -> list[Path]:
    return [file for file in files if file.is_file() and not file.name.startswith((".", "_"))]


def _separator_option(mark: str) -> str:
    return f"give --separator {'tab' if mark == TAB else repr(mark)}"
