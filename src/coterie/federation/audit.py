"""What has left a site: one line per message in `audit.jsonl` of its folder, written before the message goes.

A line has the time, the run, the kind of question, a hash of the question, the bytes that leave and their hash; never a
value. The same file counts the questions that were answered, so that a limit holds over all runs and restarts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from os import SEEK_END
from pathlib import Path

from coterie.federation.site_folder import AUDIT

COUNTED = ("introduce", "answer", "release", "finish", "gossip")


@dataclass(frozen=True)
class Entry:
    """One message: `asked` and `hash` are SHA-256 of the question and of what left; `refused` is the code, if any."""

    time: str
    run: int
    kind: str
    asked: str
    bytes: int
    hash: str
    refused: str = ""


class AuditLog:
    """The log of a folder, and the questions that it counts."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / AUDIT
        self.answered: set[str] = set()
        self.read = 0  # bytes of the file

    def note(self, run: int, kind: str, asked: bytes, sent: bytes, refused: str = "") -> None:
        """Write a line."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = Entry(now, run, kind, digest(asked), len(sent), digest(sent), refused)
        with self.path.open("ab+") as file:
            size = file.seek(0, SEEK_END)
            file.seek(max(size - 1, 0))
            cut = file.read(1) not in (b"", b"\n")  # a full disk has left half a line
            file.write(b"\n" * cut + json.dumps(asdict(entry)).encode() + b"\n")

    def allows(self, asked: bytes, most: int) -> bool:
        """Whether a question may be answered: it was answered before, or there are still less than `most`."""
        if self.path.exists():
            with self.path.open("rb") as file:
                if file.seek(0, SEEK_END) < self.read:  # somebody has begun a new one
                    self.read = 0
                file.seek(self.read)
                new = file.read()
            whole = new[: new.rfind(b"\n") + 1]
            self.read += len(whole)
            counted = (entry for entry in _parsed(whole) if entry.kind in COUNTED and not entry.refused)
            self.answered |= {entry.asked for entry in counted}
        return digest(asked) in self.answered or len(self.answered) < most


def entries(folder: Path) -> list[Entry]:
    """The lines of a folder's log, oldest first."""
    path = folder / AUDIT
    return list(_parsed(path.read_bytes())) if path.exists() else []


def digest(content: bytes) -> str:
    """SHA-256, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def _parsed(lines: bytes) -> Iterator[Entry]:
    """The entries in some lines; half a line, which a full disk has left, is none: its message never went."""
    for line in lines.splitlines():
        with suppress(ValueError, TypeError):
            yield Entry(**json.loads(line))
