"""Flows inside few large clusters, by conjugate gradients."""

from __future__ import annotations

import numpy as np

import coterie as ct
from coterie.proofs.dual_clusters import DualClusters
from coterie.solver.whole import polish
from coterie.solver.whole.spread import spread

SIDE = 12


def picture(lam: float) -> ct.Problem:
    """A noisy grid, one number per node."""
    node = np.arange(SIDE**2).reshape(SIDE, SIDE)
    across, down = (
        np.stack(pair, axis=-1).reshape(-1, 2) for pair in ((node[:, :-1], node[:, 1:]), (node[:-1], node[1:]))
    )
    y = np.random.default_rng(0).standard_normal(SIDE**2)
    data = ct.LocalDatasets.from_rows(np.ones((SIDE**2, 1)), y, np.arange(SIDE**2))
    return ct.Problem(ct.EmpiricalGraph.from_edges(np.concatenate([across, down])), data, lam=lam)


def spread_from_zero(problem: ct.Problem, tol: float) -> tuple[bool, np.ndarray, np.ndarray]:
    """The flow that would prove the mean of all labels."""
    w, u = np.full((SIDE**2, 1), problem.data.y.mean()), np.zeros((problem.graph.n_edges, 1))
    value = problem.bound.objective(w)
    gradient = problem.f.gradient(w)

    def enough(u: np.ndarray) -> bool:
        return value - ct.certify(problem, w, u).dual_bound <= tol * value

    return spread(problem.bound, np.zeros(u.shape, dtype=bool), u, gradient, enough), w, u


def test_it_proves_one_cluster_where_there_is_one() -> None:
    largest = ct.largest_useful_lam(picture(1.0))
    problem = picture(1.5 * largest)
    done, w, u = spread_from_zero(problem, 1e-6)
    assert done
    assert np.abs(u).max() <= problem.lam * (1 + 1e-12)
    np.testing.assert_allclose(problem.graph.D.T @ u, -problem.f.gradient(w), atol=0.1)


def test_it_says_where_there_are_more_and_stays_feasible() -> None:
    problem = picture(0.1 * ct.largest_useful_lam(picture(1.0)))
    done, _, u = spread_from_zero(problem, 1e-6)
    assert not done
    assert np.abs(u).max() <= problem.lam * (1 + 1e-12)


def test_aiming_at_few_large_clusters_begins_with_it(monkeypatch) -> None:
    problem = picture(1.5 * ct.largest_useful_lam(picture(1.0)))
    w, u = np.full((SIDE**2, 1), problem.data.y.mean()), np.zeros((problem.graph.n_edges, 1))
    together = DualClusters(np.zeros((SIDE**2, 1), dtype=np.int64), np.array([1]))
    monkeypatch.setattr(polish, "MANY", 10)
    seen: list[np.ndarray] = []
    assert polish.aim(problem.bound, together, u, w, problem.f.gradient(w), lambda _, u: seen.append(u) or True) == 0.0
    assert len(seen) == 1
    far = picture(1e-3)
    assert polish.aim(far.bound, together, np.zeros_like(u), w, far.f.gradient(w), lambda *_: False) > polish.HOPELESS
