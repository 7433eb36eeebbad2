"""What one rank holds of a problem.

    own nodes ─ inner edges ─ own nodes ─ cut edges ─ halo
    (interior)                (boundary)              (boundary of other ranks)

A part is a problem of its own: its nodes are the own ones, boundary first, and then the halo, which has no losses here.
Its edges are the inner ones, then cut edges that this rank counts, then those that a peer counts. Both ends of a cut
edge keep its dual and move it alike, so that a rank has all that its own nodes need once it is told the weights of its
halo. Where sums are over edges, or where copies could differ in their last digits, the rank that counts it is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from coterie.engines.mpi.crew import Crew
from coterie.engines.mpi.exchange import Exchange
from coterie.engines.ordering import Ordering
from coterie.problem import BoundProblem, EmpiricalGraph
from coterie.problem.arrays import Array

Integers = NDArray[np.int64]
State = Callable[[Integers, int, EmpiricalGraph], BoundProblem]


@dataclass(frozen=True, eq=False)
class BoundPart(BoundProblem):
    """The problem of a part; which of its nodes no label reaches, the whole network says."""

    without_label: Integers

    @classmethod
    def of(cls, problem: BoundProblem, without_label: Integers) -> BoundPart:
        stated = {field.name: getattr(problem, field.name) for field in fields(BoundProblem)}
        return cls(**stated, without_label=without_label)

    @property
    def undetermined(self) -> Integers:
        return self.without_label


class Share(NamedTuple):
    """What a rank has of a network: its own nodes, and every edge that ends at one of them, in numbers of the whole.

    Attributes
    ----------
    own : array of shape (V,)
        Ascending.
    pairs, weights : arrays of shape (E, 2) and (E,)
        Ends i < j; two ranks have the edges that both have in the same order.
    called : array of shape (E,)
        What edges are called in the whole network.
    far, ranks : arrays of shape (H,)
        The ends of these edges that others own, ascending, and whose each is.
    """

    own: Integers
    pairs: Integers
    weights: Array
    called: Integers
    far: Integers
    ranks: Integers

    @classmethod
    def of(cls, graph: EmpiricalGraph, rank_of: NDArray[np.int32], rank: int) -> Share:
        """The share of a rank in a graph that it has as a whole."""
        which = np.flatnonzero((rank_of[graph.edges] == rank).any(axis=1))
        pairs = graph.edges[which]
        ends = np.unique(pairs)
        far = ends[rank_of[ends] != rank]
        return cls(
            np.flatnonzero(rank_of == rank), pairs, graph.weights[which], which, far, rank_of[far].astype(np.int64)
        )


@dataclass(frozen=True, eq=False)
class Part:
    """The part of this rank.

    Attributes
    ----------
    crew : Crew
    problem : BoundProblem
        Of own nodes and halo. Sums over all of its nodes or edges count some twice.
    nodes : array of int
        What its nodes are called in the whole network.
    own, boundary : int
        How many of its nodes are its own, and how many of these have a cut edge.
    edges : array of int
        What its edges are called in the whole network.
    sign : array of shape (E, 1)
        −1 where an edge runs in the other direction there.
    inner, counted : int
        How many of its edges are inner ones, and how many it counts.
    halo, cut, single : Exchange
        Of weights, of duals, and of one number per node.
    """

    crew: Crew
    problem: BoundProblem
    nodes: Integers
    own: int
    boundary: int
    edges: Integers
    sign: Array
    inner: int
    counted: int
    halo: Exchange
    cut: Exchange
    single: Exchange

    @classmethod
    def of(cls, problem: BoundProblem, rank_of: NDArray[np.int32], crew: Crew) -> Part:
        """Take out the part of this rank from a whole problem that every rank has."""
        share = Share.of(problem.graph, rank_of, crew.rank)
        return cls.joined(crew, share, problem.n_features, partial(_problem, problem))

    @classmethod
    def joined(cls, crew: Crew, share: Share, n: int, state: State) -> Self:
        """Join up with the other ranks. `state` makes the problem of nodes, how many are own, and their graph."""
        near = find(share.own, share.pairs) >= 0
        inner, cut = np.flatnonzero(near.all(axis=1)), np.flatnonzero(~near.all(axis=1))
        side = np.where(near[cut, 0], 0, 1)
        here, there = (share.pairs[cut, end] for end in (side, 1 - side))
        halo = share.far[np.argsort(share.ranks, kind="stable")]
        own = _with_first(_local_order(share, inner, n), np.unique(here))
        nodes = np.concatenate([own, halo])
        if not len(nodes):  # arrays without any row are more trouble than a node that nobody counts
            nodes = np.zeros(1, dtype=np.int64)
        order = np.argsort(nodes)

        def place(x: Integers) -> Integers:
            return order[find(nodes[order], x)]

        groups = [_in_order(share.pairs, which, place) for which in (inner, cut[side == 0], cut[side == 1])]
        edges, pairs, sign = (np.concatenate(parts) for parts in zip(*groups, strict=True))
        local = state(nodes, len(own), EmpiricalGraph(len(nodes), pairs, share.weights[edges]))
        peers, far = [int(q) for q in np.unique(share.ranks)], share.ranks[find(share.far, there)]
        at = np.empty_like(edges)
        at[edges] = np.arange(len(edges))
        rows = (
            [(q, place(np.unique(here[far == q]))) for q in peers],
            [(q, place(share.far[share.ranks == q])) for q in peers],
        )
        sent, received = ([(q, at[cut[(side == end) & (far == q)]]) for q in peers] for end in (0, 1))
        return cls(
            crew,
            local,
            nodes,
            len(own),
            len(np.unique(here)),
            share.called[edges],
            sign[:, None],
            len(inner),
            len(inner) + int((side == 0).sum()),
            Exchange(crew, n, *rows),
            Exchange(crew, n, sent, received, opposite=True),
            Exchange(crew, 1, *rows),
        )

    def told(self, x: Array) -> Array:
        """One number per node, right in the halo, too."""
        column = x.reshape(-1, 1)
        self.single(column)
        return column[:, 0]

    def nodes_in(self, x: Array) -> Array:
        """Values of nodes, from those of the whole network."""
        return x[self.nodes]

    def own_in(self, x: Array) -> Array:
        """The same for own nodes alone."""
        return x[self.nodes[: self.own]]

    def edges_in(self, x: Array) -> Array:
        """Values of edges that do not depend on their direction."""
        return x[self.edges]

    def duals_in(self, u: Array) -> Array:
        here = u[self.edges]
        here *= self.sign
        return here

    def nodes_out(self, x: Array) -> Array:
        """Values of the nodes of the whole network, at every rank."""
        return self._out(self.nodes[: self.own], x[: self.own])

    def duals_out(self, u: Array) -> Array:
        return self._out(self.edges[: self.counted], u[: self.counted] * self.sign[: self.counted])

    def _out(self, called: Integers, rows: Array) -> Array:
        """Rows of the whole network, from those of every rank and what they are called."""
        out = np.empty((round(self.crew.sum(len(rows))), *rows.shape[1:]))
        for which, theirs in zip(self.crew.in_turn(called), self.crew.in_turn(rows), strict=True):
            out[which] = theirs
        return out

    @property
    def counted_ends(self) -> Integers:
        return self.problem.graph.edges[: self.counted]

    @property
    def counted_c(self) -> Array:
        return self.problem.c[: self.counted]


class OwnPart(Part):
    """A part of a problem that nobody holds as a whole: values come and go as this rank has them."""

    def nodes_in(self, x: Array) -> Array:
        return x

    def own_in(self, x: Array) -> Array:
        return x[: self.own]

    def edges_in(self, x: Array) -> Array:
        return x

    def duals_in(self, u: Array) -> Array:
        return u

    def nodes_out(self, x: Array) -> Array:
        """Values of own nodes."""
        return x[: self.own]

    def duals_out(self, u: Array) -> Array:
        """Duals of the edges that are counted here, in the direction that they have in the whole network."""
        return u[: self.counted] * self.sign[: self.counted]


def find(known: Integers, x: Integers) -> Integers:
    """Where each x stands among these numbers, which ascend; −1 where it does not."""
    if not len(known):
        return np.full(np.shape(x), -1)
    at = np.minimum(np.searchsorted(known, x), len(known) - 1)
    return np.where(known[at] == x, at, -1)


def _problem(whole: BoundProblem, nodes: Integers, own: int, graph: EmpiricalGraph) -> BoundProblem:
    """The problem of a part: losses are those of its own nodes."""
    labelled = np.full(whole.graph.n_nodes, -1)
    labelled[whole.M] = np.arange(len(whole.M))
    which = labelled[nodes[:own]]
    M = np.flatnonzero(which >= 0)
    made = replace(whole, graph=graph, M=M, f=whole.f.of_nodes(which[M]))
    return BoundPart.of(made, np.flatnonzero(np.isin(nodes, whole.undetermined)))


def _local_order(share: Share, inner: Integers, n: int) -> Integers:
    """Own nodes in an order in which neighbours lie close together."""
    pairs = np.searchsorted(share.own, share.pairs[inner])
    ordering = Ordering.of(EmpiricalGraph(len(share.own), pairs, share.weights[inner]), n)
    return share.own[np.argsort(ordering.rank)]


def _with_first(nodes: Integers, first: Integers) -> Integers:
    """The same nodes with some of them, in the same order, before all others."""
    return nodes[np.argsort(find(first, nodes) < 0, kind="stable")]


def _in_order(
    pairs: Integers, which: Integers, place: Callable[[Integers], Integers]
) -> tuple[Integers, Integers, Array]:
    """Edges in the order of their ends here: which they are, their ends, smaller first, and their signs."""
    ends = place(pairs[which])
    sign = np.where(ends[:, 0] < ends[:, 1], 1.0, -1.0)
    ends = np.sort(ends, axis=1)
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    return which[order], ends[order], sign[order]
