"""Nodes with far more rows than columns, whose duals are dependent: both forms of ascent beside interior points."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from coterie.kernels import kinks as compiled
from coterie.kernels import vector_buffer
from coterie.kernels.reference import interior_point, kinks


@pytest.mark.parametrize("form", [kinks, compiled], ids=["numpy", "compiled"])
@pytest.mark.parametrize("m", [8, 20, 100, 400])
def test_long_nodes_settle_where_interior_points_end(form: ModuleType, m: int) -> None:
    rng = np.random.default_rng(m)
    V, n = 4, 5
    nodes, starts = np.repeat(np.arange(V), m), np.arange(V + 1) * m
    X, w = rng.standard_normal((V * m, n)), rng.standard_normal((V, n))
    y = (X * w[nodes]).sum(axis=1) + rng.standard_normal(V * m)
    low, high = np.full(V * m, -0.3 / m), np.full(V * m, 0.7 / m)
    D, c = np.full((V, n), 2.0), w + 0.1 * rng.standard_normal((V, n))
    b, found, expected = np.zeros(V * m), np.empty((V, n)), np.empty((V, n))
    for move in (0.0, 1e-3):  # from nothing, and from the duals of a problem nearby
        interior_point.interior_point(X, y, starts, D, c + move, low, high, np.empty(V * m), expected)
        room, give = vector_buffer(n), np.zeros(V * m)
        assert form.box_ascent(room, X, y, starts, D, c + move, low, high, give, b, found, 1e-12, 200).all()
        np.testing.assert_allclose(found, expected, atol=1e-9)
        assert ((low <= b) & (b <= high)).all()


def test_duals_next_to_a_bound_are_at_it() -> None:
    low, high = np.array([-1.0, -1.0, 0.0, -np.inf]), np.array([2.0, 2.0, 0.0, 1.0])
    b = np.array([-1.0 + 1e-8, 1.0, 0.0, 0.5])
    np.testing.assert_array_equal(kinks.at_ends(b, low, high), [-1.0, 1.0, 0.0, 0.5])
