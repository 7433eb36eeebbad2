"""A path of λ, from the smallest up to the largest useful one, each solve starting from those of other λ nearby."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.kernels.choice import using
from coterie.kernels.forms import Form
from coterie.problem import BoundProblem, Problem, bound, largest_useful_lam
from coterie.problem.arrays import Array
from coterie.problem.penalties import TotalVariation
from coterie.problem.penalties.by_column import by_column
from coterie.problem.reuse import reusing
from coterie.solver.pace import are_worth_knowing_n, expecting
from coterie.solver.solution import Solution, Status
from coterie.solver.solve import solve_closer
from coterie.solver.strides import balance_of, in_strides, start_at

FIRST = 1e-4  # the gap that the first λ is solved to: nodes without labels, which hardly count, stay near zero before


@dataclass(frozen=True, eq=False)
class Path:
    """Solutions of one problem for several λ, in descending order; iterate over it for pairs of λ and solution.

    Attributes
    ----------
    lams : tuple of float
        The values of λ.
    solutions : tuple of Solution
        One for each of them.
    interrupted : bool, default=False
        Whether Ctrl-C ended it before all λ were solved; those that are missing may lie between others.

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)])
    >>> data = ct.LocalDatasets.from_rows([[1.0], [1.0]], [1.0, 3.0], nodes=[0, 2], n_nodes=3)
    >>> path = ct.solve_path(ct.Problem(graph, data), [0.1, 1.0])
    >>> path.lams, len(path), [solution.status.name for _, solution in path]
    ((1.0, 0.1), 2, ['OPTIMAL', 'OPTIMAL'])
    """

    lams: tuple[float, ...]
    solutions: tuple[Solution, ...]
    interrupted: bool = False

    def __iter__(self) -> Iterator[tuple[float, Solution]]:
        return zip(self.lams, self.solutions, strict=True)

    def __len__(self) -> int:
        return len(self.lams)

    def __repr__(self) -> str:
        ends = f"lam {self.lams[0]:.3g} to {self.lams[-1]:.3g}, " if self.lams else ""
        gap = f"largest gap {max(solution.gap for solution in self.solutions):.2g}" if self.solutions else "empty"
        cut = ", interrupted" if self.interrupted else ""
        return f"Path({len(self)} solutions, {ends}{gap}{cut})"


def solve_path(
    problem: Problem | BoundProblem,
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

    The smallest λ comes first. Some others, each at most twice the last of them, start from that one, and those in
    between from the means of two around them, which often prove themselves: the least objective is concave in λ.

    Parameters
    ----------
    problem : Problem
        Solved for each λ of the path. Ctrl-C ends the path with those that have been solved.
    lams : sequence of float, default=None
        The values of λ. None: n_lams values, evenly spaced in logarithms, from the largest useful λ down to
        `smallest` times it.
    n_lams : int, default=30
        How many values, where lams is None.
    smallest : float, default=0.001
        The last of them, relative to the first.
    tol : float, default=1e-6
        The relative gap to reach at every λ. The first one is solved to 1e-4, if the limits among the options allow
        it: others start from it.
    start : Solution, default=None
        Where to begin at the smallest λ.
    progress : callable, default=None
        Called as ``progress(lam, solution)``, in ascending order of lam, as soon as all smaller ones are solved.
    **options : dict
        Other options of :func:`solve`.

    Returns
    -------
    Path
        One solution per λ.

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)])
    >>> data = ct.LocalDatasets.from_rows([[1.0], [1.0]], [1.0, 3.0], nodes=[0, 2], n_nodes=3)
    >>> path = ct.solve_path(ct.Problem(graph, data), n_lams=3)
    >>> len(path), len(path.solutions[0].clusters())
    (3, 1)
    """
    problem = bound(problem)
    values = lam_grid(problem, n_lams, smallest) if lams is None else _descending(lams)
    found: dict[int, Solution] = {}
    untold = len(values) - 1
    with expecting(len(values)), reusing():
        for k, near in in_strides(values):
            here = problem.at(values[k])
            try:
                begin = start_at(here, [(values[j], found[j]) for j in near], start, tol)
                first = begin is None or (begin is start and k > 0)  # it starts from nothing, or larger λ start from it
                balance = balance_of(here, [found[j] for j in _two(near, found)])
                found[k] = solve_closer(here, tol, FIRST if first else tol, start=begin, balance=balance, **options)
            except KeyboardInterrupt:  # before or after the iterations: of this λ there is nothing
                if not found:
                    raise
                break
            while progress is not None and untold in found:
                progress(values[untold], found[untold])
                untold -= 1
            if found[k].status is Status.INTERRUPTED:
                break
    solved = sorted(found)
    cut = len(solved) < len(values) or any(found[k].status is Status.INTERRUPTED for k in solved)
    return Path(tuple(values[k] for k in solved), tuple(found[k] for k in solved), cut)


def _two(near: tuple[int, ...], found: Collection[int]) -> tuple[int, ...]:
    """The numbers of two solutions nearby; fewer, where only one is known."""
    return near if len(near) != 1 else tuple(k for k in (near[0], near[0] + 1) if k in found)


def _descending(lams: Sequence[float]) -> list[float]:
    values = np.asarray(lams, dtype=np.float64)
    if values.ndim != 1 or not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError(f"lams must be a sequence of finite numbers ≥ 0, got {lams}")
    return sorted(values.tolist(), reverse=True)


def lam_grid(problem: Problem | BoundProblem, n_lams: int = 30, smallest: float = 1e-3) -> list[float]:
    """Return n_lams values, evenly spaced in logarithms, from the largest useful λ down to `smallest` times it.

    Squared variation has no largest useful λ, and acts over a wider range: from where neighbours differ by about a
    hundredth of the weights down to smallest² times that.
    """
    if n_lams < 1 or not 0 < smallest <= 1:
        raise ValueError(f"n_lams must be at least 1 and smallest in (0, 1], got {n_lams} and {smallest}")
    problem = bound(problem)
    with using(Form.THIS_N) if are_worth_knowing_n(problem, n_lams) else nullcontext():
        largest = largest_useful_lam(problem)
    if not np.isfinite(largest):
        largest, smallest = _nearly_equal(problem), smallest**2
    return [0.0] if largest == 0 else below(largest, n_lams, smallest)


def below(largest: float, n_lams: int, smallest: float) -> list[float]:
    """So many λ from the largest down to `smallest` times it."""
    return [float(v) for v in np.geomspace(largest, smallest * largest, n_lams)]


def _nearly_equal(problem: BoundProblem) -> float:
    """A λ of squared variation under which neighbours differ by about a hundredth of the weights.

    An edge that carries the flow u has u = 2λA(w_i − w_j), and total variation's largest useful λ bounds |u|/A.
    """
    plain = TotalVariation()
    penalty = plain if problem.strength is None else by_column(plain, problem.strength)
    flow = largest_useful_lam(replace(problem, penalty=penalty))
    common = problem.f.pooled(np.zeros(len(problem.M), dtype=np.int64), 1)[0]
    return hardly_apart(flow, common)


def hardly_apart(flow: float, common: Array) -> float:
    """That λ, where total variation's largest useful one is `flow` and one model for all is `common`."""
    size = float(np.sqrt((common**2).mean()))
    return 50 * flow / size if size > 0 else flow
