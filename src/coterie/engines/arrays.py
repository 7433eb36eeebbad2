"""What certificates need of weights and duals, where these are arrays of this process."""

from __future__ import annotations

import numpy as np

from coterie.engines.base import Minorant, Prover
from coterie.engines.corrections import Corrections
from coterie.kernels import vector_buffer
from coterie.kernels.choice import Either
from coterie.kernels.interruption import check_with_grace
from coterie.kernels.reference.exact import EPS, FAINT, two_sum
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.base import LocalLosses
from coterie.problem.losses.design import Support
from coterie.proofs.dual_clusters import DualClusters
from coterie.proofs.enclosure import Enclosure
from coterie.proofs.rest import Rest

flow, models, thin_models = Either("flow"), Either("model"), Either("thin_model")

SUM_ERROR = 32 * EPS  # of the size of its terms: more than pairwise sums of 2⁵⁰ numbers can be off
QUICK = 100_000  # weights, duals and rows, times columns: a certificate of so many takes a few hundredths of a second


class ArrayProver(Corrections, Prover):
    """Handles are the arrays themselves."""

    def __init__(self, problem: BoundProblem, threads: int | None = None) -> None:
        super().__init__(problem, threads)
        self.enclosure = Enclosure(problem)

    @property
    def arrays(self) -> ArrayProver:
        return self

    def scatter(self, x: Array, edges: bool = False) -> Array:
        return x

    def gather(self, x: Array, edges: bool = False) -> Array:
        return x

    def copy(self, x: Array) -> Array:
        return x.copy()

    def no_duals(self) -> Array:
        return np.zeros((self.problem.graph.n_edges, self.problem.n_features))

    def is_nothing(self, u: Array) -> bool:
        return not u.any()

    def is_finite(self, u: Array) -> bool:
        return bool(np.isfinite(u).all())

    def objective(self, w: Array) -> float:
        return self.problem.objective(w)

    def largest_weight(self, w: Array) -> float:
        return float(np.abs(w).max(initial=0.0))

    def pooled_weights(self) -> Array:
        return self.enclosure.pooled_weights()

    def separating_weights(self) -> Array | None:
        return self.enclosure.separating_weights()

    def dual_clusters(self, u: Array) -> DualClusters | None:
        return DualClusters.shown_by(self.problem, u)

    def average(self, clusters: DualClusters, w: Array) -> Array:
        return clusters.average(w)

    def split(self, w: Array, u: Array) -> Array | None:
        """Duals s (V, n) in the box of the losses, zero at unlabelled nodes; None without a box."""
        problem, M = self.problem, self.problem.M
        if problem.f.l1_box is None:
            return None
        out, s = np.empty_like(w), np.zeros_like(w)
        flow.divergence(problem.graph.edges, u, out)
        s[M] = problem.f.split_dual(-out[M], w[M])
        return s

    def glance(self, w: Array, u: Array, level: float) -> float:
        """A loss that is not quadratic has its second-order model at w in its place."""
        problem, M = self.problem, self.problem.labelled
        rest = np.empty_like(w)
        flow.divergence(problem.graph.edges, u, rest)
        edges = problem.penalty.conjugate(u, problem.c)
        if problem.f.quadratic is not None:
            return -float(problem.f.conjugate(-rest[M], w[M])[1].sum()) - edges
        fall = fall_of_model(problem.f, w[M], rest[M])
        if fall is None:
            return np.inf
        return level - problem.variation(w) + float((rest * w).sum()) - fall - edges

    def minorant(self, w: Array, u: Array, s: Array | None) -> Minorant:
        rho, low, rounding_bound = self._exact_divergence(u)
        if s is not None:
            flow.add_exactly(s, rho, low, rounding_bound)
        support = self.problem.f.smooth_part.support(-rho[self.problem.labelled], w[self.problem.labelled])
        return self._added_up(w, u, s, support, (rho, low, rounding_bound))

    def _exact_divergence(self, u: Array) -> tuple[Array, Array, Array]:
        """Dᵀu in twice the precision, and how far that may be from the truth."""
        rho, low, rounding_bound = (np.empty((self.problem.graph.n_nodes, self.problem.n_features)) for _ in range(3))
        flow.exact_divergence(self.problem.graph.edges, u, rho, low, rounding_bound)
        self._pause()
        return rho, low, rounding_bound

    def _added_up(
        self, w: Array, u: Array, s: Array | None, support: Support, sums: tuple[Array, Array, Array]
    ) -> Minorant:
        """The affine functions of losses, edges and ℓ1 terms together; `sums` are the slopes of the last two."""
        (rho, low, rounding_bound), M = sums, self.problem.labelled
        rho[M], error = two_sum(rho[M], support.q)
        low[M] = (low[M] + support.low) + error
        rounding_bound[M] += support.rounding_bound
        self._pause()
        rho += low
        rounding_bound += EPS * np.abs(rho)
        value = self.value_of(w, u, s, support)
        self._pause()
        return Minorant(value, Rest(rho, rounding_bound, w), support.duals)

    def value_of(self, w: Array, u: Array, s: Array | None, support: Support) -> float:
        """What the affine functions below all parts of the objective come to at w, less rounding."""
        problem = self.problem
        across = flow.across(problem.graph.edges, u, w)
        box = 0.0 if s is None else box_value(problem, s, w)
        terms = across, -problem.penalty.conjugate(u, problem.c), box
        total = float(support.at.sum()) + sum(terms)
        return total - SUM_ERROR * (float(np.abs(support.at).sum()) + sum(map(abs, terms))) - FAINT

    def charge(self, rest: Rest, level: float, enough: float = 0.0, thorough: bool = True) -> float:
        return self.enclosure.charge(rest, level, enough, thorough)

    def residual_l1(self, rest: Rest) -> float:
        return float((np.abs(rest.rho) + rest.rounding_bound).sum())

    def _pause(self) -> None:
        """Notice Ctrl-C, and that the time is long over, where a certificate takes time."""
        problem, n = self.problem, self.problem.n_features
        rows = 0 if problem.f.design is None else len(problem.f.design.X)
        if (problem.graph.n_nodes + problem.graph.n_edges + rows) * n > QUICK:
            check_with_grace()


def fall_of_model(f: LocalLosses, w: Array, pull: Array) -> float | None:
    """By how much linear terms lower the minima of second-order models at w; None where losses have none.

    What no data see is left to repair, and not looked at. Then models have to be true to losses: curvature must not
    end at a kink, as beyond it any slope would seem to be out of reach.
    """
    seen = None if f.sees_all else f.row_space
    if seen is not None and not (f.below is not None and f.below.psi.self_concordant):
        return None
    thin = f.thin_model(w, w)
    if thin is not None and thin.h.all():
        return float(thin_models.thin_fall(thin.h, thin.Z, pull + thin.slope))
    model = f.model(w, w)
    if model is None or model.ground is not None:
        return None
    H, pull = model.H, pull + model.slope
    if seen is not None:  # rows of zeros have a curvature of one
        across = seen.transpose(0, 2, 1)
        H, pull = seen @ H @ across + (np.eye(seen.shape[1]) - seen @ across), (seen @ pull[:, :, None])[:, :, 0]
    return float(models.model_fall(vector_buffer(pull.shape[1]), H, pull))


def box_value(problem: BoundProblem, s: Array, w: Array) -> float:
    """Σ ⟨s, w⟩ less what that takes off, of ℓ1 terms and bounds, less rounding."""
    terms, cost = s * w, problem.f.box_cost(s[problem.M])
    return float(terms.sum() - cost.sum()) - SUM_ERROR * float(np.abs(terms).sum() + np.abs(cost).sum())
