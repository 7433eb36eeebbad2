"""Few nodes with many rows each, as hospitals have: every loss, in NumPy and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import coterie as ct
from any_n import any_n
from problems import EVERY_LOSS, rows_of

GRAPH = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])
TRUTH = np.where(np.arange(6)[:, None] < 3, [1.0, 2.0, 0.0], [-1.0, 0.0, 1.0])


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_many_rows_are_certified_in_both_forms(loss: ct.Loss) -> None:
    X, y, nodes = rows_of(loss, TRUTH, 60, np.random.default_rng(0))
    y[nodes == 4] = np.nan
    data = ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=6)
    problem = ct.Problem(GRAPH, data, loss, lam=0.02)
    one, other = (ct.solve(problem, 1e-6, engine=engine) for engine in ("numpy", any_n()))
    assert one.status.name == other.status.name == "OPTIMAL"
    assert one.objective == pytest.approx(other.objective, rel=2e-6)
