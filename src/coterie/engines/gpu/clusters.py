"""Clusters that the duals show, on a device: nodes joined by edges with slack, coordinate by coordinate."""

from __future__ import annotations

import torch

from coterie.engines.gpu.edges import Edges
from coterie.engines.gpu.exact import Tensor

TOGETHER = 1 << 25  # edges and coordinates that are looked at together
HALVINGS = 3  # of all paths before the host asks whether they are short: that takes as long
PIECE = 256  # members of a cluster that are added up one after the other


class Clusters:
    """The first node of each node's cluster in every coordinate, and how large clusters are.

    A node and a coordinate are one number, node · columns + coordinate; for L2 there is one column for all.
    """

    def __init__(self, edges: Edges, joins: Tensor) -> None:
        self.columns = joins.shape[1]
        parent = torch.arange(edges.V * self.columns, device=joins.device)
        together = max(TOGETHER // max(edges.E, 1), 1)
        for first in range(0, self.columns, together):
            edge, k = torch.nonzero(joins[:, first : first + together], as_tuple=True)
            a, b = (end.index_select(0, edge).long() * self.columns + (k + first) for end in (edges.i, edges.j))
            parent = connected(parent, a, b)
        self.order = torch.argsort(parent, stable=True)
        _, self.size = torch.unique_consecutive(parent[self.order], return_counts=True)
        self.pieces = (self.size + PIECE - 1) // PIECE
        self.lengths = torch.full_like(self.order[: int(self.pieces.sum())], PIECE)
        self.lengths[torch.cumsum(self.pieces, 0) - 1] = self.size - (self.pieces - 1) * PIECE
        self.n = edges.n

    @property
    def total(self) -> int:
        """How many there are in all coordinates together."""
        return len(self.size) * (self.n // self.columns)

    def average(self, x: Tensor) -> Tensor:
        """Means of x (V, n), cluster by cluster; each is added up in one order."""
        values = x.reshape(-1, self.n // self.columns)
        sums = values[self.order]
        for lengths in (self.lengths, self.pieces):
            sums = torch.segment_reduce(sums, "sum", lengths=lengths, axis=0, unsafe=True)
        out = torch.empty_like(values)
        out[self.order] = torch.repeat_interleave(sums / self.size[:, None], self.size, dim=0, output_size=len(values))
        return out.reshape(x.shape)


def connected(parent: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The smallest member of each thing's component, where a[k] and b[k] are joined; `parent` is that of others so far.

    Roots hook onto smaller roots, and paths are halved until they are short; pairs in one tree are dropped.
    """
    while len(a):
        low, high = torch.minimum(parent[a], parent[b]), torch.maximum(parent[a], parent[b])
        parent.scatter_reduce_(0, high, low, "amin")
        short = False
        while not short:
            for _ in range(HALVINGS):
                parent, before = parent[parent], parent
            short = torch.equal(parent, before)
        apart = parent[a] != parent[b]
        a, b = a[apart], b[apart]
    return parent
