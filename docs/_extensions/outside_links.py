"""Pages of the repository that lie outside docs/ are shown on the site, and links find them there.

Links in Markdown are those of the repository, so that they work wherever it is read. A link to a file that is a page of
the site becomes one to that page; to any other file, one to the file; to a folder, plain text.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
SHOWN = {  # page of the site: the file that it shows
    "contributing": ROOT / "CONTRIBUTING.md",
    "reference/changelog": ROOT / "CHANGELOG.md",
    "reference/running-benchmarks": ROOT / "benchmarks" / "README.md",
}
PAGES = {ROOT / "README.md": "index"} | {path: page for page, path in SHOWN.items()}
LINK = re.compile(r"\[([^\]\[]*)\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")


def relinked(text: str, folder: Path, page: Path) -> str:
    """Return text of a file in `folder` with links that hold on a page of the site."""

    def link(match: re.Match[str]) -> str:
        label, target, anchor = match.groups()
        path = Path(os.path.normpath(folder / target))
        if path.is_dir():
            return label
        if path in PAGES:
            path = DOCS / f"{PAGES[path]}.md"
        return f"[{label}]({os.path.relpath(path, page.parent)}{anchor or ''})"

    return LINK.sub(link, text)


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """Take the text of a page from the file that it shows, and its links to where they lead on the site."""
    path = DOCS / f"{page}.md"
    if path.exists():
        file = SHOWN.get(page, path)
        app.env.note_dependency(file)
        source[0] = relinked(file.read_text(encoding="utf-8"), file.parent, path)


def setup(app: Sphinx) -> dict[str, Any]:
    """Run on every page as it is read."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
