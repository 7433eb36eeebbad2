"""How a graph lies in a GPU's memory: sliced rows (SELL), one lane per node, the dual of an edge at both of its ends.

Nodes are taken in an order in which neighbours are near each other (`order`), and sorted by their number of edges
inside windows of it, labelled ones first, so that the rows of a *slab* of C nodes are about equally long. The d-th
edges of a slab's nodes are C entries side by side, a *slot*. An entry holds its neighbour, and one end's copy of the
dual, with the sign that this end sees: then each node updates its own copies and adds them up, in one pass without
atomic additions, and the copies of the two ends agree to the last bit. Rows of nodes with more than SPLIT edges are cut
into parts of at most PART entries.

From ONCE coordinates on, duals are kept once, by edge, in rows so long that whoever wants one fetches little else: one
end writes them, both read. A pass moves three quarters of what it moves with two copies.

The n coordinates of a slot's duals lie in up to three chunks whose widths are powers of two: C × 4 numbers, say, then
C × 1. n is filled up with zeros to the next number that is a sum of three.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch

from coterie.engines.gpu.exact import Tensor

WINDOW = 4096  # nodes that are sorted among each other
SPLIT = 512  # entries of a row that is not cut, at most
ONCE = 16  # coordinates from which on duals are kept once
PART = 64  # entries of a part of a cut row, at most


def chunks(n: int) -> tuple[int, ...]:
    """Widths of up to three chunks, powers of two, that hold n coordinates."""
    widths: list[int] = []
    widest = 4 if n <= 12 else 1 << n.bit_length()
    while n > 0:
        width = min(1 << (n.bit_length() - 1), widest)
        if len(widths) == 2:
            width = 1 << (n - 1).bit_length()
        widths.append(width)
        n -= width
    return tuple(widths)


def stride(n: int) -> int:
    """Numbers from one node's vector to the next."""
    N = sum(chunks(n))
    return N if N <= 2 else _up(N, 4)


class Layout:
    """Rows, slots and entries of a graph with ends i, j (E,), and the way in and out.

    `order` (V,) are the nodes in an order in which neighbours are near each other; None: the graph's.

    Attributes
    ----------
    C, slots, warps : lanes of a slab, slots that a program takes at a time, and its warps
    once : whether duals are kept once, by edge
    ahead : whether programs load ahead of what they work on: not where rows end at once, or registers are worth more
    widths, N : chunks of coordinates, and how many these hold
    rank, nodes : (V,)
        The place of each node inside, and the nodes in the order of their places. Nodes with cut rows come last, from
        `whole` on.
    size, whole : places inside; those of nodes whose row is not cut; multiples of C
    offset : (slabs + 1,)
        Where the entries of each slab begin; slabs of cut rows come last.
    neighbour : (entries,)
        The place of the other end; the node itself where a row has no edge.
    first, second : (E,)
        The entries of each edge at its two ends.
    row_node, begin : (cut rows,), (hubs + 1,)
        The place of the node of each part of a cut row, and where the parts of each such node begin.
    """

    def __init__(
        self,
        i: Tensor,
        j: Tensor,
        labelled: Tensor,
        n: int,
        C: int,
        slots: int = 2,
        warps: int = 1,
        order: Tensor | None = None,
    ) -> None:
        self.C, self.n, self.widths = C, n, chunks(n)
        self.N = sum(self.widths)
        self.stride = stride(n)
        self.slots, self.warps, self.once = slots, warps, n >= ONCE
        self.V, self.E, self.device = len(labelled), len(i), i.device
        self.ahead = not self.once and slots * self.V < 2 * self.E
        degree = torch.bincount(i, minlength=self.V) + torch.bincount(j, minlength=self.V)
        self._place(degree, labelled, torch.arange(self.V, device=self.device) if order is None else order)
        self._fill(self.rank[i.long()], self.rank[j.long()], degree)

    def _place(self, degree: Tensor, labelled: Tensor, order: Tensor) -> None:
        """Number the nodes."""
        degree, labelled, place = degree[order], labelled[order], torch.arange(self.V, device=self.device)
        hub = degree > SPLIT
        window = torch.where(hub, 1 << 40, place // WINDOW)
        key = (window * 2 + ~labelled) * (1 << 20) + (SPLIT + 1 - degree).clamp(min=0)
        order = order[torch.argsort(key, stable=True)]
        self.hubs = int(hub.sum())
        normal = self.V - self.hubs
        self.whole = _up(normal, self.C)
        self.size = self.whole + _up(self.hubs, self.C)
        if self.size * self.stride >= 1 << 31:
            raise ValueError(
                f"{self.V:,} nodes with {self.n} features are {self.size * self.stride:,} weights, and a GPU takes "
                f'{(1 << 31) - 1:,} at most: leave engine="gpu" out, and the processor does the work'
            )
        place[normal:] += self.whole - normal
        self.rank, self.nodes = torch.empty_like(order), order
        self.rank[order] = place

    def _fill(self, a: Tensor, b: Tensor, degree: Tensor) -> None:
        """Give every edge an entry in the rows of both ends."""
        own, other = torch.cat([a, b]), torch.cat([b, a])
        order = torch.argsort(own * self.size + other)
        count = torch.zeros(self.size, dtype=torch.int64, device=self.device)
        count[self.rank] = degree
        starts = torch.cumsum(count, 0) - count
        within = torch.empty_like(own)
        within[order] = torch.arange(len(own), device=self.device) - starts[own[order]]
        parts = (count[self.whole : self.whole + self.hubs] + PART - 1) // PART
        self.begin = torch.zeros(self.hubs + 1, dtype=torch.int32, device=self.device)
        self.begin[1:] = torch.cumsum(parts, 0)
        is_hub = own >= self.whole
        row = own
        if self.hubs:
            hub = (own - self.whole).clamp(min=0)
            row = torch.where(is_hub, self.whole + self.begin[hub] + within // PART, own)
            within = torch.where(is_hub, within % PART, within)
        cut = int(self.begin[-1])
        self.rows = self.whole + _up(cut, self.C)
        self.row_node = torch.full((self.rows - self.whole,), max(self.size - 1, 0), device=self.device)
        self.row_node[:cut] = self.whole + torch.repeat_interleave(torch.arange(self.hubs, device=self.device), parts)
        length = torch.bincount(row, minlength=self.rows).view(-1, self.C).amax(1) if self.rows else row[:0]
        offset = torch.zeros(len(length) + 1, dtype=torch.int64, device=self.device)
        offset[1:] = torch.cumsum(length * self.C, 0)
        self.entries = int(offset[-1])
        place = offset[row // self.C] + within * self.C + row % self.C
        self.offset = offset
        self.neighbour = self._owners(length).int()
        self.neighbour[place] = other.int()
        self.first, self.second = place[: self.E], place[self.E :]
        self.row_node = self.row_node.int()

    def _owners(self, length: Tensor) -> Tensor:
        """The node that every entry belongs to."""
        slab = torch.repeat_interleave(torch.arange(len(length), device=self.device), length * self.C)
        row = slab * self.C + torch.arange(self.entries, device=self.device) % self.C
        if not self.hubs:
            return row
        return torch.where(row < self.whole, row, self.row_node[(row - self.whole).clamp(min=0)])

    @cached_property
    def edge(self) -> Tensor:
        """The edge of every entry, e + 1 at its first end and −e − 1 at its second; 0 where there is none."""
        number = torch.arange(1, self.E + 1, dtype=torch.int32, device=self.device)
        inside = torch.zeros(self.entries, dtype=torch.int32, device=self.device)
        inside[self.first], inside[self.second] = number, -number
        return inside

    @property
    def slabs(self) -> int:
        """Slabs of whole rows."""
        return self.whole // self.C

    @property
    def warps_for_double(self) -> int:
        """Warps of a program for iterations in double precision: more than two coordinates are two threads' work."""
        return self.warps if self.N <= 2 else 2 * self.warps

    @property
    def shape(self) -> dict[str, int]:
        """What kernels are compiled for."""
        widths = dict(zip(("W0", "W1", "W2"), (*self.widths, 0, 0), strict=False))
        return {"N": self.N, "XS": self.stride, "C": self.C, **widths}

    def nodes_in(self, x: Tensor, dtype: Any, width: int | None = None) -> Tensor:
        """Node values (V, n) in the inner order, filled up with zeros to N numbers each, or to `width`."""
        inside = torch.zeros((self.size, width or self.N), dtype=dtype, device=self.device)
        inside[self.rank, : x.shape[1]] = x.to(dtype)
        return inside

    def nodes_out(self, x: Tensor) -> Tensor:
        """Node values (V, n) of (size, ·) in the graph's order, in double precision.

        Rows are put where they belong, not taken from where they are: whoever takes rows of 16 bytes, or of a multiple
        of that, from torch waits for a block of threads for each of them, three to ten times as long.
        """
        out, normal = x.new_empty((self.V, self.n), dtype=torch.float64), self.V - self.hubs
        out[self.nodes[:normal]] = x[:normal, : self.n].double()
        if self.hubs:
            out[self.nodes[normal:]] = x[self.whole : self.whole + self.hubs, : self.n].double()
        return out

    def packed(self, rows: Tensor) -> Tensor:
        """Rows (·, N) of nodes or entries, C of them after the other, in chunks."""
        slots = rows.view(-1, self.C, self.N)
        each = zip(slots.split(self.widths, dim=2), self.widths, strict=True)
        return torch.cat([part.reshape(len(slots), self.C * width) for part, width in each], 1).reshape(-1)

    def unpacked(self, packed: Tensor) -> Tensor:
        """The rows (·, N) again."""
        parts = packed.view(-1, self.C * self.N).split([self.C * width for width in self.widths], dim=1)
        each = zip(parts, self.widths, strict=True)
        return torch.cat([part.reshape(-1, width) for part, width in each], 1)

    def duals_in(self, u: Tensor, dtype: Any) -> Tensor:
        """Duals (E, n) as they are kept."""
        if not self.once:
            return self.at_both_ends(u, dtype, -1.0)
        inside = torch.zeros((self.E, self.N), dtype=dtype, device=self.device)
        inside[:, : self.n] = u
        return inside

    def at_both_ends(self, u: Tensor, dtype: Any, sign: float) -> Tensor:
        """Values (E, n) of edges in the rows of their first ends, and sign times these in those of their second."""
        rows = torch.zeros((self.entries, self.N), dtype=dtype, device=self.device)
        rows[self.first, : self.n] = u.to(dtype)
        rows[self.second, : self.n] = (sign * u).to(dtype)
        return self.packed(rows)

    def duals_out(self, packed: Tensor) -> Tensor:
        """Duals (E, n)."""
        if self.once:
            return packed[:, : self.n].double()
        return self.unpacked(packed)[self.first, : self.n].double()

    def edges_in(self, x: Tensor, dtype: Any) -> Tensor:
        """Edge values (E,) at both ends, zero where there is no edge."""
        inside = torch.zeros(self.entries, dtype=dtype, device=self.device)
        inside[self.first] = inside[self.second] = x.to(dtype)
        return inside


def _up(number: int, step: int) -> int:
    return -(-number // step) * step
