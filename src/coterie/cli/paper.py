"""coterie paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.echo import echo
from coterie.cli.errors import BadInputError, check_folder, plain_errors


def paper(
    quick: Annotated[bool, typer.Option("--quick", help="Two draws and coarser figures: under a minute.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the page and its figures.")] = Path("coterie-paper"),
    seeds: Annotated[
        int | None, typer.Option(help="Number of random networks to draw.", show_default="10, or 2 with --quick")
    ] = None,
) -> None:
    """Run the experiment of the paper again: its table, both figures, and a page that explains them.

    As printed, as the authors' code had it, and solved to a certified optimum; with two baselines.
    """
    from coterie.cli.screen import progress, show_table

    with plain_errors():
        if seeds is not None and seeds < 1:
            raise BadInputError(f"--seeds must be at least 1, got {seeds}")
        check_folder(out)
        from coterie.experiments.page import HEADER, table_rows
        from coterie.experiments.paper import PAGE, Plan, run_paper

        plan = Plan.quick(seeds or 2) if quick else Plan(seeds or 10)
        command = f"coterie paper{' --quick' if quick else ''} --seeds {plan.seeds}"
        with progress(plan.n_steps) as step:
            results = run_paper(plan, out, step, command)
        show_table(HEADER, table_rows(results.lines))
        draws = f"{plan.seeds} draws" if plan.seeds > 1 else "1 draw"
        echo(f"\nMedian (lowest … highest) of {draws}. Page with both figures: {out / PAGE}")
