"""Which thread works on which nodes and edges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from coterie.kernels import nodes
from coterie.kernels.team import Team
from coterie.problem.arrays import Array


class Ranges:
    """Nodes and edges in one contiguous range per thread.

    Each thread has its own xs, and only nodes that several threads reach are copied between them. The home of a node is
    the thread whose edges begin at it (edges are in the order of their first ends).
    """

    def __init__(self, threads: int | None, ends: Array, V: int, n: int) -> None:
        self.team, self.ends = Team(threads, len(ends), n), ends
        self.T, self.edge_cuts, self.node_cuts = self.team.T, self.team.cuts(len(ends)), self.team.cuts(V)
        self.homes = [0, *ends[self.edge_cuts[1:-1], 0].tolist(), V]
        visits = [self._visited(t, V) for t in range(self.T)] if self.T > 1 else []
        self.node_parts = [list(self._parts(first, last, visits)) for first, last in pairwise(self.node_cuts)]

    def each_of_edges(self, work: Callable[..., Any]) -> list[Any]:
        """Do work(t, first, last) on every range."""
        return self.team.each(self.edge_cuts, work)

    def each_of_nodes(self, xs: Array, work: Callable[..., Any], gather: bool, spread: bool) -> list[Any]:
        """Do work(t, first, last, xs) on every range, with the xs that is its home.

        Before, the sums of all threads are gathered there; after, x is spread to all that reach it.
        """

        def whole(t: int, first: int, last: int) -> list[Any]:
            done = []
            for home, begin, end, visitors in self.node_parts[t]:
                if gather:
                    for thread, visited in visitors:
                        nodes.gather_copies(visited, xs[thread], xs[home])
                done.append(work(t, begin, end, xs[home]))
                if spread:
                    for thread, visited in visitors:
                        nodes.spread_copies(visited, xs[thread], xs[home])
            return done

        return [one for done in self.team.each(self.node_cuts, whole) for one in done]

    def _parts(
        self, first: int, last: int, visits: list[Array]
    ) -> Iterator[tuple[int, int, int, list[tuple[int, Array]]]]:
        """Cut a range of nodes by their homes; name the other threads that visit nodes there, and which."""
        for home, (begin, end) in enumerate(pairwise(self.homes)):
            begin, end = max(first, begin), min(last, end)
            if begin < end:
                here = (slice(*np.searchsorted(visited, (begin, end))) for visited in visits)
                near = [(t, visits[t][part]) for t, part in enumerate(here) if t != home]
                yield home, begin, end, [(t, visited) for t, visited in near if len(visited)]

    def _visited(self, t: int, V: int) -> Array:
        """The nodes at which edges of thread t end, in order."""
        seen = np.zeros(V, dtype=bool)
        seen[self.ends[self.edge_cuts[t] : self.edge_cuts[t + 1]]] = True
        return np.flatnonzero(seen)
