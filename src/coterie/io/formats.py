"""How tables are written: kinds by the endings of names, text with its separator, decimal sign and encoding."""

from __future__ import annotations

import codecs
import gzip
import shutil
import sys
import weakref
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader
from os import PathLike
from pathlib import Path
from tempfile import mkdtemp
from typing import IO, cast

from coterie.io.errors import UnreadableFileError

KINDS = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".csv": "CSV",
    ".tsv": "CSV",
    ".arrow": "Arrow",
    ".ipc": "Arrow",
    ".feather": "Arrow",
}
PACKED = ".gz"
DASH, STANDARD_INPUT = "-", Path("standard input")
SIGNS = {b"PAR1": ".parquet", b"ARROW1": ".arrow"}  # how files begin that are not text
UTF_8 = "utf-8"
NAMED = {"tab": "\t", "\\t": "\t", "space": " ", "semicolon": ";", "comma": ","}


def ending(file: Path) -> str:
    """Return the ending that says what a table is; that of text may be followed by .gz."""
    name = Path(file.name.lower())
    inner = Path(name.stem).suffix
    return inner if name.suffix == PACKED and KINDS.get(inner) == "CSV" else name.suffix


def endings() -> str:
    """Return all endings, for a message."""
    return ", ".join([*KINDS, ".csv.gz", ".tsv.gz"])


@dataclass(frozen=True)
class TextFormat:
    """How numbers, columns and letters stand in the text of CSV files.

    Attributes
    ----------
    separator : str or None
        One sign, or its name: tab. None: a tab in .tsv; else a semicolon where the decimal sign is a comma, or a comma.
    decimal : str
        "." or ",".
    encoding : str
        As Python calls it: utf-8, latin-1, utf-16, cp1252.
    """

    separator: str | None = None
    decimal: str = "."
    encoding: str = UTF_8

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise ValueError(f"the decimal sign is . or , and not {self.decimal!r}")
        sign = self.separator_of(Path())
        if len(sign) != 1 or not sign.isascii() or sign in '"\n\r' or sign.isalnum():
            raise ValueError(f"the separator is one sign, such as ; or tab, and not {self.separator!r}")
        if sign == self.decimal:
            raise ValueError(f"{sign!r} cannot be both the separator and the decimal sign")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise ValueError(f"there is no encoding {self.encoding!r}; some are latin-1, cp1252, utf-16") from None

    def separator_of(self, file: Path) -> str:
        """Return the sign between the columns of a file."""
        if self.separator is not None:
            return NAMED.get(self.separator, self.separator)
        return "\t" if ending(file) == ".tsv" else ";" if self.decimal == "," else ","


class Table(PathLike[str]):
    """The path of a table, which says besides how its text is written; "-" is standard input.

    It stands wherever a path does. What cannot be read as it is, because it comes once or is not UTF-8, is copied to a
    temporary folder, which goes with the object.

    Parameters
    ----------
    path : str or path
        A file, a folder, a pattern, or "-".
    text : TextFormat
    """

    def __init__(self, path: str | PathLike[str], text: TextFormat | None = None) -> None:
        self.path, self.text = Path(path), text or TextFormat()
        self._copies: dict[Path, Path] = {}

    @classmethod
    def of(cls, path: str | PathLike[str]) -> Table:
        """Return the table that a path is, or stands for."""
        return path if isinstance(path, Table) else cls(path)

    def __fspath__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return str(STANDARD_INPUT if self.comes_in else self.path)

    @property
    def comes_in(self) -> bool:
        """Whether it is read from standard input."""
        return str(self.path) == DASH

    def raw(self, file: Path) -> Path:
        """Return where the bytes of one of its files are."""
        return self._standard_input if self.comes_in else file

    def readable(self, file: Path) -> Path:
        """Return where one of its files can be read as UTF-8, or as what else it is."""
        raw = self.raw(file)
        is_text = KINDS[ending(raw)] == "CSV"
        if not is_text or codecs.lookup(self.text.encoding).name in (UTF_8, "utf-8-sig"):
            return raw
        if file not in self._copies:
            self._copies[file] = self._in_utf_8(file, raw)
        return self._copies[file]

    def _in_utf_8(self, file: Path, raw: Path) -> Path:
        copy = self._folder / f"{len(self._copies)}.csv"
        try:
            with unpacked(raw) as content, copy.open("w", encoding=UTF_8, newline="") as out:
                shutil.copyfileobj(codecs.getreader(self.text.encoding)(content), out)
        except UnicodeError as error:
            raise UnreadableFileError(f"{file}: the text is not {self.text.encoding} ({error})") from None
        return copy

    @cached_property
    def _folder(self) -> Path:
        folder = Path(mkdtemp(prefix="coterie-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    @cached_property
    def _standard_input(self) -> Path:
        """All that comes in, in a file: a table is read more than once."""
        content = cast(BufferedReader, sys.stdin.buffer)
        head = content.read(max(map(len, SIGNS)))
        kind = next((name for sign, name in SIGNS.items() if head.startswith(sign)), ".csv")
        file = self._folder / f"input{kind}"
        with file.open("wb") as out:
            out.write(head)
            while piece := content.read1():  # one read per call: Ctrl-C between two of one call would wait
                out.write(piece)
        return file


def unpacked(file: Path) -> IO[bytes]:
    """Open a file to read the bytes that it holds, or that it was packed from."""
    with file.open("rb") as content:
        packed = content.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(file)) if packed else file.open("rb")
