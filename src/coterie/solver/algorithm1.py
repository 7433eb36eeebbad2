"""Algorithm 1 of Sarcheshmehpour, Leinonen and Jung, "Federated Learning from Big Data over Networks".

The symbols are the paper's: weights ŵ (V × n) on nodes, duals û (E × n) on edges, the incidence matrix D,
the labelled nodes M, the steps T = diag(τ) and Σ = diag(σ), the primal update PU_i and the clipping T^(λA_e).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from coterie.problem import BoundProblem, Problem, bound
from coterie.problem.arrays import Array
from coterie.problem.strengths import with_tied_means
from coterie.solver.certificate import relative_gap
from coterie.solver.certify import certify
from coterie.solver.solution import Record, Solution, Status


def algorithm1(
    problem: Problem | BoundProblem,
    n_iter: int = 500,
    sigma: float = 0.5,
    tau: float = 1.0,
    callback: Callable[[int, Array, Array], None] | None = None,
) -> Solution:
    """Run the paper's primal-dual method from zero, exactly as printed, and certify what comes out.

    Parameters
    ----------
    problem : Problem
        What to solve.
    n_iter : int, default=500
        The number of iterations; there is no other stopping criterion.
    sigma : float, default=0.5
        σ^(e) of every edge.
    tau : float, default=1.0
        τ^(i) = tau/|N_i|. The printed choice is 1; with sigma = 1/(2 tau), any tau > 0 converges.
    callback : callable, default=None
        Called as ``callback(k, w, u)`` after each iteration k = 1, 2, …; the arrays are not copies.

    Returns
    -------
    Solution
        The last weights, with a certificate of how far from optimal they are.

    Raises
    ------
    ValueError
        If n_iter is negative, or sigma or tau is not positive.

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)])
    >>> data = ct.LocalDatasets.from_rows([[1.0], [1.0]], [1.0, 3.0], nodes=[0, 2], n_nodes=3)
    >>> solution = ct.algorithm1(ct.Problem(graph, data, lam=0.5), n_iter=1000)
    >>> solution.n_iter, solution.gap < 1e-3
    (1000, True)
    """
    if n_iter < 0:
        raise ValueError(f"n_iter must not be negative, got {n_iter}")
    if not (tau > 0 and sigma > 0):
        raise ValueError(f"tau and sigma must be positive, got {tau} and {sigma}")
    began = time.perf_counter()
    problem = bound(problem)
    D, M, PU = problem.graph.D, problem.M, problem.f.prox
    T, Σ = steps(problem, tau, sigma)  # eq. (14)
    w, u = initial(problem)
    for k in range(n_iter):
        v = w - T[:, None] * (D.T @ u)
        w_next = v  # line 6: non-labelled local datasets
        w_next[M] = PU(v[M], T[M], w[M])  # line 3: labelled local datasets, eq. (17)
        u = u + Σ[:, None] * (D @ (2 * w_next - w))  # line 8
        u = problem.penalty.dual_step(u, problem.c, Σ)  # line 9: T^(λA_e)
        w = w_next
        if callback is not None:
            callback(k + 1, w, u)
    w = with_tied_means(problem, w)
    proof = certify(problem, w, u)
    gap = relative_gap(problem, proof.objective, proof.bound)
    seconds = time.perf_counter() - began
    return Solution(
        w=w,
        u=proof.u,
        objective=proof.objective,
        dual_bound=proof.dual_bound,
        gap=gap,
        unconditional=proof.unconditional,
        condition=proof.condition,
        status=Status.ITERATIONS_DONE,
        n_iter=n_iter,
        seconds=seconds,
        history=(Record(n_iter, proof.objective, proof.dual_bound, gap, seconds),),
        undetermined=problem.undetermined,
        graph=problem.graph,
    )


def steps(problem: BoundProblem, tau: float, sigma: float) -> tuple[Array, Array]:
    """Return τ^(i) = tau/|N_i| and σ^(e) = sigma. An isolated node has no neighbours, and any τ will do."""
    neighbours = np.maximum(problem.graph.degrees, 1)
    return tau / neighbours, np.full(problem.graph.n_edges, sigma)


def initial(problem: BoundProblem) -> tuple[Array, Array]:
    """Return zero weights and duals. An isolated node decouples, so it starts (and stays) at its own minimiser."""
    n = problem.n_features
    w = np.zeros((problem.graph.n_nodes, n))
    alone = np.flatnonzero((problem.graph.degrees[problem.M] == 0) | (problem.lam == 0))
    if alone.size:
        own, _ = problem.f.pooled(np.arange(len(problem.M)), len(problem.M))
        w[problem.M[alone]] = own[alone]
    return w, np.zeros((problem.graph.n_edges, n))
