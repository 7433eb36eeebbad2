"""Clusters that the duals show, on a device: nodes joined by edges with slack, coordinate by coordinate."""

from __future__ import annotations

from typing import Any

import torch

from coterie.engines.gpu.edges import Edges
from coterie.engines.gpu.exact import Tensor


class Clusters:
    """The first node of each node's cluster in every coordinate, and how large clusters are.

    A node and a coordinate are one number, node · columns + coordinate; for L2 there is one column for all.
    """

    def __init__(self, edges: Edges, joins: Tensor) -> None:
        self.columns = joins.shape[1]
        edge, k = torch.nonzero(joins, as_tuple=True)
        a, b = (end.index_select(0, edge).long() * self.columns + k for end in (edges.i, edges.j))
        self.first = connected(edges.V * self.columns, a, b)
        self.order = torch.argsort(self.first, stable=True)
        _, self.size = torch.unique_consecutive(self.first[self.order], return_counts=True)
        self.n = edges.n

    @property
    def total(self) -> int:
        """How many there are in all coordinates together."""
        return len(self.size) * (self.n // self.columns)

    def average(self, x: Tensor) -> Tensor:
        """Means of x (V, n), cluster by cluster; each is added up in one order."""
        values = x.reshape(-1, self.n // self.columns)
        sums = torch.segment_reduce(values[self.order], "sum", lengths=self.size, axis=0, unsafe=True)
        out = torch.empty_like(values)
        out[self.order] = torch.repeat_interleave(sums / self.size[:, None], self.size, dim=0)
        return out.reshape(x.shape)


def connected(N: int, a: Tensor, b: Tensor) -> Any:
    """The smallest member of each of N things' component, where a[k] and b[k] are joined.

    Roots hook onto smaller roots, and paths are halved until they are short; pairs in one tree are dropped.
    """
    parent = torch.arange(N, device=a.device)
    while len(a):
        low, high = torch.minimum(parent[a], parent[b]), torch.maximum(parent[a], parent[b])
        parent.scatter_reduce_(0, high, low, "amin")
        while not torch.equal(further := parent[parent], parent):
            parent = further
        apart = parent[a] != parent[b]
        a, b = a[apart], b[apart]
    return parent
