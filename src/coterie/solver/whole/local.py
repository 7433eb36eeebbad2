"""Near the optimum, the gap itself says where better weights can be.

Let D(z) = P(w) − G + ⟨ρ, z − w⟩ be the affine function that duals prove to lie below the objective P. What P exceeds it
by at z is a sum of terms ≥ 0, one for each row and each edge (Fenchel's inequality). For every z with P(z) ≤ P(w) they
add up to G − ⟨ρ, z − w⟩ at most. So if −⟨ρ, z − w⟩ < X wherever they add up to at most G + X, then −⟨ρ, z − w⟩ ≤ X
for *every* z with P(z) ≤ P(w): on the way from w to a z that contradicts it, P stays below P(w), and a point with
−⟨ρ, z − w⟩ = X would be passed. Then no objective is below P(w) − G − X; nothing is said of a minimiser, or needed.

The term of an edge is at least (c − |u|) |d|: differences can change by no more than (G + X) + G over its slack. So is
that of alpha|w_k|, an edge to the ground, for single weights. Those of rows bound how far the weights of nodes that
such edges hold together can move (`Ellipsoids`, with w in place of v₀).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from coterie.kernels.interruption import TimeUp
from coterie.kernels.reference.exact import EPS
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.design import Design
from coterie.problem.losses.pooling import Pool
from coterie.proofs.charges import around, total
from coterie.proofs.ellipsoids import WIDER, Ellipsoids, hidden, pulls, stretched
from coterie.proofs.hierarchy import Level, alone, cheapest, levels_of
from coterie.proofs.rest import Rest

LEAST_PART, STEP = 1e-4, 3.0  # of the gap: a charge that is not worth lowering; the ratio of those that are tried
LEAST_OF_MOST = 1e-12  # the same of what a charge may be: G can be zero
GROUNDED = 1e-3  # of alpha: the slack that makes a weight's own term hold it
LEAST_SLACK = 1e-9  # of the largest: an edge with less holds nothing together


class Locality:
    """What is known of better weights around w, from the duals u of edges and (a, b) of rows and ridge."""

    def __init__(
        self,
        problem: BoundProblem,
        design: Design,
        w: Array,
        u: Array,
        s: Array | None,
        duals: tuple[Array, Array],
        free: NDArray[np.bool_],
    ) -> None:
        self.problem, self.design, self.w, self.u, self.s, self.free = problem, design, w, u, s, free
        self.a, self.b = duals

    def holds(self, rest: Rest, G: float, X: float) -> bool:
        """Whether −⟨ρ, z − w⟩ < X wherever P exceeds D by at most G + X."""
        cost = np.where((rest.rho != 0).any(axis=1) | (rest.rounding_bound != 0).any(axis=1), -np.inf, 0.0)
        still = Rest(rest.rho, rest.rounding_bound, np.zeros_like(rest.rho))
        charges = []
        for level, sets in self._levels:
            R = self._spread(level, G, X)
            caps = self._caps(level, G, X) + R[:, None]
            radius = sets.radius(np.full(len(R), (G + X) * WIDER), R, caps)
            charges.append((level, around(sets, level.labelled, still, radius, R, caps)))
        top = charges[-1][0].group
        return -total(cheapest(cost, charges, top, int(top.max()) + 1)) < X

    def _spread(self, level: Level, G: float, X: float) -> Array:
        """How far moves of two nodes of a group can be apart."""
        longest = level.sizes - 1.0
        if self.problem.penalty.degree == 2:  # c |d − u/(2c)|², at z and at w
            R = self.problem.penalty.spread(G + X, np.full(len(longest), level.strength), longest) * 2
        else:
            R = np.full(len(longest), (2 * G + X) / level.strength)
        return np.where(longest > 0, R * WIDER, 0.0)

    def _caps(self, level: Level, G: float, X: float) -> Array:
        """How far each weight of some node of a group can move, (groups, n), where its ground has slack; else 0."""
        slack = self._ground(level)
        return np.divide((2 * G + X) * WIDER, slack, out=np.zeros_like(slack), where=slack > 0)

    def _ground(self, level: Level) -> Array:
        """The largest alpha − |s| in each group and column, 0 where that is next to nothing, (groups, n)."""
        slack, box = np.zeros((len(level.sizes), self.w.shape[1])), self.problem.f.l1_box
        if box is not None and self.s is not None:
            M = self.problem.M
            left = box[1] * (1 - 4 * EPS) - np.abs(self.s[M])
            np.maximum.at(slack, level.labelled[M], np.where(left > GROUNDED * box[1], left, 0.0))
        return slack

    @cached_property
    def _slack(self) -> Array:
        """c − |u| of each edge, (E,)."""
        c, penalty = self.problem.c, self.problem.penalty
        if penalty.degree == 2:
            return c
        size = np.linalg.norm(self.u, axis=1) if penalty.couples else np.abs(self.u).max(axis=1, initial=0.0)
        return np.maximum(c - size * (1 + (self.u.shape[1] + 16) * EPS) - 4 * EPS * c, 0.0)

    @cached_property
    def _levels(self) -> list[tuple[Level, Ellipsoids]]:
        problem, slack = self.problem, self._slack
        strongest = float(slack.max(initial=0.0))
        kept = np.where(slack > LEAST_SLACK * strongest, slack, 0.0)
        found = [alone(problem), *levels_of(problem, kept)]
        return [(level, self._around_w(level)) for level in found]

    def _columns(self, level: Level) -> NDArray[np.bool_]:
        """Columns in which groups can move: where a whole component can be shifted at no cost, it need not be."""
        component = self.problem.graph.components
        whole = level.sizes == np.bincount(component)[component[self._first(level)]]
        columns = np.ones((len(level.sizes), self.free.shape[1]), dtype=bool)
        for i in np.flatnonzero(self.free.any(axis=1)):
            columns[level.labelled[i]] &= ~(self.free[i] & whole[level.labelled[i]])
        return columns

    def _first(self, level: Level) -> NDArray[np.int64]:
        """A node of each labelled group."""
        M = self.problem.M
        return M[np.unique(level.labelled[M], return_index=True)[1]]

    def _around_w(self, level: Level) -> Ellipsoids:
        """Ellipsoids for the moves of groups of nodes, all alike, from w."""
        M, d = self.problem.M, self.design
        groups, G, n = level.labelled[M], len(level.sizes), d.X.shape[1]
        capped = self._ground(level) > 0
        columns = self._columns(level) & ~capped
        rows = np.bincount(groups, np.diff(d.starts), minlength=G) + (d.ridge > 0).sum()
        if (rows < columns.sum(axis=1)).all() or not (d.is_squared or d.psi.self_concordant):
            return Ellipsoids.unknown(d, groups, G)
        pool = Pool.of(d, groups, G, columns)
        at = pool.coordinates(d.least_bend(self.w[M]))
        tilt, rounding_bound = pool.tilt(self.w[M], at.C, (self.a, self.b))
        with np.errstate(over="ignore"):
            steep = (np.linalg.norm(tilt, axis=1) + rounding_bound) * WIDER
        zero = np.zeros((G, n))
        seen = ~hidden(at, columns)
        pull = pulls(d, self.w[M], self.a)
        off = stretched(d, pull, groups, np.ones((G, n)))
        ridged = np.bincount(groups, minlength=G) * float(d.ridge.sum())
        known = at.C, at.error, at.longest, steep, np.zeros(G), capped, seen, off, ridged
        return Ellipsoids(d, zero, *known, pull, groups)


def lowest_that_holds(local: Locality, rest: Rest, G: float, most: float) -> float | None:
    """The smallest X below `most` that holds, among those that each are STEP times the one before, or None.

    When time is up, none is known.
    """
    X = max(LEAST_PART * G, LEAST_OF_MOST * most)
    try:
        while X < most < np.inf:
            if local.holds(rest, G, X):
                return X
            X *= STEP
    except TimeUp:
        return None
    return None
