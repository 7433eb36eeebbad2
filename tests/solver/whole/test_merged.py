"""Weights from the problem on clusters, with models of losses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import coterie as ct
from coterie.datasets import stochastic_block_model
from coterie.kernels.choice import using
from coterie.proofs.dual_clusters import DualClusters
from coterie.solver.whole import merged

PENALTIES = [ct.TotalVariation(), ct.GroupTotalVariation()]


def three_classes(penalty: ct.Penalty = PENALTIES[0], labelled: int = 60, lam: float = 0.1) -> ct.Problem:
    """Two blocks of 30 nodes, four columns, three classes."""
    network = stochastic_block_model((30, 30), np.eye(4)[:2] * 3, p_in=0.3, p_out=0.02, points=4, labelled=labelled)
    y = network.data.y.copy()
    known = ~np.isnan(y)
    y[known] = np.searchsorted([-1.0, 1.0], y[known])
    data = ct.LocalDatasets.from_rows(network.data.X, y, network.data.nodes, n_nodes=60)
    return ct.Problem(network.graph, data, ct.Multinomial(n_classes=3, ridge=0.01), penalty, lam)


def after(problem: ct.Problem, n_iter: int) -> ct.Solution:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.NotConverged)
        return ct.solve(problem, 1e-9, max_iter=n_iter, engine="numpy")


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("labelled", [60, 20])
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_weights_on_clusters_are_better(penalty: ct.Penalty, labelled: int, compiled: bool) -> None:
    problem = three_classes(penalty, labelled).bound
    near = after(three_classes(penalty, labelled), 400)
    clusters = DualClusters.shown_by(problem, near.u)
    assert clusters is not None
    rough = near.w + 0.01 * np.random.default_rng(0).standard_normal(near.w.shape)
    with using(compiled=compiled):
        better = merged.refine(problem, clusters, rough, near.u)
    best = ct.solve(three_classes(penalty, labelled), 1e-9).objective
    excess = [problem.objective(w) - best for w in (clusters.average(rough), better)]
    assert excess[1] < 0.3 * excess[0]


def test_too_many_clusters_are_left_alone() -> None:
    """In each coordinate, or in all together."""
    problem, four = three_classes().bound, np.tile(np.arange(60)[:, None] // 15, 12)
    assert merged.are_few(problem, DualClusters(four, np.full(12, 4)))
    assert not merged.are_few(problem, DualClusters(np.tile(np.arange(60)[:, None], 12), np.full(12, 60)))
    crossed = np.where(np.arange(12) % 2, four, np.arange(60)[:, None] % 15)
    assert not merged.are_few(problem, DualClusters(crossed, np.where(np.arange(12) % 2, 4, 15)))


def test_it_is_for_smooth_losses_of_many_nodes_with_many_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = three_classes()
    assert not merged.applies(problem.bound)
    monkeypatch.setattr(merged, "MANY", 60)
    assert merged.applies(problem.bound)
    assert not merged.applies(three_classes(lam=0.0).bound)
    squared = ct.Problem(problem.graph, problem.data, ct.SquaredError(), lam=0.1)
    assert not merged.applies(squared.bound)


def test_a_solve_with_it_ends_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = three_classes()
    without = ct.solve(problem, engine="numpy")
    monkeypatch.setattr(merged, "MANY", 60)
    solution = ct.solve(problem, engine="numpy")
    assert solution.status is ct.Status.OPTIMAL
    assert abs(solution.objective - without.objective) <= 2e-6 * without.objective


def test_models_are_what_their_updates_and_values_say() -> None:
    rng = np.random.default_rng(0)
    root = rng.standard_normal((3, 2, 2))
    models = merged.MergedModels(
        rng.standard_normal((3, 2)), rng.standard_normal((3, 2)), root @ root.transpose(0, 2, 1)
    )
    v, tau = rng.standard_normal((3, 2)), np.array([0.1, 1.0, 10.0])
    z = models.prox(v, tau, v)
    np.testing.assert_allclose(models.model(z, None).slope, (v - z) / tau[:, None], atol=1e-10)
    ahead, behind = (models.value(v + step * np.array([1e-5, 0.0])) for step in (1, -1))
    np.testing.assert_allclose((ahead - behind) / 2e-5, models.model(v, None).slope[:, 0], atol=1e-8)
