"""What one rank holds of a problem.

    own nodes ─ inner edges ─ own nodes ─ cut edges ─ halo
    (interior)                (boundary)              (boundary of other ranks)

A part is a problem of its own: its nodes are the own ones, boundary first, and then the halo, which has no losses here.
Its edges are the inner ones, then cut edges that this rank counts, then those that a peer counts. Both ends of a cut
edge keep its dual and move it alike, so that a rank has all that its own nodes need once it is told the weights of its
halo. Where sums are over edges, or where copies could differ in their last digits, the rank that counts it is right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from coterie.engines.mpi.crew import Crew
from coterie.engines.mpi.exchange import Exchange
from coterie.engines.ordering import Ordering
from coterie.problem import BoundProblem, EmpiricalGraph
from coterie.problem.arrays import Array

Integers = NDArray[np.int64]


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
    halo, cut : Exchange
        Of weights, and of duals.
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

    @classmethod
    def of(cls, problem: BoundProblem, rank_of: NDArray[np.int32], crew: Crew) -> Part:
        """Take out the part of this rank from a whole problem that every rank has."""
        graph, me = problem.graph, crew.rank
        ranks = rank_of[graph.edges]
        is_cut = ranks[:, 0] != ranks[:, 1]
        inner, cut = (np.flatnonzero(kind & (ranks == me).any(axis=1)) for kind in (~is_cut, is_cut))
        near = np.where(ranks[cut, 0] == me, 0, 1)
        here, there = (graph.edges[cut, side] for side in (near, 1 - near))
        halo = np.unique(there)
        halo = halo[np.argsort(rank_of[halo], kind="stable")]
        boundary, own = np.unique(here), np.flatnonzero(rank_of == me)
        own = _with_first(_local_order(graph, own, inner, problem.n_features), boundary)
        nodes = np.concatenate([own, halo])
        if not len(nodes):  # arrays without any row are more trouble than a node that nobody counts
            nodes = np.zeros(1, dtype=np.int64)
        place = np.full(graph.n_nodes, -1)
        place[nodes] = np.arange(len(nodes))
        counts = rank_of[graph.edges[cut, 0]] == me
        groups = [_in_order(graph, which, place) for which in (inner, cut[counts], cut[~counts])]
        edges, pairs, sign = (np.concatenate(parts) for parts in zip(*groups, strict=True))
        local = _problem(problem, nodes, len(own), pairs, edges)
        peers = [int(q) for q in np.unique(rank_of[halo])]
        far = rank_of[there]
        halo_exchange = Exchange(
            crew,
            problem.n_features,
            [(q, place[np.unique(here[far == q])]) for q in peers],
            [(q, place[halo[rank_of[halo] == q]]) for q in peers],
        )
        at = np.full(graph.n_edges, -1)
        at[edges] = np.arange(len(edges))
        duals = Exchange(
            crew,
            problem.n_features,
            [(q, at[cut[counts & (far == q)]]) for q in peers],
            [(q, at[cut[~counts & (far == q)]]) for q in peers],
            opposite=True,
        )
        sizes = len(own), len(boundary), edges, sign[:, None], len(inner), len(inner) + int(counts.sum())
        return cls(crew, local, nodes, *sizes, halo_exchange, duals)

    def nodes_in(self, x: Array) -> Array:
        """Values of nodes, from those of the whole network."""
        return x[self.nodes]

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


def _problem(whole: BoundProblem, nodes: Integers, own: int, pairs: Integers, edges: Integers) -> BoundProblem:
    """The problem of a part: losses are those of its own nodes."""
    labelled = np.full(whole.graph.n_nodes, -1)
    labelled[whole.M] = np.arange(len(whole.M))
    which = labelled[nodes[:own]]
    M = np.flatnonzero(which >= 0)
    graph = EmpiricalGraph(len(nodes), pairs, whole.graph.weights[edges])
    made = replace(whole, graph=graph, M=M, f=whole.f.of_nodes(which[M]))
    made.__dict__["undetermined"] = np.flatnonzero(np.isin(nodes, whole.undetermined))  # as the whole network has it
    return made


def _local_order(graph: EmpiricalGraph, own: Integers, inner: Integers, n: int) -> Integers:
    """Own nodes in an order in which neighbours lie close together."""
    pairs = np.searchsorted(own, graph.edges[inner])
    ordering = Ordering.of(EmpiricalGraph(len(own), pairs, graph.weights[inner]), n)
    return own[np.argsort(ordering.rank)]


def _with_first(nodes: Integers, first: Integers) -> Integers:
    """The same nodes with some of them, in the same order, before all others."""
    return nodes[np.argsort(~np.isin(nodes, first), kind="stable")]


def _in_order(graph: EmpiricalGraph, which: Integers, place: Integers) -> tuple[Integers, Integers, Array]:
    """Edges in the order of their ends here: what they are called, their ends, smaller first, and their signs."""
    pairs = place[graph.edges[which]]
    sign = np.where(pairs[:, 0] < pairs[:, 1], 1.0, -1.0)
    pairs = np.sort(pairs, axis=1)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return which[order], pairs[order], sign[order]
