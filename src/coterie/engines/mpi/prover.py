"""What certificates need of weights and duals, where every rank has those of its part.

Each rank adds up what it counts, with the errors that these sums can have; sums over ranks are rounded once, or charged
for one rounding more a rank. Duals of cut edges are those of the rank that counts them: both ends prove with the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.engines.arrays import SUM_ERROR, box_value, fall_of_model
from coterie.engines.base import Minorant, Prover
from coterie.engines.mpi.clusters import PartClusters
from coterie.engines.mpi.corrections import PartCorrections
from coterie.engines.mpi.part import Part
from coterie.kernels.choice import Either
from coterie.kernels.gradients import ConjugateGradients
from coterie.kernels.interruption import GRACE, agree
from coterie.kernels.reference.exact import EPS, FAINT, two_sum
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.design import Support
from coterie.proofs.dual_clusters import DualClusters
from coterie.proofs.enclosure import Enclosure
from coterie.proofs.rest import Rest

flow = Either("flow")


class PartRest(NamedTuple):
    """ρ at own nodes, how far it may be from the truth, and the weights that it was computed at: see `Rest`."""

    part: Part
    own: Rest

    @property
    def here(self) -> Rest:
        return Rest(*(self.part.nodes_out(x) for x in self.own))

    def is_nothing(self) -> bool:
        return not self.part.crew.any(not self.own.is_nothing())

    def ceiling(self, problem: BoundProblem, level: float) -> float:
        mine, design = self.part.problem, problem.f.design
        w = self.own.w[mine.M]
        if design is None or mine.f.design is None:  # what is uncertain adds up
            return level + self.part.crew.sum(mine.f.ceiling(0.0, w))
        return design.raised(level, self.part.crew.sum(mine.f.design.uncertainty(w)))

    def within(self, caps: Array) -> float:
        return self.part.crew.sum(self.own.within(caps))

    def gathered(self, group: NDArray[np.int64], centre: Array) -> tuple[Array, ...]:
        """Sums over ranks are in any order: each is off by one rounding per rank of the sizes of its terms, at most."""
        part = self.part
        first, lost, total, slack, size = self.own.gathered(part.own_in(group), centre)
        columns = [first, lost, np.abs(first)], [total, slack, size, np.abs(total)]
        ones = part.crew.added(np.stack(columns[0]))
        many = part.crew.added(np.stack(columns[1]))
        rounding, wider = part.crew.size * EPS, 1 + part.crew.size * EPS
        lost, slack = ones[1] * wider + rounding * ones[2], many[1] * wider + rounding * many[3]
        return ones[0], lost, many[0], slack, many[2] * wider


class PartProver(Prover):
    """Handles are arrays of the part: weights are right in the halo, and duals are those of all its edges.

    `problem` is the whole one, or its outline, and `mine` that of the part.
    """

    arrays = None

    def __init__(self, problem: BoundProblem, part: Part, enclosure: Enclosure | None = None) -> None:
        self.problem, self.mine, self.part, self.crew = problem, part.problem, part, part.crew
        self.corrections, self.enclosure = PartCorrections(part), enclosure or Enclosure(problem)
        self.needs_repair, self.scales = self.corrections.needs_repair, self.corrections.scales
        self.largest_strength = self.corrections.largest_strength
        self.own, self.counted, self.kind = slice(part.own), slice(part.counted), problem.penalty.kind

    def scatter(self, x: Array, edges: bool = False) -> Array:
        return self.part.duals_in(x) if edges else self.part.nodes_in(x)

    def gather(self, x: Array, edges: bool = False) -> Array:
        return self.part.duals_out(x) if edges else self.part.nodes_out(x)

    def copy(self, x: Array) -> Array:
        return x.copy()

    def no_duals(self) -> Array:
        return np.zeros((self.mine.graph.n_edges, self.mine.n_features))

    def is_nothing(self, u: Array) -> bool:
        return not self.crew.any(bool(u.any()))

    def is_finite(self, u: Array) -> bool:
        return not self.crew.any(not np.isfinite(u).all())

    def objective(self, w: Array) -> float:
        return self.crew.sum(float(self.mine.f.exact(w[self.mine.M]).sum()) + self._variation(w))

    def _variation(self, w: Array) -> float:
        """g(Dw) of the edges that are counted here."""
        return float(flow.variation(self.kind, self.part.counted_ends, self.part.counted_c, w))

    def _conjugate(self, u: Array) -> float:
        """g*(u) of the edges that are counted here."""
        return float(self.mine.penalty.conjugate(u[self.counted], self.part.counted_c))

    def largest_weight(self, w: Array) -> float:
        return self.crew.most(float(np.abs(w[self.own]).max(initial=0.0)))

    def pooled_weights(self) -> Array:
        return self.scatter(self.enclosure.pooled_weights())

    def separating_weights(self) -> Array | None:
        apart = self.enclosure.separating_weights()
        return None if apart is None else self.scatter(apart)

    def dual_clusters(self, u: Array) -> PartClusters | None:
        pieces = DualClusters.shown_by(self.mine, u)
        return None if pieces is None else PartClusters(self.part, pieces.label, pieces.counts)

    def average(self, clusters: PartClusters, w: Array) -> Array:
        return clusters.average(w)

    def clip(self, u: Array) -> None:
        self.corrections.clip(u)

    def residual(self, u: Array, s: Array | None) -> float:
        return self.corrections.residual(u, s)

    def weigh(self, u: Array) -> None:
        self.corrections.weigh(u)

    def descent(self, s: Array | None) -> ConjugateGradients:
        return self.corrections.descent(s)

    def stretch(self, u: Array, s: Array | None, descent: Any) -> float:
        return self.corrections.stretch(u, s, descent)

    def correct(self, u: Array, s: Array | None, descent: Any, factor: float) -> None:
        self.corrections.correct(u, s, descent, factor)

    def split(self, w: Array, u: Array) -> Array | None:
        """Duals s (V, n) in the box of the losses, zero at unlabelled nodes and in the halo; None without a box."""
        f, M = self.mine.f, self.mine.M
        if f.l1_box is None:
            return None
        s = np.zeros_like(w)
        s[M] = f.split_dual(-self._divergence(u)[M], w[M])
        return s

    def _divergence(self, u: Array) -> Array:
        """Dᵀu, right at own nodes."""
        out = np.empty((self.mine.graph.n_nodes, self.mine.n_features))
        flow.divergence(self.mine.graph.edges, u, out)
        return out

    def glance(self, w: Array, u: Array, level: float) -> float:
        """A loss that is not quadratic has its second-order model at w in its place."""
        f, M = self.mine.f, self.mine.M
        rest, edges = self._divergence(u), self._conjugate(u)
        if f.quadratic is not None:
            return -self.crew.sum(float(f.conjugate(-rest[M], w[M])[1].sum()) + edges)
        fall = fall_of_model(f, w[M], rest[M])
        if self.crew.any(fall is None):
            return np.inf
        assert fall is not None
        pulled = float((rest[self.own] * w[self.own]).sum())
        return level + self.crew.sum(pulled - self._variation(w) - fall - edges)

    def minorant(self, w: Array, u: Array, s: Array | None) -> Minorant:
        agree(GRACE)
        self.part.cut(u)
        M, edges = self.mine.M, self.mine.graph.edges
        rho, low, rounding_bound = (np.empty_like(w) for _ in range(3))
        flow.exact_divergence(edges, u, rho, low, rounding_bound)
        if s is not None:
            flow.add_exactly(s, rho, low, rounding_bound)
        support = self.mine.f.smooth_part.support(-rho[M], w[M])
        rho[M], error = two_sum(rho[M], support.q)
        low[M] = (low[M] + support.low) + error
        rounding_bound[M] += support.rounding_bound
        rho += low
        rounding_bound += EPS * np.abs(rho)
        value = self._value_of(w, u, s, support)
        return Minorant(value, PartRest(self.part, Rest(*(x[self.own] for x in (rho, rounding_bound, w)))), None)

    def _value_of(self, w: Array, u: Array, s: Array | None, support: Support) -> float:
        """What the affine functions below all parts of the objective come to at w, less rounding."""
        across = flow.across(self.part.counted_ends, u[self.counted], w)
        box = 0.0 if s is None else box_value(self.mine, s, w)
        terms = across, -self._conjugate(u), box
        value, size = self.crew.sums(
            float(support.at.sum()) + sum(terms), float(np.abs(support.at).sum()) + sum(map(abs, terms))
        )
        return value - SUM_ERROR * size - FAINT

    def charge(self, rest: Any, level: float, enough: float = 0.0, thorough: bool = True) -> float:
        return self.enclosure.charge(rest, level, enough, thorough)

    def residual_l1(self, rest: PartRest) -> float:
        return self.crew.sum(float((np.abs(rest.own.rho) + rest.own.rounding_bound).sum()))
