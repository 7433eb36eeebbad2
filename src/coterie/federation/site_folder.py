"""A site's folder: which files are in it."""

from __future__ import annotations

from pathlib import Path

POLICY, AUDIT = "site.toml", "audit.jsonl"  # what the site agrees to, and what has left it


def state_of(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """What changes when the files of a site change: their names, times and sizes."""
    tables = [path for stem in ("data", "edges") if (path := find_table(folder, stem)) is not None]
    return tuple((path.name, (stat := path.stat()).st_mtime_ns, stat.st_size) for path in tables)


def find_table(folder: Path, stem: str) -> Path | None:
    """Return the table of that name, whichever kind there is."""
    return next((folder / f"{stem}{end}" for end in (".parquet", ".csv") if (folder / f"{stem}{end}").exists()), None)
