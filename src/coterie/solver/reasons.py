"""Why a solve ended where it did, in words that name what to change."""

from __future__ import annotations

from math import inf

import numpy as np

from coterie.kernels.interruption import TimeUp, allow, interruptible, time_is_up
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.proofs.enclosure import Enclosure
from coterie.solver.solution import Solution, Status
from coterie.solver.units import Units

DOES_IT = "standardize=True of an estimator does it"
LITTLE = 1e-6  # of the losses: a penalty that rounding can hide
MOST_COLUMNS = 500  # for which a reason is looked for among their combinations
LIMITS = {
    Status.TIME_LIMIT: "It may get there with a longer time_limit.",
    Status.ITERATION_LIMIT: "It may get there with a larger max_iter.",
    Status.STALLED: "Double precision cannot state it any better for these data: ask for a larger tol.",
}
UNEVEN = 1e4  # a ratio of the sizes of columns, or of edge weights, that slows a solve down
MANY = 1_000_000  # numbers in X that take time to look at
MOMENT = 0.1  # seconds to look for a reason, after a time limit


def in_words(problem: BoundProblem, solution: Solution, tol: float) -> str:
    """Say how a solve ended, what its gap is and rests on, and what stands in the way."""
    ended = f"{solution.status.value} Certified gap: {solution.gap:.2e}, asked for: {tol:.2e}."
    rests = f" The bound holds if {solution.condition}." if solution.condition else ""
    why = _what_stands_in_the_way(problem, solution)
    return ended + rests + (f" {why}" if why else "")


def _what_stands_in_the_way(problem: BoundProblem, solution: Solution) -> str:
    design = problem.f.below
    if design is None or not len(design.X) or solution.status is Status.INTERRUPTED:
        return ""
    hidden, enclosed = ([], True) if solution.unconditional else _hidden(problem, solution)
    if hidden is None:
        return ""
    if solution.status is Status.TIME_LIMIT and design.X.size > MANY:
        return LIMITS[solution.status]
    size = np.abs(design.X).max(axis=0)
    there = size[size > 0]
    if hidden:
        return (
            f"Columns {_some(hidden)} of X are collinear, or cannot be told from that in double precision: "
            "drop one, centre it, or give it a ridge."
        )
    if not enclosed and design.psi.no_minimiser:
        return design.psi.no_minimiser
    offset = np.abs(design.X.mean(axis=0)) > UNEVEN * design.X.std(axis=0)
    offset &= design.X.std(axis=0) > 0
    if offset.any():
        columns = _some(np.flatnonzero(offset).tolist())
        return f"Column {columns} of X is far from zero beside its spread; centre it: {DOES_IT}."
    if there.size and there.max() > UNEVEN * there.min():
        columns = f"{int(size.argmax())} and {_smallest(size)}"
        return f"Columns {columns} of X differ widely in scale; standardise them: {DOES_IT}."
    weights = problem.graph.weights
    if weights.size and weights.max() > UNEVEN**1.5 * weights.min():
        return f"Edge weights range from {weights.min():.1e} to {weights.max():.1e}; bring them closer together."
    if nearly := _nearly_collinear(design.X):
        return f"Columns {_some(nearly)} of X are collinear, or nearly so: drop one, or give it a ridge."
    return _what_is_small(problem) or LIMITS.get(solution.status, "")


def _nearly_collinear(X: Array) -> list[int]:
    """Columns of the combination that the rows see least, if that is next to nothing."""
    size = np.linalg.norm(X, axis=0)
    there = np.flatnonzero(size > 0)
    if not 1 < len(there) <= MOST_COLUMNS:
        return []
    unit = X[:, there] / size[there]
    curvatures, directions = np.linalg.eigh(unit.T @ unit)
    return there[np.abs(directions[:, 0]) > 0.1].tolist() if curvatures[0] * UNEVEN**2 < curvatures[-1] else []


def _what_is_small(problem: BoundProblem) -> str:
    """The penalty that is next to nothing beside the losses, in units in which X and y are of order one."""
    inner = Units.of(problem).problem
    box, design = inner.f.l1_box, inner.f.below
    assert design is not None
    strengths = {"lam": inner.c, "alpha": np.zeros(0) if box is None else box[1], "ridge": design.ridge}
    for name, values in strengths.items():
        there = values[values > 0]
        if there.size and there.max() < LITTLE:
            return (
                f"{name} is next to nothing beside the losses, and rounding hides what it does: make it larger, or 0."
            )
    return ""


def _hidden(problem: BoundProblem, solution: Solution) -> tuple[list[int] | None, bool]:
    """Columns that are, or look, collinear, and whether the data enclose all minimisers.

    None where it takes too long to find out, or Ctrl-C says not to.
    """
    with interruptible():
        allow(MOMENT if solution.status is Status.TIME_LIMIT else inf)
        try:
            enclosure = Enclosure(problem)
            found: list[int] = enclosure.open_columns().tolist()
            enclosed = bool(np.isfinite(enclosure.reach(solution.objective)))
            return (None, False) if time_is_up() else (found, enclosed)
        except (KeyboardInterrupt, TimeUp):
            return None, False


def _some(columns: list[int]) -> str:
    shown = ", ".join(map(str, columns[:4]))
    return shown + (" …" if len(columns) > 4 else "")


def _smallest(size: np.ndarray) -> int:
    return int(np.where(size > 0, size, np.inf).argmin())
