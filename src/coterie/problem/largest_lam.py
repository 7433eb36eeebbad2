"""The λ from which on nothing changes any more: where a path of λ begins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import diags_array
from scipy.sparse.linalg import cg, splu

from coterie.problem.arrays import Array
from coterie.problem.graph import EmpiricalGraph
from coterie.problem.problem import Problem

DIRECT_UP_TO = 20_000  # nodes; larger Laplacians are solved by conjugate gradients


def largest_useful_lam(problem: Problem) -> float:
    """Return a λ from which on every component has one common weight.

    At the pooled minimiser of a component, subgradients p_i of its labelled nodes add up to zero.
    Any flow u on the edges with Dᵀu = −p proves that the common weight is optimal once u lies in the
    domain of g*, that is, |u_e| ≤ λA_e. The flow used is the one of least energy Σ ‖u_e‖²/A_e², so the
    result is an upper bound on the smallest such λ: exact on trees, where there is one flow only.
    It is infinite for squared variation, where no finite λ makes weights equal.
    """
    graph, M = problem.graph, problem.M
    component = graph.components
    _, p = problem.f.pooled(component[M], int(component.max()) + 1)
    demand = np.zeros((graph.n_nodes, problem.n_features))
    demand[M] = -p
    if not demand.any():
        return 0.0
    return problem.penalty.strength_needed(_least_energy_flow(graph, demand), graph.weights)


def _least_energy_flow(graph: EmpiricalGraph, demand: Array) -> Array:
    """Return u = A² D φ with Dᵀu = demand, for a demand that adds up to zero in each component."""
    conductance = diags_array(graph.weights**2)
    L = (graph.D.T @ conductance @ graph.D).tocsc()
    # One node of each component is held at potential 0, which makes the Laplacian invertible.
    _, grounded = np.unique(graph.components, return_index=True)
    free = np.setdiff1d(np.arange(graph.n_nodes), grounded)
    potential = np.zeros_like(demand)
    if free.size:
        potential[free] = _solve(L[free][:, free].tocsc(), demand[free])
    return np.asarray(conductance @ (graph.D @ potential))


def _solve(L: NDArray, demand: Array) -> Array:
    if L.shape[0] <= DIRECT_UP_TO:
        return np.asarray(splu(L).solve(demand))
    jacobi = diags_array(1.0 / L.diagonal())
    columns = [cg(L, column, rtol=1e-10, maxiter=2000, M=jacobi)[0] for column in demand.T]
    return np.stack(columns, axis=1)
