"""Exact reductions before the iteration, and the way back.

If one edge of an unlabelled node i outweighs all its others together, c_ij ≥ Σ_{k≠j} c_ik, then w_i = w_j is a best
answer to whatever its neighbours do (w_i is a weighted median), so i is contracted into j and parallel edges
add up. All such nodes are contracted at once, again and again: a path between two labelled nodes becomes one edge.
Components without labels are left out. On the way back, a contracted node has the weight of what it went
into, parallel edges share their dual in proportion, and the dual of the edge i–j is whatever leaves nothing at
i; by the rule above, that is feasible.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from coterie.kernels.choice import Either
from coterie.problem import BoundProblem, EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.problem.quotient import Quotient, quotient
from coterie.problem.reuse import reused

contract = Either("contract")

WORTH_IT = 0.02  # of the nodes must go in a round
MOST_ROUNDS = 30

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Contraction:
    """One round: nodes of `before` went into nodes of a smaller graph.

    Attributes
    ----------
    to : (V,)
        The number of each old node in the new graph; −1: left out, its weight is zero.
    via, order : (V,)
        The edge over which each node was contracted, or −1; and the nodes, each after those that it went into.
    share : (E,)
        c_e of the old edge over that of the new one.
    """

    before: EmpiricalGraph
    made: Quotient
    to: Integers
    via: Integers
    order: Integers
    share: Array

    def lift(self, w: Array, u: Array) -> tuple[Array, Array]:
        """Return weights and duals of the old graph."""
        w_old = np.where((self.to >= 0)[:, None], w[self.to], 0.0)
        u_old = np.zeros((self.before.n_edges, w.shape[1]))
        kept = self.made.edge_to >= 0
        u_old[kept] = u[self.made.edge_to[kept]] * (self.share * self.made.sign)[kept, None]
        contract.push_flows(self.before.edges, self.via, self.order, np.zeros_like(w_old), u_old)
        return w_old, u_old

    def restrict(self, w: Array, u: Array) -> tuple[Array, Array]:
        """Return weights and duals of the new graph: a point to start from."""
        w_new = np.zeros((self.made.graph.n_nodes, w.shape[1]))
        stays = (self.to >= 0) & (self.via < 0)
        w_new[self.to[stays]] = w[stays]
        return w_new, self.made.duals(u)


@dataclass(frozen=True, eq=False)
class Presolved:
    """A smaller problem with the same optimal value, and how it came about."""

    problem: BoundProblem
    rounds: tuple[Contraction, ...]

    def lift(self, w: Array, u: Array) -> tuple[Array, Array]:
        """Return weights and duals of the original problem."""
        for contraction in reversed(self.rounds):
            w, u = contraction.lift(w, u)
        return w, u

    def restrict(self, w: Array, u: Array) -> tuple[Array, Array]:
        """Return a point of the smaller problem."""
        for contraction in self.rounds:
            w, u = contraction.restrict(w, u)
        return w, u


def presolve(problem: BoundProblem) -> Presolved:
    """Contract as long as it is worth it: the same nodes at every λ above zero."""
    rounds, M = reused(_rounds, problem.graph, problem.M, problem.undetermined, not problem.penalty.is_norm)
    return Presolved(replace(problem, graph=rounds[-1].made.graph, M=M) if rounds else problem, rounds)


def _rounds(
    graph: EmpiricalGraph, M: Integers, undetermined: Integers, leaves_only: bool
) -> tuple[tuple[Contraction, ...], Integers]:
    """The rounds, and the labelled nodes of the last graph."""
    rounds: list[Contraction] = []
    labelled = np.zeros(graph.n_nodes, dtype=bool)
    labelled[M] = True
    drop = np.zeros(graph.n_nodes, dtype=bool)
    drop[undetermined] = True
    while len(rounds) < MOST_ROUNDS:
        contraction = _contract(graph, labelled, drop, leaves_only)
        if contraction is None:
            break
        rounds.append(contraction)
        stays = contraction.to[labelled]
        graph = contraction.made.graph
        labelled = np.zeros(graph.n_nodes, dtype=bool)
        labelled[stays] = True
        drop = np.zeros(graph.n_nodes, dtype=bool)
    return tuple(rounds), np.flatnonzero(labelled)


def _contract(
    graph: EmpiricalGraph, labelled: NDArray[np.bool_], drop: NDArray[np.bool_], leaves_only: bool
) -> Contraction | None:
    V = graph.n_nodes
    if not labelled.any():
        return None
    via, root, order = (np.empty(V, dtype=np.int64) for _ in range(3))
    contract.dominant_edges(V, graph.edges, graph.weights, labelled | drop, leaves_only, via)
    contract.break_cycles(graph.edges, via, root, order)
    goes = (via >= 0) | drop
    if not drop.any() and goes.sum() <= WORTH_IT * V:
        return None
    number = np.cumsum(~goes) - 1
    to = np.where(drop, -1, number[root])
    made = quotient(graph, to, int((~goes).sum()))
    share = np.zeros(graph.n_edges)
    kept = made.edge_to >= 0
    share[kept] = graph.weights[kept] / made.graph.weights[made.edge_to[kept]]
    return Contraction(graph, made, to, via, order, share)
