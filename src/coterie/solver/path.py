"""A path of λ, from the largest useful one down, each solve starting where the last one ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.problem import Problem, largest_useful_lam
from coterie.problem.penalties import TotalVariation
from coterie.solver.pace import expecting
from coterie.solver.solution import Solution, Status
from coterie.solver.solve import solve


@dataclass(frozen=True, eq=False)
class Path:
    """Solutions of one problem for several λ, in descending order."""

    lams: tuple[float, ...]
    solutions: tuple[Solution, ...]

    def __iter__(self) -> Iterator[tuple[float, Solution]]:
        return zip(self.lams, self.solutions, strict=True)

    def __len__(self) -> int:
        return len(self.lams)


def solve_path(
    problem: Problem,
    lams: Sequence[float] | None = None,
    *,
    n_lams: int = 30,
    smallest: float = 1e-3,
    tol: float = 1e-6,
    start: Solution | None = None,
    progress: Callable[[float, Solution], None] | None = None,
    **options: Any,
) -> Path:
    """Solve for many λ, warm-started.

    Parameters
    ----------
    problem : Problem
        Its own λ does not matter. Ctrl-C ends the path with the λ that it was at.
    lams : sequence of float, optional
        By default n_lams values, evenly spaced in logarithms, from the largest useful λ down to `smallest` times it.
    tol, start, **options
        As for :func:`solve`; `start` is for the first λ.
    progress : callable, optional
        Called as ``progress(lam, solution)`` after each solve.
    """
    values = lam_grid(problem, n_lams, smallest) if lams is None else _descending(lams)
    solutions: list[Solution] = []
    with expecting(len(values)):
        for lam in values:
            start = solutions[-1] if solutions else start
            solutions.append(solve(replace(problem, lam=lam), tol, start=start, **options))
            if progress is not None:
                progress(lam, solutions[-1])
            if solutions[-1].status is Status.INTERRUPTED:
                break
    return Path(tuple(values[: len(solutions)]), tuple(solutions))


def _descending(lams: Sequence[float]) -> list[float]:
    values = np.asarray(lams, dtype=np.float64)
    if values.ndim != 1 or not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError(f"lams must be a sequence of finite numbers ≥ 0, got {lams}")
    return sorted(values.tolist(), reverse=True)


def lam_grid(problem: Problem, n_lams: int = 30, smallest: float = 1e-3) -> list[float]:
    """Return n_lams values, evenly spaced in logarithms, from the largest useful λ down to `smallest` times it.

    Squared variation has no largest useful λ, and acts over a wider range: from where neighbours differ by about a
    hundredth of the weights down to smallest² times that.
    """
    if n_lams < 1 or not 0 < smallest <= 1:
        raise ValueError(f"n_lams must be at least 1 and smallest in (0, 1], got {n_lams} and {smallest}")
    largest = largest_useful_lam(problem)
    if not np.isfinite(largest):
        largest, smallest = _nearly_equal(problem), smallest**2
    if largest == 0:
        return [0.0]
    return [float(v) for v in np.geomspace(largest, smallest * largest, n_lams)]


def _nearly_equal(problem: Problem) -> float:
    """A λ of squared variation under which neighbours differ by about a hundredth of the weights.

    An edge that carries the flow u has u = 2λA(w_i − w_j), and total variation's largest useful λ bounds |u|/A.
    """
    flow = largest_useful_lam(replace(problem, penalty=TotalVariation()))
    common = problem.f.pooled(np.zeros(len(problem.M), dtype=np.int64), 1)[0]
    size = float(np.sqrt((common**2).mean()))
    return 50 * flow / size if size > 0 else flow
