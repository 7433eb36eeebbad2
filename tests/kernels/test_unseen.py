"""The best step that rows do not see, against bases of what they do not see; compiled, for any n, and NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import null_space

from coterie.kernels import unseen
from coterie.kernels.reference import unseen as plain


@pytest.mark.parametrize("n", [2, 5, 12])
@pytest.mark.parametrize("form", ["this n", "any n", "NumPy"])
def test_the_best_step_that_rows_do_not_see(n: int, form: str) -> None:
    rng = np.random.default_rng(n)
    nodes, rows = np.array([0, 2, 3, 6]), rng.standard_normal((4, 3, n))
    rows[1, 2], rows[2, 1] = 0.0, -2 * rows[2, 0]  # fewer rows; the same row twice
    diagonal = 10 ** rng.uniform(-6, 6, (7, n))
    inverse, r = 1 / diagonal, rng.standard_normal((7, n))
    expected = inverse * r
    for i, Q in zip(nodes, rows, strict=True):
        N = null_space(Q, rcond=1e-12)
        root = np.sqrt(diagonal[i])[:, None]
        B = np.linalg.qr(root * N)[0] / root  # BᵀDB = I
        expected[i] = B @ (B.T @ r[i])
    module, room = (plain, None) if form == "NumPy" else (unseen, (0.0,) * n if form == "this n" else np.empty(n))
    F, z = np.empty_like(rows), inverse * r
    module.factorise(room, nodes, rows, inverse, F)
    module.leave(room, nodes, F, r, z)
    scale = np.sqrt(inverse * (inverse * r**2).sum(axis=1, keepdims=True))  # of z, coordinate by coordinate
    assert (np.abs(z - expected) <= 1e-9 * scale).all()


def test_where_nothing_joins_a_node_its_step_is_zero() -> None:
    rows, inverse = np.ones((1, 1, 2)), np.zeros((1, 2))
    F, r = np.empty_like(rows), np.ones((1, 2))
    for module in (unseen, plain):
        z = inverse * r
        module.factorise((0.0, 0.0), np.array([0]), rows, inverse, F)
        module.leave((0.0, 0.0), np.array([0]), F, r, z)
        np.testing.assert_array_equal(z, 0.0)
