"""solve: from a problem to a certified solution."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from math import inf
from numbers import Real
from typing import Any

import numpy as np

from coterie.engines.base import Engine
from coterie.engines.growing import GrowingEngine
from coterie.engines.numpy import NumpyEngine
from coterie.kernels import compilation
from coterie.kernels.choice import form_here, is_loaded, using
from coterie.kernels.forms import Form
from coterie.kernels.interruption import TimeUp, allow, interruptible, seconds_left, seconds_worked
from coterie.problem import BoundProblem, Problem, bound
from coterie.problem.arrays import Array
from coterie.problem.strengths import in_plain_terms, with_means_where_undetermined
from coterie.solver.algorithm1 import initial
from coterie.solver.certify import check_point
from coterie.solver.columns_of_one import Asked, ColumnsOfOne
from coterie.solver.driver import drive
from coterie.solver.incumbent import unproven
from coterie.solver.pace import Pace, may_be_rough
from coterie.solver.presolve import presolve
from coterie.solver.reasons import LIMITS, in_words
from coterie.solver.solution import NotConverged, Record, Solution, Status
from coterie.solver.units import Units

ENGINES = ("auto", "numba", "numpy", "gpu", "mpi")


def solve(
    problem: Problem | BoundProblem,
    tol: float = 1e-6,
    *,
    max_iter: int = 100_000,
    time_limit: float | None = None,
    callback: Callable[[Record], None] | None = None,
    start: Solution | None = None,
    engine: str | Engine = "auto",
    threads: int | None = None,
) -> Solution:
    """Solve to a certified relative gap.

    Parameters
    ----------
    problem : Problem
        What to solve.
    tol : float, default=1e-6
        The relative gap to reach; see :class:`Solution` for what it is relative to.
    max_iter : int, default=100000
        Iterations at most.
    time_limit : float, default=None
        In seconds, from the call on; compiling, on first use, does not count. None: no limit.
    callback : callable, default=None
        Called with a :class:`Record` whenever the gap has been computed.
    start : Solution, default=None
        Where to begin: the solution of a similar problem on the same graph.
    engine : {"auto", "numba", "numpy", "gpu", "mpi"} or Engine, default="auto"
        What computes the iterations: compiled kernels ("numba"), NumPy, which compiles nothing, an NVIDIA GPU
        ("gpu", with the extra ``coterie[gpu]``), or the ranks of an MPI job ("mpi", with the extra ``coterie[mpi]``,
        in a script that mpiexec runs). "auto" begins small problems of a new kind in NumPy, goes on compiled
        where that takes too long, and takes a GPU for very large ones, where there is one.
    threads : int, default=None
        How many the compiled engine uses. None: as many as pay, up to the number of cores, or to
        NUMBA_NUM_THREADS or OMP_NUM_THREADS where these are set.

    Returns
    -------
    Solution
        If the gap is above tol, a :class:`NotConverged` warning says so and names it.

    Raises
    ------
    TypeError
        If problem is not a Problem.
    ValueError
        If tol or a limit is not a number ≥ 0, or start belongs to another graph.

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)])
    >>> data = ct.LocalDatasets.from_rows([[1.0], [1.0]], [1.0, 3.0], nodes=[0, 2], n_nodes=3)
    >>> solution = ct.solve(ct.Problem(graph, data, lam=0.5))
    >>> solution.status.name, solution.gap <= 1e-6
    ('OPTIMAL', True)
    """
    limits: dict[str, Any] = {"max_iter": max_iter, "time_limit": time_limit, "callback": callback}
    return solve_closer(problem, tol, tol, **limits, start=start, engine=engine, threads=threads)


@interruptible()
def solve_closer(
    problem: Problem | BoundProblem,
    tol: float,
    closer: float,
    *,
    max_iter: int = 100_000,
    time_limit: float | None = None,
    callback: Callable[[Record], None] | None = None,
    start: Solution | None = None,
    engine: str | Engine = "auto",
    threads: int | None = None,
    balance: float | None = None,
) -> Solution:
    """Solve to the smaller of two gaps, where the limits allow it; what is within tol is what was asked for.

    `balance` is the ω of the first steps, where solutions nearby tell it (`strides.balance_of`).
    """
    limits: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "time_limit": 0 if time_limit is None else time_limit}
    for name, value in limits.items():
        if not isinstance(value, Real) or not float(value) >= 0:
            raise ValueError(f"{name} must be a number ≥ 0, got {value!r}")
    limit, began = inf if time_limit is None else time_limit, seconds_worked()
    problem = in_plain_terms(bound(problem))
    if start is not None:
        w, u = check_point(problem, start.w, start.u)
        start = replace(start, w=w, u=u)
    left = min(limit - (seconds_worked() - began), seconds_left())
    asked = Asked(min(tol, closer), int(max_iter), left, callback, start, engine, threads, balance)
    plain = ColumnsOfOne.of(problem)
    solution, form = _solved(problem, asked) if plain is None else plain.first(_solved, problem, asked)
    if solution.gap <= tol and solution.status in LIMITS:
        solution = replace(solution, status=Status.OPTIMAL if solution.unconditional else Status.CONDITIONAL)
    if solution.status is not Status.OPTIMAL and _speaks(engine):
        with using(form):
            warnings.warn(in_words(problem, solution, tol), NotConverged, stacklevel=4)
    return solution


def _solved(problem: BoundProblem, asked: Asked) -> tuple[Solution, Form]:
    """Solve in units of its own, presolved; return the form of kernels that it ended with as well."""
    pace, start = Pace(problem), asked.start
    chosen = engine_for(asked.engine, asked.threads, pace)
    began = time.perf_counter()
    allow(asked.limit)
    with using(_form(chosen, pace)), _together(chosen, problem, asked):
        units = Units.of(problem)
        reduced = presolve(units.problem)
        w, u = _first(reduced.problem) if start is None else reduced.restrict(*units.into(start.w, start.u))
        w[reduced.problem.undetermined] = 0.0
        inner, telling = reduced.problem, units.telling(asked.callback)
        limits: dict[str, Any] = {"tol": asked.tol, "max_iter": asked.max_iter, "callback": telling}
        expected = 0 if start is None else start.n_iter
        omega = None if asked.balance is None else units.ratio_into(asked.balance)
        if _prepared(problem):
            solution = drive(inner, chosen, w, u, **limits, expected=expected, omega=omega)
        else:
            solution = unproven(inner, w, u)
        w, u = reduced.lift(solution.w, solution.u)
        w = with_means_where_undetermined(units.problem, w)
        solution = units.back(replace(solution, w=w, u=u, undetermined=units.problem.undetermined, graph=problem.graph))
        pace.ended(solution.n_iter, form_here())
        if may_be_rough(problem, asked.tol) and form_here() is Form.THIS_N:
            pace.ended_roughly(solution.n_iter, chosen.was_rough)
        return replace(solution, seconds=time.perf_counter() - began), form_here()


def _prepared(problem: BoundProblem) -> bool:
    """Whether there was time to prepare the losses."""
    try:
        problem.f.prepare()
    except TimeUp:
        return False
    return True


def _first(problem: BoundProblem) -> tuple[Array, Array]:
    """Where to begin: zeros, and the own minimisers of nodes without neighbours, if there is time to find them."""
    try:
        return initial(problem)
    except TimeUp:
        n = problem.n_features
        return np.zeros((problem.graph.n_nodes, n)), np.zeros((problem.graph.n_edges, n))


def check_engine(name: str | Engine, threads: int | None = None) -> None:
    """Refuse names and numbers of threads that mean nothing."""
    if threads is not None and not (isinstance(threads, int | np.integer) and threads >= 1):
        raise ValueError(f"threads must be a whole number ≥ 1, got {threads!r}")
    if isinstance(name, str) and name not in ENGINES:
        raise ValueError(f"there is no engine {name!r}; choose one of {', '.join(ENGINES)}")
    if not isinstance(name, str) and Engine not in type(name).__mro__:
        raise TypeError(f"{type(name).__name__} is no engine; inherit from coterie.engines.base.Engine")


def engine_for(name: str | Engine, threads: int | None, pace: Pace) -> Engine:
    """Return the engine of that name, with so many threads if it has any."""
    check_engine(name, threads)
    if not isinstance(name, str):
        return name
    if name == "numpy":
        return NumpyEngine()
    if name == "gpu" and pace.problem.by_column is not None:
        raise TypeError('strengths of 0 or inf are not known to the GPU: leave engine="gpu" out')
    if name == "gpu" or (name == "auto" and pace.suits_gpu()):
        return _gpu_engine(announce=name == "auto")
    if name == "mpi":
        return _mpi_engine(threads, pace)
    if name == "auto" and pace.form() is not Form.THIS_N:
        return GrowingEngine(pace.form, threads)
    from coterie.engines.numba import NumbaEngine

    return NumbaEngine(threads, single=name == "numba" or pace.single_pays())


def _gpu_engine(announce: bool) -> Engine:
    """The engine on the GPU; what starting it takes counts as compiling does: no limit counts it."""
    with compilation.running():
        from coterie.engines.gpu.device import choose

        choose()
        from coterie.engines.gpu.engine import GpuEngine

        engine = GpuEngine()
    if announce and sys.stderr.isatty():
        print('coterie: solving on the GPU; engine="numba" would use the processor', file=sys.stderr)
    return engine


def _mpi_engine(threads: int | None, pace: Pace) -> Engine:
    """The engine of this rank; what starting it takes counts as compiling does."""
    if threads not in (None, 1):
        raise ValueError(f'engine="mpi" works with one thread per rank: launch more ranks instead of threads={threads}')
    with compilation.running():
        from coterie.engines.mpi.launch import world

        world()
        from coterie.engines.mpi.engine import MpiEngine

        return MpiEngine(pace.form() if pace.problem.by_column is None else Form.NUMPY)


def _speaks(engine: str | Engine) -> bool:
    """Whether this process warns: of several ranks, the first."""
    if engine != "mpi":
        return True
    from coterie.engines.mpi.launch import world

    return int(world().rank) == 0


def _together(engine: Engine, problem: BoundProblem, asked: Asked) -> AbstractContextManager[None]:
    """The context of an engine that consists of several processes, which must have been asked the same.

    How much time is left differs between them by how long each took to get here: inside they have one clock.
    """
    start = None if asked.start is None else (asked.start.w, asked.start.u)
    told, limited = asked.callback is not None, asked.limit < inf
    return engine.together(
        problem=problem, start=start, tol=asked.tol, max_iter=asked.max_iter, time_limit=limited, callback=told
    )


def _form(engine: Engine, pace: Pace) -> Form:
    """The form of kernels that a solve with this engine begins with; for others it is chosen as its own would be."""
    if engine.now is not None:
        return engine.now
    if isinstance(engine, NumpyEngine) or not pace.can_compile:
        return Form.NUMPY
    return Form.THIS_N if is_loaded() else pace.form()
