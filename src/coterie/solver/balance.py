"""Steps that converge, and their balance.

PDHG converges for τ_i = η/(ω d_i), σ_e = ηω s_e/2 with d_i = Σ_{e∋i} s_e, any s_e > 0, any balance ω > 0,
and η ≤ 1 (or a little more, where the graph allows it). A wrong ω costs a factor of 10 to 100 in
iterations, so the driver finds it and the user never sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from coterie.engines.base import LARGE, Mode, Travel
from coterie.kernels.choice import Either
from coterie.kernels.interruption import check
from coterie.problem import BoundProblem, EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.problem.losses import LocalLosses
from coterie.problem.reuse import reused

norms = Either("norms")
Lanczos = Callable[[Array, Array, Array, int], tuple[Array, Array]]  # (s, d, start, steps): see `kernels.norms`

MOST_EDGES = 32  # at a node, for matchings

LANCZOS_STEPS = 16
SAMPLE = 1_000  # nodes, whose pooled model is found in place of that of many more: as many iterations follow
EVEN = 4.0  # condition number of each H_i up to which dual ascent is worth it
CANCELLED = 1e-4  # of the mean square of the nodes' own weights: a pooled model as small as that is a sum to zero
ROUNDING = 1e-24  # a square of weights, in units in which they are about one, that is rounding of zero
UNEVEN = 3.0  # mean √(largest/smallest share of an edge's two ends) from which on it is not (decision 13)


@dataclass(eq=False)
class Steps:
    """s_e, d_i, η and ω of a problem; or, where accelerated dual ascent applies, its steps σ; or, in pairs, nothing."""

    s: Array
    d: Array
    eta: float = 1.0
    omega: float = 1.0
    ascent: Array | None = None
    pairs: bool = False

    @classmethod
    def in_pairs(cls) -> Steps:
        """Edges that are solved exactly need no steps."""
        return cls(np.empty(0), np.empty(0), pairs=True)

    @classmethod
    def of(cls, problem: BoundProblem, lanczos: Lanczos | None = None) -> Steps:
        """Choose steps that suit a problem. `lanczos`: an engine's way to the norm of D, where it has one."""
        graph = problem.graph
        s, d = reused(scales, graph, np.ones(graph.n_edges) if problem.lam == 0 else graph.weights)
        ascent = _ascent(problem, s, d)
        if ascent is not None:
            return cls(s, d, ascent=ascent)
        check()
        eta = reused(_own_eta, graph, s, d) if lanczos is None else _longest_eta(graph, s, d, lanczos)
        check()
        return cls(s, d, eta, _first_omega(problem, d))

    @classmethod
    def near(cls, problem: BoundProblem, w: Array) -> Steps:
        """Steps for primal-dual iterations where weights are about w."""
        s, d = scales(problem.graph, problem.graph.weights)
        return cls(s, d, _own_eta(problem.graph, s, d), _omega(problem, float((d @ w**2).sum())))

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The ways of moving that are worth trying."""
        if self.pairs:
            return (Mode.PAIRS,)
        return (Mode.RELAXED, Mode.HALPERN) if self.ascent is None else (Mode.DUAL,)

    @property
    def tau(self) -> Array:
        return self.eta / (self.omega * self.d)

    @property
    def sigma(self) -> Array:
        return 0.5 * self.eta * self.omega * self.s if self.ascent is None else self.ascent

    def be_careful(self) -> None:
        """Use the η that is proven for every graph."""
        self.eta = 1.0

    def rebalance(self, travel: Travel) -> None:
        """Move ω half-way (in logarithms) to where both variables travel equally far."""
        if travel.primal > 0 and travel.dual > 0:
            self.omega *= np.clip(np.sqrt(travel.dual / travel.primal), 0.1, 10.0)


def scales(graph: EmpiricalGraph, A: Array) -> tuple[Array, Array]:
    """s_e = √(A_e / mean A) and d_i = Σ_{e∋i} s_e, or 1 where there is no edge: the same for all λ > 0."""
    s = np.sqrt(A / A.mean()) if A.size else np.ones(0)
    d = np.bincount(graph.edges.ravel(), weights=np.repeat(s, 2), minlength=graph.n_nodes)
    d[d == 0] = 1.0
    return s, d


def _ascent(problem: BoundProblem, s: Array, d: Array) -> Array | None:
    """Steps of accelerated dual ascent, or None where some loss is not strongly and evenly convex.

    They need Σ_{e∋i} 2σ_e ≤ λ_min(H_i), so σ_e = s_e/2 · min(λ_min(H_i)/d_i, λ_min(H_j)/d_j): the poorer end of an
    edge sets its pace. Where a hub does that for many edges, the other modes, with steps τ_i at each end, are faster.
    """
    h = _curvatures(problem)
    if h is None or (h.max(axis=1) > EVEN * h.min(axis=1)).any():
        return None
    poorer = _poorer_end(problem, h.min(axis=1) / d)
    return None if poorer is None else 0.5 * s * poorer


def ascends(problem: BoundProblem) -> bool:
    """Whether steps are those of accelerated dual ascent."""
    if _curvatures(problem) is None:
        return False
    return _ascent(problem, *reused(scales, problem.graph, problem.graph.weights)) is not None


def suit_pairs(problem: BoundProblem) -> bool:
    """Whether dual ascent can go pair by pair (`engines/pairs.py`): one feature, ℓ1, no node with very many edges."""
    graph, h = problem.graph, _curvatures(problem)
    return (
        h is not None
        and problem.n_features == 1
        and problem.lam > 0
        and 0 < graph.n_edges <= LARGE
        and problem.penalty.exact_clusters
        and int(graph.degrees.max()) <= MOST_EDGES
        and _poorer_end(problem, h[:, 0]) is not None
    )


def _curvatures(problem: BoundProblem) -> Array | None:
    """The curvatures h (V, n) of quadratic losses; None where some loss is not strongly convex."""
    q = problem.f.quadratic
    if q is None or len(problem.M) < problem.graph.n_nodes or q.row_space is not None:
        return None
    return q.h


def _poorer_end(problem: BoundProblem, share: Array) -> Array | None:
    """The smaller share of each edge's two ends; None where they are too uneven for dual ascent."""
    i, j = problem.graph.edges.T
    poorer, richer = np.minimum(share[i], share[j]), np.maximum(share[i], share[j])
    return None if len(poorer) and np.sqrt(richer / poorer).mean() > UNEVEN else poorer


def _own_eta(graph: EmpiricalGraph, s: Array, d: Array) -> float:
    """That η, found here; it is the same for all λ."""
    return _longest_eta(graph, s, d, partial(norms.lanczos, graph.edges))


def _longest_eta(graph: EmpiricalGraph, s: Array, d: Array, lanczos: Lanczos) -> float:
    """0.98/‖Σ^½ D T^½‖ by a few Lanczos steps, or 1: the norm is at most 1, and less the further from bipartite."""
    if graph.n_edges == 0:
        return 1.0
    start = np.random.default_rng(0).standard_normal(graph.n_nodes)
    alpha, beta = lanczos(s, d, start, LANCZOS_STEPS)
    largest = float(eigvalsh_tridiagonal(alpha, beta[:-1])[-1])
    return max(1.0, 0.98 / np.sqrt(largest))


def _typical_square(f: LocalLosses, n_labelled: int) -> float:
    """‖w_pooled‖², or the mean of ‖ŵ_i‖² over nodes, where these cancel in the pooled model and are known.

    Of many nodes, whose pooled model takes Newton's method, a sample says as much.
    """
    q, some, k = f.smooth_part.quadratic, f, n_labelled
    if q is None and n_labelled >= 2 * SAMPLE and type(f).of_nodes is not LocalLosses.of_nodes:
        k = SAMPLE
        some = f.of_nodes(np.sort(np.random.default_rng(0).choice(n_labelled, k, replace=False)))
    pooled = float((some.pooled(np.zeros(k, dtype=np.int64), 1)[0] ** 2).sum())
    own = 0.0 if q is None else float((q.centre**2).sum()) / n_labelled
    return pooled if pooled > max(CANCELLED * own, ROUNDING) else own


def _first_omega(problem: BoundProblem, d: Array) -> float:
    """Typical size of u over typical size of w: √(2n Σc²) / √(Σ d_i ‖w_pooled‖²), as a rule."""
    if not len(problem.M):
        return 1.0
    return _omega(problem, d.sum() * reused(_typical_square, problem.f, len(problem.M)))


def _omega(problem: BoundProblem, square: float) -> float:
    """√(2n Σc²) / √square, where Σ d_i ‖w_i‖² is about that square."""
    flow = np.sqrt(2 * problem.n_features * float((problem.c**2).sum()))
    return float(flow / np.sqrt(square)) if square > 0 and flow > 0 else 1.0
