"""Where a minimiser provably lies, and what an imperfect dual point costs there.

Losses and penalties are never negative, so at a minimiser w* each part of the objective is at most Δ, any objective
that was reached. Four things follow, and all are used, the cheapest first:

* ridge_k w² ≤ Δ and alpha_k |w| ≤ Δ cap the weights of labelled nodes in penalised columns;
* s(y − xw)² ≤ Δ caps weights that are single numbers;
* g(Dw*) ≤ Δ keeps the nodes of a component within R of each other, and its rows keep a v near them in an ellipsoid;
* a labelled node whose own rows see every direction is in an ellipsoid of its own.

Unlabelled nodes can be clipped to the hull of the labelled ones at no cost: differences only shrink. In a direction
that no row of a component sees, all its weights can be shifted at no cost, so *some* minimiser has any value there, and
zero is taken.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.kernels.choice import Either
from coterie.kernels.reference.exact import EPS
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.proofs.caps import penalty_caps, row_cap
from coterie.proofs.charges import around, beyond, ends, total
from coterie.proofs.ellipsoids import WIDER, Ellipsoids
from coterie.proofs.free_columns import Unfolded
from coterie.proofs.hierarchy import Level, cheapest, levels_between
from coterie.proofs.rest import Rest

kernels = Either("charge")


class Shares(NamedTuple):
    """What g(Dw*), the losses of each component and the loss of each labelled node can be at a minimiser, at most."""

    edges: float
    components: Array
    nodes: Array


class Enclosure:
    """Bounds on the minimisers of one problem."""

    def __init__(self, problem: BoundProblem, shift: bool = True) -> None:
        self.problem = problem
        self.design = problem.f.below if len(problem.M) else None
        self.shift = shift and not self._one_sided()  # part of a larger graph cannot be shifted alone

    def _one_sided(self) -> bool:
        """Whether weights without a cap are bounded on one side, so that they cannot be shifted at no cost either.

        Only weights without a cap are shifted.
        """
        bounds = self.problem.f.bounds
        if bounds is None or self.design is None:
            return False
        one_side = np.isfinite(bounds[0]) != np.isfinite(bounds[1])
        return bool((one_side & ~np.isfinite(self._penalty_caps(1.0))).any())

    def charge(self, rest: Rest, level: float, enough: float = 0.0, thorough: bool = True) -> float:
        """Return a lower bound on Σ_i ⟨ρ_i, w*_i − w_i⟩ for some minimiser w*; −∞ where there is none.

        The next better way is tried only while the bound is below −enough, and the last one, node by node, only if
        `thorough`, or if nothing else has given a bound.
        """
        if rest.is_nothing():
            return 0.0
        if self.design is None or not np.isfinite(level):
            return -np.inf
        level = rest.ceiling(self.problem, level)
        caps, best = self._caps(level), -np.inf
        nearest = np.minimum(caps, self._row_cap(level))
        if np.isfinite(nearest).all():
            best = -rest.within(nearest) * WIDER
        if best < -enough:
            best = max(best, total(self._by_component(rest, self._share_of(level), caps)[0]))
        if best < -enough and self._own_can_help and (thorough or best == -np.inf):
            best = max(best, total(self._node_by_node(rest, level, caps)))
        return best

    def _node_by_node(self, rest: Rest, level: float, caps: Array) -> Array:
        """The charge of each component, its nodes all together, by themselves, or in groups, whichever costs least."""
        shares, rest = self._share_of(level, self._own.floors), rest.here
        by_component, box = self._by_component(rest, shares, caps)
        own = self._own_charges(rest, shares, caps)
        charges = np.maximum(by_component, self._by_node(rest, shares, caps, own, *box))
        return np.maximum(charges, self._by_level(rest, shares, caps, own)) if self._levels else charges

    def _share_of(self, level: float, floors: Array | None = None) -> Shares:
        """What the parts of the objective can be at a minimiser, where `level` was reached and losses have floors."""
        M, G, group = self.problem.M, len(self._pooled.v0), self._labelled_component[self.problem.M]
        if floors is None:
            return Shares(level, np.full(G, level), np.full(len(M), level))
        over = beyond(level, float(floors.sum()), len(M) + self.problem.n_features)
        return Shares(over, over + np.bincount(group, floors, minlength=G), over + floors)

    def reach(self, level: float) -> float:
        """Return the largest |weight| of a labelled node of any w whose objective is at most `level`, or infinity."""
        M = self.problem.M
        if self.design is None or not np.isfinite(level):
            return np.inf if len(M) else 0.0
        level = max(level, 0.0)
        caps = self._caps(level)
        shares = self._share_of(level, self._own.floors if self._own_can_help else None)
        _, (v0, width) = self._by_component(None, shares, caps)
        furthest = np.minimum(self._columns.at_nodes(np.abs(v0) + width, self._labelled_component[M]), caps)
        if self._own_can_help:
            own = self._own.radius(shares.nodes, np.zeros(len(M)), caps)
            furthest = np.minimum(furthest, np.abs(self._own.v0) + self._own.half_widths(own, caps))
        return float(furthest.max()) * WIDER

    def pooled_weights(self) -> Array:
        """The weights (V, n) of one model for each component: as good as any where the classes can be separated."""
        out = np.zeros((self.problem.graph.n_nodes, self.problem.n_features))
        there, v0 = self._labelled_component >= 0, self._pooled.v0
        out[there] = v0[self._labelled_component[there][:, None], self._columns.column[0]]
        out[self.problem.M] = self._columns.at_nodes(v0, self._labelled_component[self.problem.M])
        return out

    def separating_weights(self) -> Array | None:
        """The same where rows are fewer than columns, so that they separate the classes; None: they need not."""
        d = self.design
        if d is None or d.is_squared or d.ridge.any() or len(d.X) > d.X.shape[1] * d.n_nodes:
            return None
        return self.pooled_weights() if self._pooled.apart else None

    def free_weights(self) -> NDArray[np.bool_]:
        """Mark weights (V, n) that can be given any value: one for each direction that no row of a component sees."""
        mask = np.zeros((self.problem.graph.n_nodes, self.problem.n_features), dtype=bool)
        if self.design is not None:
            root = np.unique(self._labelled_component[self.problem.M], return_index=True)[1]
            open_ended = (np.abs(self._pooled.C).max(axis=2) == 0) & ~self._pooled.capped
            mask[self.problem.M[root]] = open_ended & self._pooled.resolved[:, None]
        return mask

    def open_columns(self) -> NDArray[np.int64]:
        """Columns of X in directions that the rows of some component do not see, or hide in rounding."""
        if self.design is None or not len(self.problem.M):
            return np.empty(0, dtype=np.int64)
        pooled = self._pooled
        bad = ~pooled.resolved & pooled.C.any(axis=(1, 2))  # where nothing is known, no column is to blame
        lengths = np.abs(pooled.C[bad]).max(axis=2, initial=0.0)
        weak = lengths > 1e-3 * lengths.max(axis=1, keepdims=True, initial=0.0)
        return np.unique(self._columns.origin[(weak | (lengths == 0)).any(axis=0)])

    def _caps(self, level: float) -> Array:
        """|w_k| at labelled nodes at most, (n,): by penalties, and in shared columns by the rows of some nodes."""
        caps = self._penalty_caps(level)
        if self._columns.complete:
            return caps
        (columns, sets), R = self._some, self._spread(level)
        radius = sets.radius(np.full(len(R), level), R, caps[columns.origin])
        furthest = np.abs(sets.v0) + sets.half_widths(radius, caps[columns.origin]) + sets.distances(R)
        shared = np.flatnonzero(~self._free)
        caps[shared] = np.fmin(caps[shared], furthest.max(axis=0)[: len(shared)] * WIDER)
        return caps

    def _penalty_caps(self, level: float) -> Array:
        assert self.design is not None
        return penalty_caps(self.problem, self.design, level)

    def _row_cap(self, level: float) -> float:
        assert self.design is not None
        return row_cap(self.design, level)

    @cached_property
    def _cappable(self) -> NDArray[np.bool_]:
        return np.isfinite(self._caps(1.0))

    @cached_property
    def _component(self) -> NDArray[np.int64]:
        """The component of each node; at λ = 0, and where nothing else holds nodes together, the node itself."""
        V = self.problem.graph.n_nodes
        return np.arange(V) if self.problem.lam == 0 else self.problem.graph.components

    @cached_property
    def _labelled_component(self) -> NDArray[np.int64]:
        """Components with a label, numbered from 0: of each node, or −1."""
        number = np.full(int(self._component.max()) + 1, -1)
        present = np.unique(self._component[self.problem.M])
        number[present] = np.arange(len(present))
        return number[self._component]

    @property
    def _free(self) -> NDArray[np.bool_]:
        """Columns that every node has for itself."""
        none = np.zeros(self.problem.n_features, dtype=bool)
        return none if self.problem.by_column is None else self.problem.by_column.free

    @cached_property
    def _columns(self) -> Unfolded:
        """The rows as components see them, in which columns that every node has for itself are columns of their own."""
        return Unfolded.of(self.problem, self._labelled_component[self.problem.M])

    @cached_property
    def _pooled(self) -> Ellipsoids:
        columns, groups = self._columns, self._labelled_component[self.problem.M]
        G = int(groups.max()) + 1
        if not columns.complete:
            return Ellipsoids.unknown(columns.design, groups, G)
        cappable = self._cappable[columns.origin]
        return Ellipsoids.of(columns.design, groups, G, cappable, self.shift, columns.apart)

    @cached_property
    def _some(self) -> tuple[Unfolded, Ellipsoids]:
        """The rows of some nodes unfolded, where there are too many for all, with the ellipsoids of components.

        What these rows do not see, others may: nothing can be shifted.
        """
        groups = self._labelled_component[self.problem.M]
        columns, nodes = Unfolded.of_some(self.problem, groups)
        cappable = np.isfinite(self._penalty_caps(1.0))[columns.origin]
        return columns, Ellipsoids.of(
            columns.design, groups[nodes], int(groups.max()) + 1, cappable, False, columns.apart
        )

    @cached_property
    def _own(self) -> Ellipsoids:
        assert self.design is not None
        K = len(self.problem.M)
        return Ellipsoids.of(self.design, np.arange(K), K, self._cappable, False)

    @cached_property
    def _own_can_help(self) -> bool:
        """Whether nodes by themselves, or in groups, may cost less than all together."""
        return self._some_node_sees() or bool(self._levels)

    def _some_node_sees(self) -> bool:
        """Whether some node sees all columns without a cap; with several classes, one vector for all is never seen."""
        assert self.design is not None
        n, most = self.problem.n_features, int(np.diff(self.design.starts).max(initial=0))
        open_ended = ~self._cappable
        if most < n and not 0 < open_ended.sum() <= most:
            return False
        seen = None if self.problem.f.design is not None else self.problem.f.row_space
        if seen is None:
            return True
        return bool(((seen[:, :, open_ended] != 0).any(axis=2).sum(axis=1) >= open_ended.sum()).any())

    @cached_property
    def _edges_of_components(self) -> tuple[Array, Array]:
        """The weakest edge of each labelled component, and a bound on the length of its paths."""
        G, group = len(self._pooled.v0), self._labelled_component
        weakest = np.full(G + 1, np.inf)  # the last is that of all components without labels
        if self.problem.lam > 0:
            np.minimum.at(weakest, group[self.problem.graph.edges[:, 0]], self.problem.c)
        return weakest[:G], np.bincount(group[group >= 0], minlength=G) - 1.0

    def _spread(self, level: float) -> Array:
        """R of each labelled component."""
        weakest, longest = self._edges_of_components
        known = np.where(weakest > 0, weakest, np.nan)  # strengths that are too small for a float hold nothing together
        R = np.nan_to_num(self.problem.penalty.spread(level, known, longest) * WIDER, nan=np.inf)
        return np.where((longest > 0) & (self._columns.apart is None or self._columns.apart.any()), R, 0.0)

    def _by_component(self, rest: Rest | None, shares: Shares, caps: Array) -> tuple[Array, tuple[Array, Array]]:
        """The charge of each component, all its nodes around one v; and a box for its nodes."""
        R, caps = self._spread(shares.edges), caps[self._columns.origin]
        radius = self._pooled.radius(shares.components, R, caps)
        box = self._pooled.v0, self._pooled.half_widths(radius, caps) + self._pooled.distances(R)
        if rest is None:
            return np.zeros(len(R)), box
        rest = self._columns.unfold(rest, self.problem)
        return around(self._pooled, self._labelled_component, rest, radius, R, caps), box

    def _own_charges(self, rest: Rest, shares: Shares, caps: Array) -> Array:
        """The charge of each labelled node around its own fit, −∞ where its rows do not see every direction."""
        K, alone = len(self.problem.M), np.full(len(rest.rho), -1)
        alone[self.problem.M] = np.arange(K)
        radius = self._own.radius(shares.nodes, np.zeros(K), caps)
        return around(self._own, alone, rest, radius, np.zeros(K), caps)

    def _by_node(self, rest: Rest, shares: Shares, caps: Array, charge: Array, centre: Array, width: Array) -> Array:
        """The charge of each component, labelled nodes by themselves where their own rows allow it."""
        M, group, own = self.problem.M, self._labelled_component, self._own
        K, G = len(M), len(centre)
        radius = own.radius(shares.nodes, np.zeros(K), caps)
        low, high = ends(centre, width, caps[self._columns.origin])
        self._shrink_to_hull(low, high, *ends(own.v0, own.half_widths(radius, caps), caps))
        others = group.copy()
        others[M[np.isfinite(charge)]] = -1
        total, rest = np.zeros(G), self._columns.unfold(rest, self.problem)
        kernels.least(rest.rho, rest.rounding_bound, rest.w, others, low, high, total)
        kept = np.isfinite(charge)
        return total + np.bincount(group[M[kept]], charge[kept] - K * EPS * np.abs(charge[kept]), minlength=G)

    @cached_property
    def _levels(self) -> list[tuple[Level, Ellipsoids]]:
        """Groups between single nodes and components, with their ellipsoids."""
        assert self.design is not None
        sets: list[tuple[Level, Ellipsoids]] = []
        if self.problem.by_column is not None:
            return sets
        for level in levels_between(self.problem):
            groups = level.labelled[self.problem.M]
            sets.append((level, Ellipsoids.of(self.design, groups, len(level.sizes), self._cappable, False)))
        return sets

    def _by_level(self, rest: Rest, shares: Shares, caps: Array, own: Array) -> Array:
        """The charge of each component, every node in the group where that costs least."""
        M, floors = self.problem.M, self._own.floors
        cost = np.where((rest.rho != 0).any(axis=1) | (rest.rounding_bound != 0).any(axis=1), -np.inf, 0.0)
        cost[M] = np.maximum(cost[M], own)
        charges = []
        for level, sets in self._levels:
            losses = shares.edges + np.bincount(level.labelled[M], floors, minlength=len(level.sizes))
            strength = np.full(len(level.sizes), level.strength)
            R = np.where(level.sizes > 1, self.problem.penalty.spread(shares.edges, strength, level.sizes - 1.0), 0.0)
            radius = sets.radius(losses * WIDER, R * WIDER, caps)
            charges.append((level, around(sets, level.labelled, rest, radius, R * WIDER, caps)))
        return cheapest(cost, charges, self._labelled_component, len(self._pooled.v0))

    def _shrink_to_hull(self, low: Array, high: Array, own_low: Array, own_high: Array) -> None:
        """Nodes of a component lie in the hull of its labelled ones, unlabelled ones included."""
        group = self._labelled_component[self.problem.M]
        hull_low, hull_high = np.full_like(low, np.inf), np.full_like(high, -np.inf)
        np.minimum.at(hull_low, (group[:, None], self._columns.column), own_low)
        np.maximum.at(hull_high, (group[:, None], self._columns.column), own_high)
        np.maximum(low, hull_low, out=low)
        np.minimum(high, hull_high, out=high)
