"""coterie federate audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.echo import echo
from coterie.cli.errors import BadInputError, plain_errors


def audit(
    folder: Annotated[Path, typer.Argument(help="The site's folder.")],
    run: Annotated[int | None, typer.Option(help="Only the messages of this run.")] = None,
) -> None:
    """Print what has left a site: one line per message, with time, run, kind, bytes and a hash of what left."""
    with plain_errors():
        from coterie.federation.audit import COUNTED, entries
        from coterie.federation.site_folder import AUDIT

        if not (folder / AUDIT).exists():
            raise BadInputError(f"there is no {AUDIT} in {folder}: nothing has left it")
        all_of_them = entries(folder)
        echo(f"{'time':29}  {'run':>20}  {'kind':9}  {'bytes':>9}  hash")
        for one in all_of_them:
            if run is None or one.run == run:
                refused = f"  refused: {one.refused}" if one.refused else ""
                echo(f"{one.time:29}  {one.run:>20}  {one.kind:9}  {one.bytes:>9}  {one.hash[:16]}{refused}")
        answered = {one.asked for one in all_of_them if one.kind in COUNTED and not one.refused}
        out = sum(one.bytes for one in all_of_them)
        echo(f"{len(all_of_them)} messages, {out} bytes; {len(answered)} different questions were answered")
