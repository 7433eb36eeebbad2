"""The numerical experiment of the paper: its table, both figures, and a page about them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from coterie.experiments.curves import Curve, boundary_curve, weight_curves
from coterie.experiments.table import Line, Step, run_table
from coterie.io.files import staged
from coterie.report.figures import draw_curves, new_figure, save_figure

PAGE = "paper.md"
FIGURE_1 = "figures/iterations.png"
FIGURE_2 = "figures/p_out.png"


@dataclass(frozen=True)
class Plan:
    """How much to run."""

    seeds: int = 10
    lams: tuple[float, ...] = (1.0, 0.1, 1e-2, 1e-3, 1e-4)
    p_outs: tuple[float, ...] = (1e-3, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
    lams_at_boundary: tuple[float, ...] = (3e-4, 1e-3, 2e-3, 3e-3, 5e-3, 1e-2, 0.1)

    @classmethod
    def quick(cls, seeds: int = 2) -> Plan:
        """Two draws and thinner grids."""
        return cls(seeds, (0.1, 1e-2, 1e-3), (1e-3, 0.2, 0.3, 0.4), (1e-3, 3e-3, 1e-2))

    @property
    def n_steps(self) -> int:
        """How often :func:`run_paper` says that a piece of work begins."""
        return 2 * self.seeds + len(self.lams) + 1 + len(self.p_outs)


@dataclass(frozen=True, eq=False)
class Results:
    """Everything that was measured."""

    plan: Plan
    lines: list[Line]
    descent: list[Curve]
    boundary: Curve
    seconds: float


def run_paper(plan: Plan, out: Path, step: Step, command: str = "coterie paper") -> Results:
    """Run the plan and write the page and both figures into the folder `out`, all of them or none."""
    from coterie.experiments.page import write_page

    with staged(out) as folder:
        new_figure(1, 1)  # a missing matplotlib is noticed now, not after minutes
        began = time.perf_counter()
        lines = run_table(plan.seeds, step)
        descent = weight_curves(plan.lams, plan.seeds, step)
        boundary = boundary_curve(plan.p_outs, plan.lams_at_boundary, plan.seeds, step)
        results = Results(plan, lines, descent, boundary, time.perf_counter() - began)
        (folder / "figures").mkdir()
        _draw(results, folder)
        (folder / PAGE).write_text(write_page(results, command), encoding="utf-8")
    return results


def _draw(results: Results, folder: Path) -> None:
    first, second = new_figure(7, 4.5), new_figure(7, 4.5)
    draw_curves(
        first.add_subplot(),
        [(c.label, c.x, c.y) for c in results.descent],
        "iteration k of Algorithm 1",
        "mean of (w̄ − w)² over nodes and coordinates",
    )
    c = results.boundary
    draw_curves(
        second.add_subplot(),
        [(c.label, c.x, c.y)],
        "probability of an edge across clusters, p_out",
        "label MSE of unlabelled nodes",
    )
    save_figure(first, folder / FIGURE_1)
    save_figure(second, folder / FIGURE_2)
