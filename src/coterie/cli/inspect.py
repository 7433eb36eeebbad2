"""coterie inspect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from coterie.cli.echo import echo
from coterie.cli.errors import plain_errors
from coterie.cli.options import JsonOption, ModelArgument


def inspect(model: Annotated[Path, ModelArgument], json: Annotated[bool, JsonOption] = False) -> None:
    """Say what a model is, how good it is for certain, and which nodes share one."""
    with plain_errors():
        from coterie.cli.describe import as_object, cluster_table, in_words
        from coterie.cli.screen import show_json, show_table
        from coterie.estimators import load

        fitted = load(model)
        if json:
            show_json({**as_object(fitted), "model": str(model), "notes": fitted.notes_})
            return
        echo("\n".join(in_words(fitted, fitted.notes_)) + "\n")
        show_table(*cluster_table(fitted))
