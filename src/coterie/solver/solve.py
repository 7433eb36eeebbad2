"""solve: from a problem to a certified solution."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from coterie.engines.numpy import NumpyEngine
from coterie.problem import Problem
from coterie.solver.algorithm1 import initial
from coterie.solver.driver import drive
from coterie.solver.solution import NotConverged, Record, Solution, Status


def solve(
    problem: Problem,
    tol: float = 1e-6,
    *,
    max_iter: int = 100_000,
    time_limit: float | None = None,
    callback: Callable[[Record], None] | None = None,
    start: Solution | None = None,
) -> Solution:
    """Solve to a certified relative gap.

    Parameters
    ----------
    problem : Problem
    tol : float
        The relative gap to reach; see :class:`Solution` for what it is relative to.
    max_iter : int
    time_limit : float, optional
        In seconds.
    callback : callable, optional
        Called with a :class:`Record` whenever the gap has been computed.
    start : Solution, optional
        Where to begin: the solution of a similar problem on the same graph.

    Returns
    -------
    Solution
        If the gap is above tol, a :class:`NotConverged` warning says so and names it.
    """
    w, u = initial(problem) if start is None else (start.w, start.u)
    solution = drive(
        problem,
        NumpyEngine(),
        w,
        u,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        callback=callback,
    )
    if solution.status is not Status.OPTIMAL:
        warnings.warn(
            f"{solution.status.value} Certified gap: {solution.gap:.2e}, asked for: {tol:.2e}.",
            NotConverged,
            stacklevel=2,
        )
    return solution
