"""A certificate of any weights and duals, whoever found them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coterie.engines.bounded_rows import array_prover
from coterie.kernels.blas import one_thread
from coterie.kernels.choice import form_here, is_chosen, using
from coterie.kernels.interruption import interruptible
from coterie.problem import BoundProblem, Problem, bound
from coterie.problem.arrays import Array, as_floats
from coterie.problem.strengths import in_plain_terms
from coterie.solver.certificate import Certificate, Certifier
from coterie.solver.pace import Pace
from coterie.solver.presolve import presolve
from coterie.solver.units import Units


@interruptible()
@one_thread()
def certify(problem: Problem | BoundProblem, w: Array, u: Array) -> Certificate:
    """Return the objective at w and a lower bound on the optimum, from a dual point near u.

    Parameters
    ----------
    problem : Problem
        What w and u are an answer to.
    w : array of shape (V, n)
        Weights of every node, from any solver.
    u : array of shape (E, n)
        Dual variables of every edge; they need not be feasible.

    Returns
    -------
    Certificate
        With objective, dual_bound, whether the bound is unconditional, and the feasible u that proves it.

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)])
    >>> data = ct.LocalDatasets.from_rows([[1.0], [1.0]], [1.0, 3.0], nodes=[0, 2], n_nodes=3)
    >>> problem = ct.Problem(graph, data, lam=0.5)
    >>> solution = ct.solve(problem)
    >>> proof = ct.certify(problem, solution.w, solution.u)
    >>> proof.unconditional, proof.objective - proof.dual_bound < 1e-6
    (True, True)
    """
    problem = in_plain_terms(bound(problem))
    units = Units.of(problem)
    w, u = units.into(*check_point(problem, w, u))
    with using(form_here() if is_chosen() else Pace(problem).form()):
        proof = Certifier(array_prover(units.problem))(w, u.copy())
        reduced = presolve(units.problem)
        if reduced.rounds:  # the smaller problem has the same optimum, and less to charge
            smaller = Certifier(array_prover(reduced.problem))(*reduced.restrict(w, u))
            if smaller.dual_bound > proof.dual_bound:
                dual = reduced.lift(np.zeros((reduced.problem.graph.n_nodes, w.shape[1])), smaller.u)[1]
                proof = replace(smaller, objective=proof.objective, u=dual)
    return units.proof_back(proof)


def check_point(problem: BoundProblem, w: Array, u: Array) -> tuple[Array, Array]:
    """Return weights and duals as float64; refuse those that do not belong to the problem, or are not finite."""
    n, point = problem.n_features, []
    for name, given, shape in (("w", w, (problem.graph.n_nodes, n)), ("u", u, (problem.graph.n_edges, n))):
        array = as_floats(given, name)
        if array.shape != shape:
            raise ValueError(f"{name} must have shape {shape} for this problem; got {array.shape}")
        if not np.isfinite(array).all():
            i, k = np.argwhere(~np.isfinite(array))[0]
            raise ValueError(f"{name}[{i}, {k}] is {array[i, k]}; weights and duals must be finite")
        point.append(array)
    return point[0], point[1]
