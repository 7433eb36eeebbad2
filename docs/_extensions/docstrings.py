"""Docstrings on pages of the reference: plain text with formulas, and the methods that this package defines.

Signs that reStructuredText would take for markup are escaped. Methods that come with scikit-learn or Python are left
out.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

LITERAL = re.compile(r"(``.+?``|`[^`]+`)")
MARKUP = re.compile(r"(?<!\\)([*|]|(?<=\w)_(?!\w))")
ENTRY = re.compile(r"^(\*{0,2}\w[\w, *]* : )(.*)")  # a parameter, which numpydoc reads itself, and its type


def escaped(line: str) -> str:
    """Return a line in which asterisks, bars and names that end with _ stand for themselves."""
    if entry := ENTRY.match(line):
        return entry[1] + escaped(entry[2])
    if line.lstrip().startswith(".. "):
        return line
    parts = LITERAL.split(line)
    return "".join(part if k % 2 else MARKUP.sub(r"\\\1", part) for k, part in enumerate(parts))


def escape(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Escape every line of text of a docstring, and leave its examples alone."""
    example = False
    for k, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            lines[k] = escaped(line)


def comes_from_elsewhere(app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Return True for members that another package defines."""
    member = getattr(member, "fget", None) or getattr(member, "func", None) or member
    module = getattr(member, "__module__", None) or "coterie"
    return None if module.startswith("coterie") else True


def setup(app: Sphinx) -> dict[str, Any]:
    """Run before numpydoc, whose priority is the default one, 500."""
    app.connect("autodoc-process-docstring", escape, priority=100)
    app.connect("autodoc-skip-member", comes_from_elsewhere)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
