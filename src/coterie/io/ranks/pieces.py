"""The share of a rank in tables: rows of Parquet and Arrow files, bytes of CSV files.

A range of bytes begins and ends where a row does. Ends of lines inside quotation marks do not count, and whether a
place is inside is told by how many marks come before it: ranks count those of their ranges, and add up.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import numpy as np

from coterie.engines.mpi.crew import Crew
from coterie.io.errors import EmptyDataError
from coterie.io.formats import PACKED, Table
from coterie.io.sources import Source, import_polars, sources

if TYPE_CHECKING:
    import polars as pl

PIECE = 1 << 24  # bytes of text that are read at a time
NEWLINE, MARK = ord("\n"), ord('"')

Batch = TypeVar("Batch")


@dataclass(frozen=True)
class RowRange(Source):
    """Some rows of a file."""

    first: int = 0
    count: int = 0

    @property
    def entire(self) -> Source:
        return Source(self.file, self.text, self.content)

    def rows_before(self) -> int:
        """How many rows of the file come before these."""
        return self.first

    def scan(self, *given: Any, **options: Any) -> pl.LazyFrame:
        return super().scan(*given, **options).slice(self.first, self.count)


@dataclass(frozen=True)
class Piece(Source):
    """A few megabytes of a CSV file, as a file of its own: `content`."""

    source: Source = field(kw_only=True)
    first: int = field(kw_only=True)

    @property
    def entire(self) -> Source:
        return self.source

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return self.source.schema  # what a column is does not depend on a piece

    def rows_before(self) -> int:
        """How many rows of the file come before these: it is read again, for a message."""
        lines, marks = -1, 0  # the header is no row
        with self.source.content.open("rb") as content:
            for block in _blocks(content, self.first):
                parts = block.split(b'"')
                lines += sum(part.count(b"\n") for part in parts[marks % 2 :: 2])
                marks += len(parts) - 1
        return lines


@dataclass(frozen=True)
class ByteRange:
    """Some bytes of a CSV file: whole rows."""

    source: Source
    first: int
    last: int

    def pieces(self) -> Iterator[Piece]:
        """These rows in files of a few megabytes, each with the header, one after the other."""
        header = self.source._header if self.source._header.endswith(b"\n") else self.source._header + b"\n"
        with tempfile.TemporaryDirectory(prefix="coterie-") as folder, self.source.content.open("rb") as content:
            content.seek(self.first)
            left, rest, at = self.last - self.first, b"", self.first
            while left or rest:
                block = rest + content.read(min(PIECE, left))
                left -= len(block) - len(rest)
                end = len(block) if not left else _last_end(block)
                rest = block[end:]
                if end:
                    path = Path(folder) / "piece.csv"
                    path.write_bytes(header + block[:end])
                    yield Piece(self.source.file, self.source.text, path, source=self.source, first=at)
                    at += end


Shares = list[RowRange | ByteRange]


def can_be_shared(table: Table) -> bool:
    """Whether ranks can read shares of these files: of what is packed, or comes in, they cannot."""
    return not table.comes_in and all(source.content.suffix.lower() != PACKED for source in sources(table))


def shares(table: Table, crew: Crew) -> Shares:
    """What this rank reads of each file."""
    found: Shares = []
    for source in crew.do(lambda: sources(table), f"read {table}"):
        if source.kind == "CSV":
            found.append(_byte_range(source, crew))
        else:
            rows = crew.do(lambda source=source: _length(source), f"read {source.file}")  # type: ignore[misc]
            first, last = (rows * rank // crew.size for rank in (crew.rank, crew.rank + 1))
            found.append(RowRange(source.file, source.text, source.content, first, last - first))
    return found


def pieces_of(found: Shares) -> Iterator[RowRange | Piece]:
    """Sources that hold the rows of these shares, and no others."""
    for share in found:
        if isinstance(share, ByteRange):
            yield from share.pieces()
        elif share.count:
            yield share


def in_step(crew: Crew, batches: Iterator[Batch], table: Table) -> Iterator[Batch | None]:
    """Batches of all ranks, one of each at a time, None where a rank has no more; all end where one cannot read on."""
    what = f"read its share of {table}"
    found = False
    while crew.any((batch := crew.do(_next(batches), what)) is not None):
        found = True
        yield batch
    if not found:
        raise EmptyDataError(f"{table}: there are no rows")


def _next(batches: Iterator[Batch]) -> Callable[[], Batch | None]:
    return lambda: next(batches, None)


def _length(source: Source) -> int:
    with source.reading():
        return int(source.scan().select(import_polars().len()).collect(engine="streaming").item())


def _byte_range(source: Source, crew: Crew) -> ByteRange:
    """From the first row that begins in this rank's part of the bytes to the first one of the next rank's."""
    what = f"read its share of {source.file}"
    header, size = crew.do(lambda: (len(source._header), source.content.stat().st_size), what)
    if not size:
        return ByteRange(source, 0, 0)
    first, last = (header + (size - header) * rank // crew.size for rank in (crew.rank, crew.rank + 1))
    marks = crew.do(lambda: _count_marks(source.content, first, last), what)
    before = int(crew.every(np.array([marks]))[: crew.rank].sum())
    begin = crew.do(lambda: header if not crew.rank else _next_begin(source.content, first, before % 2 == 1), what)
    begins = [*crew.every(np.array([min(begin, size)])).ravel().tolist(), size]
    return ByteRange(source, begins[crew.rank], max(begins[crew.rank], begins[crew.rank + 1]))


def _blocks(content: BinaryIO, left: int) -> Iterator[bytes]:
    while left > 0 and (block := content.read(min(PIECE, left))):
        left -= len(block)
        yield block


def _count_marks(path: Path, first: int, last: int) -> int:
    with path.open("rb") as content:
        content.seek(first)
        return sum(block.count(b'"') for block in _blocks(content, last - first))


def _next_begin(path: Path, first: int, inside: bool) -> int:
    """Where the first row begins at, or after, a place that is inside quotation marks or not."""
    with path.open("rb") as content:
        content.seek(first - 1)
        if content.read(1) == b"\n" and not inside:
            return first
        at = first
        while block := content.read(1 << 16):
            letters = np.frombuffer(block, dtype=np.uint8)
            open_ = (np.cumsum(letters == MARK, dtype=np.uint8) + inside) & 1
            ends = np.flatnonzero((letters == NEWLINE) & (open_ == 0))
            if len(ends):
                return at + int(ends[0]) + 1
            at, inside = at + len(block), bool(open_[-1])
        return at


def _last_end(block: bytes) -> int:
    """Where the last whole row of a block ends that begins with a row."""
    if b'"' not in block:
        return block.rfind(b"\n") + 1
    letters = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero((letters == NEWLINE) & (np.cumsum(letters == MARK, dtype=np.uint8) & 1 == 0))
    return int(ends[-1]) + 1 if len(ends) else 0
