"""A graph cut into parts: what each part keeps to itself, and what it shares with others.

    own nodes ─ inner edges ─ own nodes ─ cut edge ─ halo
                              (boundary)             (boundary of another part)

An inner edge has both ends in one part; nobody else needs to know of it. A cut edge joins two parts: its ends are
boundary nodes, and each is in the halo of the other's part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coterie.federation.classes import at_a_site
from coterie.problem import EmpiricalGraph, LocalDatasets, Problem

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Part:
    """One part of a graph.

    Attributes
    ----------
    own : array of int
        Its nodes, ascending; node own[k] of the whole graph is node k of the part.
    graph : EmpiricalGraph
        Its inner edges, in its own numbers.
    inner_edges, cut_edges : arrays of int
        The edges of the whole graph that lie inside the part, and that leave it.
    boundary : array of int
        Its nodes, in its own numbers, that have a cut edge.
    halo : array of int
        The nodes of other parts, in numbers of the whole graph, that a cut edge leads to.
    """

    own: Integers
    graph: EmpiricalGraph
    inner_edges: Integers
    cut_edges: Integers
    boundary: Integers
    halo: Integers

    def problem(self, whole: Problem) -> Problem:
        """Return the problem of this part alone: its nodes, rows and inner edges."""
        first, last = (np.searchsorted(whole.data.nodes, self.own, side) for side in ("left", "right"))
        nodes = np.repeat(np.arange(len(self.own)), last - first)
        before = np.concatenate([[0], np.cumsum(last - first)[:-1]])  # rows of its nodes before those of each
        rows = np.arange(len(nodes)) + (first - before)[nodes]
        given = whole.data
        offset = None if given.offset is None else given.offset[rows]
        data = LocalDatasets(given.X[rows], given.y[rows], nodes, len(self.own), given.weights[rows], offset)
        return replace(whole, graph=self.graph, data=data, loss=at_a_site(whole.loss))


@dataclass(frozen=True, eq=False)
class Cut:
    """The cut edges, with their ends: all that the parts have in common.

    Attributes
    ----------
    nodes : array of int
        All boundary nodes, in numbers of the whole graph, part by part.
    part : array of int
        The part of each, ascending.
    graph : EmpiricalGraph
        The cut edges; its node k is nodes[k].
    """

    nodes: Integers
    part: Integers
    graph: EmpiricalGraph

    def of(self, part: int) -> slice:
        """Where the boundary nodes of a part stand."""
        first, last = np.searchsorted(self.part, [part, part + 1])
        return slice(int(first), int(last))


def partition(graph: EmpiricalGraph, part_of: ArrayLike) -> tuple[tuple[Part, ...], Cut]:
    """Cut a graph into parts 0, 1, …; `part_of` names the part of every node."""
    of = _as_parts(graph, part_of)
    P, V = int(of.max()) + 1, graph.n_nodes
    ends = of[graph.edges]
    is_cut = ends[:, 0] != ends[:, 1]
    own = _by_part(np.arange(V), of, P)
    place = np.empty(V, dtype=np.int64)
    place[np.concatenate(own)] = np.concatenate([np.arange(len(nodes)) for nodes in own])
    edges = np.flatnonzero(~is_cut)
    inner = _by_part(edges, ends[edges, 0], P)
    edges = np.flatnonzero(is_cut)
    leaving = _by_part(np.repeat(edges, 2), ends[edges].ravel(), P)
    shared = np.unique(graph.edges[edges])
    boundary = _by_part(place[shared], of[shared], P)
    near, far = np.divmod(np.unique(ends[edges].ravel() * V + graph.edges[edges][:, ::-1].ravel()), V)
    halo = _by_part(far, near, P)
    parts = (
        Part(own[p], _renumbered(graph, inner[p], place, len(own[p])), inner[p], leaving[p], boundary[p], halo[p])
        for p in range(P)
    )
    nodes = shared[np.argsort(of[shared], kind="stable")]
    return tuple(parts), cut_between(nodes, of[nodes], graph.edges[is_cut], graph.weights[is_cut])


def cut_between(nodes: Integers, part: Integers, edges: Integers, weights: NDArray[np.float64]) -> Cut:
    """Return the cut whose edges join these nodes; parts are ascending."""
    order = np.argsort(nodes)
    pairs = order[np.searchsorted(nodes, edges, sorter=order)] if len(nodes) else np.empty((0, 2), dtype=np.int64)
    n_nodes = max(len(nodes), 1)  # a graph has a node, even where nothing is cut
    return Cut(nodes, part, EmpiricalGraph.from_edges(pairs, weights, n_nodes=n_nodes))


def _by_part(items: Integers, part: Integers, n_parts: int) -> list[Integers]:
    """Sort items into parts, in the order in which they come."""
    order = np.argsort(part, kind="stable")
    return np.split(items[order], np.searchsorted(part[order], np.arange(1, n_parts)))


def _renumbered(graph: EmpiricalGraph, edges: Integers, place: Integers, n_nodes: int) -> EmpiricalGraph:
    pairs, A = place[graph.edges[edges]], graph.weights[edges]
    pairs.flags.writeable = A.flags.writeable = False
    return EmpiricalGraph(n_nodes, pairs, A)  # own nodes are ascending, so i < j and the order stay


def _as_parts(graph: EmpiricalGraph, part_of: ArrayLike) -> Integers:
    of = np.asarray(part_of)
    if of.shape != (graph.n_nodes,) or not np.issubdtype(of.dtype, np.integer):
        raise ValueError(f"part_of must hold one whole number for each of the {graph.n_nodes} nodes; got {of!r}")
    if of.min() < 0:
        raise ValueError(f"parts are numbered 0, 1, …; node {int(np.argmin(of))} is in part {of.min()}")
    empty = np.setdiff1d(np.arange(int(of.max()) + 1), of)
    if empty.size:
        raise ValueError(f"parts are numbered 0, 1, … without a gap, but part {empty[0]} has no node")
    return of.astype(np.int64)
