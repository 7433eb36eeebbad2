"""Other solvers are given the problem that Coterie solves, whatever the loss."""

import numpy as np
import pytest

import coterie as ct
from benchmarks.losses import FAMILIES, LOSSES
from benchmarks.peers import cvxpy_problem
from coterie.solver.whole import polish


@pytest.mark.parametrize("name", LOSSES)
def test_objectives_agree(name):
    problem = FAMILIES["c"](0.002, loss=LOSSES[name])
    asked, shape = cvxpy_problem(problem)
    w = 0.5 * np.random.default_rng(0).standard_normal(shape)
    w = np.abs(w) if problem.loss.positive else w
    (x,) = asked.variables()
    x.value = w.ravel()
    assert float(asked.objective.value) == pytest.approx(problem.objective(w), rel=1e-9)
    x.value = -w.ravel()
    assert all(limit.value() for limit in asked.constraints) == bool(np.isfinite(problem.objective(-w)))


def test_outliers_end_on_clusters(monkeypatch):
    """Rows on straight lines would send clusters away, were they without a part of their secants."""
    problem = FAMILIES["c"](0.4, loss=LOSSES["huber"])
    solution = ct.solve(problem, 1e-6, engine="numba")
    monkeypatch.setattr(polish, "SECANTS", 0.0)
    assert solution.gap <= 1e-6
    assert solution.n_iter < ct.solve(problem, 1e-6, engine="numba").n_iter
