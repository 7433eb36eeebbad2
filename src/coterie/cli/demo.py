"""coterie demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.echo import echo
from coterie.cli.errors import BadInputError, check_folder, plain_errors

if TYPE_CHECKING:
    from coterie.experiments.methods import Outcome

EXPLANATION = """\
Errors are means of (label − prediction)²; test: on the nodes whose labels were hidden.
Gap: how far, at most, the objective lies above the lowest possible one, as a part of it."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("coterie-demo"),
    seed: Annotated[int, typer.Option(help="Which random network to draw; 0 or more.")] = 0,
) -> None:
    """Fit the paper's network in a few seconds, and draw a picture of it.

    300 local datasets in two close-knit groups; the 5 points of only 30 of them have labels. Three methods learn
    from these, and are tested on the other 270.
    """
    from coterie.cli.screen import progress, show_table

    with plain_errors():
        if seed < 0:
            raise BadInputError(f"--seed must be 0 or more, got {seed}")
        check_folder(out)
        from coterie.experiments.demo import STEPS, run_demo

        with progress(STEPS) as step:
            result = run_demo(out, seed, step)
        header = ("method", "train error", "test error", "gap", "iterations", "seconds")
        show_table(header, [_cells(o) for o in result.outcomes])
        echo(f"\n{EXPLANATION}\nPicture: {result.picture}")


def _cells(outcome: Outcome) -> tuple[str, ...]:
    iterations = "–" if outcome.n_iter is None else str(outcome.n_iter)
    gap = "–" if outcome.gap != outcome.gap else f"{outcome.gap:.1e}"
    return outcome.method, f"{outcome.train:.1e}", f"{outcome.test:.1e}", gap, iterations, f"{outcome.seconds:.2f}"
