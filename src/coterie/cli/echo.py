"""Text on standard output and error, whatever their encoding; plain ASCII signs where no person looks at a terminal."""

from __future__ import annotations

import os
import sys

import typer

SIGNS = str.maketrans(
    {
        **{"λ": "lambda", "ε": "epsilon", "δ": "delta", "ℓ": "l", "Σ": "sum", "²": "^2"},
        **{"−": "-", "–": "-", "…": "...", "±": "+-", "×": "x", "→": "->", "≤": "<=", "≥": ">=", "∞": "inf"},
    }
)


def echo(text: str, err: bool = False) -> None:
    """Print text; names of nodes and columns stay as they are, if the stream can hold them."""
    stream = sys.stderr if err else sys.stdout
    if not stream.isatty() or (stream.encoding or "ascii").lower().replace("-", "") not in ("utf8", "utf16"):
        text = text.translate(SIGNS)
    encoding = stream.encoding or "utf-8"
    try:
        typer.echo(text.encode(encoding, "backslashreplace").decode(encoding), err=err)
    except BrokenPipeError:  # whoever reads, such as `head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
