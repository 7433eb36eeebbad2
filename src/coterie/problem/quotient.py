"""The graph that is left when nodes become one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.kernels.choice import Either
from coterie.problem.arrays import Array
from coterie.problem.graph import EmpiricalGraph

contract = Either("contract")


class Quotient(NamedTuple):
    """A smaller graph, and what became of the edges of the first one.

    Attributes
    ----------
    graph : EmpiricalGraph
        Edges between the same two nodes are one, and its weight is the sum of theirs, rounded once.
    edge_to : array of shape (E,)
        The new edge that each old one became part of; −1 where both ends became one node, or one was left out.
    sign : array of shape (E,)
        −1 where the new edge goes the other way round.
    """

    graph: EmpiricalGraph
    edge_to: NDArray[np.int64]
    sign: Array

    def duals(self, u: Array) -> Array:
        """Return the flows of old edges, added up on the new ones."""
        kept = self.edge_to >= 0
        new = np.zeros((self.graph.n_edges, u.shape[1]))
        np.add.at(new, self.edge_to[kept], u[kept] * self.sign[kept, None])
        return new


def quotient(graph: EmpiricalGraph, to: NDArray[np.int64], K: int) -> Quotient:
    """Make node `to[i]` of K out of each node i; −1 leaves it out."""
    i, j = to[graph.edges[:, 0]], to[graph.edges[:, 1]]
    between = np.flatnonzero((i != j) & (np.minimum(i, j) >= 0))
    low, high = np.minimum(i, j)[between], np.maximum(i, j)[between]
    key, edge_of = np.unique(low * K + high, return_inverse=True)
    A = np.zeros(len(key))
    contract.sum_parallel(edge_of, graph.weights[between], A)
    edges = np.stack([key // K, key % K], axis=1)
    edges.flags.writeable = A.flags.writeable = False  # as all graphs: kernels are compiled once for both
    edge_to = np.full(graph.n_edges, -1)
    edge_to[between] = edge_of
    return Quotient(EmpiricalGraph(K, edges, A), edge_to, np.where(i < j, 1.0, -1.0))
