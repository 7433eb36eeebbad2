"""Tables with far more columns than rows cost what their thin factors cost."""

from __future__ import annotations

import tracemalloc
from itertools import product

import numpy as np
import pytest

import coterie as ct
from problems import EVERY_PENALTY


def wide(n: int, m: int, loss: ct.Loss, penalty: ct.Penalty, V: int = 6) -> ct.Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((V * m, n))
    y = X[:, :5].sum(axis=1) + 0.3 * rng.standard_normal(V * m)
    y = (y > 0).astype(float) if isinstance(loss, ct.Logistic) else y
    ring = ct.EmpiricalGraph.from_edges([(i, (i + 1) % V) for i in range(V)])
    data = ct.LocalDatasets.from_rows(X, y, np.repeat(np.arange(V), m))
    return ct.Problem(ring, data, loss=loss, penalty=penalty, lam=0.01)


LOSSES = (ct.Logistic(ridge=1e-3), ct.Logistic(ridge=1e-3, unpenalised=(0,)), ct.Lasso(0.05))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "penalty", "engine"),
    [*product(LOSSES, EVERY_PENALTY, ["numpy"]), (LOSSES[-1], EVERY_PENALTY[-1], "numba")],
    ids=str,
)
def test_no_matrix_of_all_columns_is_made(loss: ct.Loss, penalty: ct.Penalty, engine: str) -> None:
    n = 1100  # too many weights for second-order steps
    if engine == "numba":
        ct.solve(wide(n, 5, loss, penalty), 1e-4, max_iter=2000, engine=engine)  # compiles, which takes memory as well
    tracemalloc.start()
    try:
        solution = ct.solve(wide(n, 5, loss, penalty), 1e-4, max_iter=2000, engine=engine)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert solution.gap <= 1e-4
    assert peak < 3 * 8 * n * n  # one for each node would be six


def test_weights_by_rows_are_those_by_columns() -> None:
    """Repeating every row of a node changes nothing but the number of rows, and with it the way of solving."""
    loss, penalty = ct.Logistic(ridge=1e-2, unpenalised=(3,)), ct.TotalVariation()
    few = wide(48, 8, loss, penalty)
    X, y, nodes = np.repeat(few.data.X, 5, axis=0), np.repeat(few.data.y, 5), np.repeat(few.data.nodes, 5)
    many = ct.Problem(few.graph, ct.LocalDatasets.from_rows(X, y, nodes), loss=loss, penalty=penalty, lam=few.lam)
    one, other = ct.solve(few, 1e-9), ct.solve(many, 1e-9)
    assert one.objective == pytest.approx(other.objective, rel=1e-8)
    np.testing.assert_allclose(one.w, other.w, atol=1e-4)


def test_rows_that_are_fewer_than_columns_separate_their_classes_at_once() -> None:
    with pytest.warns(ct.NotConverged, match="The classes can be separated"):
        solution = ct.solve(wide(300, 5, ct.Logistic(), ct.TotalVariation()))
    assert solution.status is ct.Status.CONDITIONAL
    assert solution.n_iter == 0
    assert solution.dual_bound == 0.0
    assert solution.objective < 1e-12


def test_contradicting_rows_are_not_separated() -> None:
    """The same row with both labels: the loss has an infimum above 0, and nobody claims otherwise."""
    few = wide(20, 5, ct.Logistic(), ct.TotalVariation())
    X, y, nodes = np.vstack([few.data.X, few.data.X[:1]]), np.append(few.data.y, 1 - few.data.y[0]), few.data.nodes
    data = ct.LocalDatasets.from_rows(X, y, np.append(nodes, 0))
    with pytest.warns(ct.NotConverged, match="only under a condition"):
        solution = ct.solve(ct.Problem(few.graph, data, loss=ct.Logistic(), lam=0.01), 1e-3, max_iter=3000)
    assert solution.objective >= 2 * np.log(2) / 6 - 1e-9
    assert solution.dual_bound <= solution.objective
