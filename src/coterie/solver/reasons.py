"""Why a solve ended where it did, in words that name what to change."""

from __future__ import annotations

from math import inf

import numpy as np

from coterie.kernels.interruption import TimeUp, allow, interruptible, time_is_up
from coterie.problem import Problem
from coterie.problem.losses.design import LOGISTIC
from coterie.solver.enclosure import Enclosure
from coterie.solver.solution import Solution, Status

DOES_IT = "standardize=True of an estimator does it"
UNEVEN = 1e4  # a ratio of the sizes of columns, or of edge weights, that slows a solve down
MOMENT = 0.1  # seconds to look for a reason, after a time limit


def in_words(problem: Problem, solution: Solution, tol: float) -> str:
    """Say how a solve ended, what its gap is and rests on, and what stands in the way."""
    ended = f"{solution.status.value} Certified gap: {solution.gap:.2e}, asked for: {tol:.2e}."
    rests = f" The bound holds if {solution.condition}." if solution.condition else ""
    why = _what_stands_in_the_way(problem, solution)
    return ended + rests + (f" {why}" if why else "")


def _what_stands_in_the_way(problem: Problem, solution: Solution) -> str:
    design = problem.f.design
    if design is None or not len(design.X) or solution.status is Status.INTERRUPTED:
        return ""
    hidden = [] if solution.unconditional else _hidden(problem, solution)
    if hidden is None:
        return ""
    size = np.abs(design.X).max(axis=0)
    there = size[size > 0]
    if hidden:
        return (
            f"Columns {_some(hidden)} of X are collinear, or cannot be told from that in double precision: "
            "drop one, centre it, or give it a ridge."
        )
    if not solution.unconditional and design.kind == LOGISTIC:
        return "The classes can be separated, so that weights grow without end; a ridge on every column prevents it."
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
    return ""


def _hidden(problem: Problem, solution: Solution) -> list[int] | None:
    """Columns that are, or look, collinear; None where it takes too long to find out, or Ctrl-C says not to."""
    with interruptible():
        allow(MOMENT if solution.status is Status.TIME_LIMIT else inf)
        try:
            found: list[int] = Enclosure(problem).open_columns().tolist()
            return None if time_is_up() else found
        except (KeyboardInterrupt, TimeUp):
            return None


def _some(columns: list[int]) -> str:
    shown = ", ".join(map(str, columns[:4]))
    return shown + (" …" if len(columns) > 4 else "")


def _smallest(size: np.ndarray) -> int:
    return int(np.where(size > 0, size, np.inf).argmin())
