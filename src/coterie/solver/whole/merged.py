"""Better weights from a smaller problem: nodes with the same clusters are one, and losses are second-order models.

Where nodes have many weights, these settle long after the clusters and the duals have. With clusters as nodes an
iteration costs a part of what it costs on the whole network, and a few dozen of them do what hundreds would do there.
Nothing is proven by this: weights are offered, and their objective is computed as that of any others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from coterie.engines.base import Mode
from coterie.engines.growing import engine_of
from coterie.kernels import is_wide
from coterie.kernels.choice import Either, form_here, using
from coterie.kernels.forms import Form
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.base import LocalLosses, Model, by_node, dot, sum_by_group
from coterie.problem.quotient import quotient
from coterie.proofs.dual_clusters import DualClusters
from coterie.solver.balance import Steps
from coterie.solver.epochs import BLOCK
from coterie.solver.whole.polish import MOST

thin_models = Either("thin_model")

MANY, PART = 5_000, 1 / 4  # nodes from which on, and merged nodes per node up to which, it is worth it
EPOCHS, LONG = 2, 2 * BLOCK  # how many, and the iterations of each
HEAVIER = 3  # times the usual balance ω: what is left to do is mostly the duals' way
SAME = 1e-3  # what models are said to change by: not enough to make new ones


def applies(problem: BoundProblem) -> bool:
    """Whether losses have models, duals show clusters, and nodes have many weights: few keep up with the duals."""
    known = problem.penalty.kernel is not None and problem.penalty.is_norm and problem.by_column is None
    smooth, n = problem.f.smooth and problem.f.quadratic is None, problem.n_features
    fits = is_wide(n) and problem.graph.n_nodes >= MANY and len(problem.M) * n**2 <= MOST
    return known and smooth and problem.lam > 0 and fits


def are_few(problem: BoundProblem, clusters: DualClusters) -> bool:
    """Whether so few nodes are left that it is worth it."""
    most = PART * problem.graph.n_nodes
    return bool(clusters.counts.max() <= most) and _merged(clusters.label)[1] <= most


def refine(problem: BoundProblem, clusters: DualClusters, w: Array, u: Array) -> Array:
    """Return weights that are better on these clusters than w is, mostly."""
    to, K = _merged(clusters.label)
    label, of = np.unique(to[problem.M], return_inverse=True)
    v = np.zeros((K, problem.n_features))
    v[to] = clusters.average(w)
    added = _added_up(problem.f, v[to[problem.M]], of, len(label))
    if added is None:
        return v[to]
    small = quotient(problem.graph, to, K)
    smaller = replace(problem, graph=small.graph, M=label, f=MergedModels(v[label], *added))
    return _solved(smaller, v, small.duals(u))[to]


def _added_up(f: LocalLosses, w: Array, group: NDArray[np.int64], n_groups: int) -> tuple[Array, Array] | None:
    """Slopes and curvatures at w of the losses of each group; None where these have no models."""
    thin = f.thin_model(w, w)
    if thin is not None:
        H = np.empty((n_groups, w.shape[1], w.shape[1]))
        thin_models.add_thin(thin.h, thin.Z, group, H)
        return sum_by_group(thin.slope, group, n_groups), H
    model = f.model(w, w)
    if model is None:
        return None
    return sum_by_group(model.slope, group, n_groups), sum_by_group(model.H, group, n_groups)


def _merged(label: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """A number for each node, the same where clusters are the same in all coordinates, and how many there are."""
    factors = np.random.default_rng(0).integers(1, 2**62, label.shape[1], dtype=np.int64)
    _, to = np.unique(label @ factors, return_inverse=True)  # one number for all labels: two will hardly meet
    return to, int(to.max()) + 1


def _solved(problem: BoundProblem, w: Array, u: Array) -> Array:
    """Weights after some iterations from (w, u), averaged on the clusters that duals show.

    Kernels are those for any n: compiling others would take longer than they save.
    """
    form, steps = min(form_here(), Form.ANY_N), Steps.near(problem, w)
    steps.omega *= HEAVIER
    with using(form):
        engine = engine_of(form, 1)
        engine.setup(problem, w, u)
        for _ in range(EPOCHS):
            engine.set_steps(steps.tau, steps.sigma)
            for _ in range(LONG // BLOCK):
                engine.advance(BLOCK, Mode.RELAXED)
            w, u = engine.point()
            steps.rebalance(engine.restart())
    clusters = DualClusters.shown_by(problem, u)
    return w if clusters is None else clusters.average(w)


@dataclass(frozen=True, eq=False)
class MergedModels(LocalLosses):
    """L_i(w) = ⟨slope_i, w − centre_i⟩ + ½⟨w − centre_i, H_i (w − centre_i)⟩."""

    centre: Array
    slope: Array
    H: Array

    def value(self, w: Array) -> Array:
        way = w - self.centre
        return dot(self.slope, way) + 0.5 * dot(way, by_node(self.H, way))

    def model(self, w: Array, before: Array | None) -> Model:
        return Model(self.slope + by_node(self.H, w - self.centre), self.H, SAME)

    def prox(self, v: Array, tau: Array, start: Array) -> Array:
        H = np.eye(v.shape[1]) + tau[:, None, None] * self.H
        pull = v - self.centre - tau[:, None] * self.slope
        return self.centre + np.linalg.solve(H, pull[:, :, None])[:, :, 0]

    def conjugate(self, p: Array, near: Array) -> tuple[Array, Array]:
        raise NotImplementedError("nothing is proven of models")

    def pooled(self, groups: NDArray[np.int64], n_groups: int) -> tuple[Array, Array]:
        raise NotImplementedError("nothing is proven of models")
