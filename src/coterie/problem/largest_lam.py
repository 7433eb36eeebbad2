"""The λ from which on nothing changes any more: where a path of λ begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext

import numpy as np

from coterie.kernels import static_int
from coterie.kernels.choice import Either, compiled, is_chosen, using
from coterie.kernels.gradients import ConjugateGradients
from coterie.problem.arrays import Array
from coterie.problem.bound_problem import BoundProblem
from coterie.problem.graph import EmpiricalGraph
from coterie.problem.problem import Problem, bound

contract, laplacian = Either("contract"), Either("laplacian")

CG_STEPS = 300  # before the first flow; twice and four times as many before the next ones
FALLS = 0.9  # of the λ that the flow before needs: nearer ones are worth it while they need that much less
MANY = 200_000  # duals, from which on compiled kernels are worth their loading
CG_ACCURACY = 1e-9
MOST = 20_000_000  # numbers of a flow, above which there is no room for another
TINY = 1e-30  # squares of relative weights below this are next to nothing in single precision


def largest_useful_lam(problem: Problem | BoundProblem) -> float:
    """Return a λ from which on every component has one common weight.

    At the pooled minimiser of a component, subgradients p_i of its labelled nodes add up to zero.
    Any flow u on the edges with Dᵀu = −p proves that the common weight is optimal once u lies in the
    domain of g*, that is, |u_e| ≤ λA_e. The flow used is close to the one of least energy Σ ‖u_e‖²/A_e², so the
    result is an upper bound on the smallest such λ: exact on trees, where there is one flow only.
    It is infinite for squared variation, where no finite λ makes weights equal.

    With strengths by column it is about held columns alone; where some column is free, of strength 0, the pooled
    minimiser is one that has it in common, and the result is no bound, but of the right size.

    Parameters
    ----------
    problem : Problem
        Its own λ does not count.

    Returns
    -------
    float
        0 where labels make no demand on the edges.

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)])
    >>> data = ct.LocalDatasets.from_rows([[1.0], [1.0]], [1.0, 3.0], nodes=[0, 2], n_nodes=3)
    >>> ct.largest_useful_lam(ct.Problem(graph, data))
    2.0
    """
    problem = bound(problem)
    graph, M = problem.graph, problem.M
    component = graph.components
    _, p = problem.f.pooled(component[M], int(component.max()) + 1)
    demand = np.zeros((graph.n_nodes, problem.n_features))
    demand[M] = -p
    if problem.by_column is not None:
        demand[:, ~problem.by_column.held] = 0.0
    if not demand.any():
        return 0.0
    many = graph.n_edges * problem.n_features > MANY

    def needed(u: Array) -> float:
        return problem.penalty.strength_needed(u, graph.weights)

    with nullcontext() if is_chosen() and compiled() else using(compiled=compiled() or many):
        return needed(small_flow(graph, demand, needed))


def small_flow(graph: EmpiricalGraph, demand: Array, needed: Callable[[Array], float]) -> Array:
    """Return u near A² D φ, the flow of least energy, with Dᵀu = demand, which adds up to zero in each component.

    The potential φ comes from conjugate gradients and may be rough; a spanning forest carries what is missing. Where
    that leads along weak edges, the λ that is `needed` can be many times what it has to be: then more steps follow.
    """
    best, least = None, np.inf
    for u in _flows(graph, demand):
        before, least = least, min(least, needed(u))
        best = u if best is None or least < before else best
        if u.size > MOST or not least < FALLS * before:
            break
    assert best is not None
    return best


def _flows(graph: EmpiricalGraph, demand: Array) -> Iterator[Array]:
    """Such flows, one nearer to that of least energy than the other."""
    share = (graph.weights / graph.weights.max()) ** 2
    if share.min() > TINY:  # in single precision, as kernels for repair have it
        share = share.astype(np.float32)
    S = np.repeat(share[:, None], demand.shape[1], axis=1)
    ends, diagonal = graph.edges.astype(np.uint32), np.empty_like(demand)
    laplacian.diagonal(ends, S, laplacian.NO_GROUND, diagonal)

    def product(x: Array, out: Array) -> None:
        laplacian.apply(static_int(0), ends, S, laplacian.NO_GROUND, x, out)

    descent = ConjugateGradients(product, demand.copy(), diagonal)
    via, order = np.empty(graph.n_nodes, dtype=np.int64), np.empty(graph.n_nodes, dtype=np.int64)
    contract.spanning_forest(graph.n_nodes, graph.edges, via, order)
    for times in (1, 2, 4):
        before = descent.steps
        u = S * (graph.D @ descent.run(times * CG_STEPS, CG_ACCURACY))
        contract.push_flows(graph.edges, via, order, -demand, u)
        yield u
        if descent.steps < before + times * CG_STEPS:  # it is as near as was asked for
            break
