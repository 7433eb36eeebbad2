"""Each pass over the edges against a loop that anyone can read."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.kernels import flow, laplacian, static_int, unseen, vector_buffer
from coterie.kernels.edges import L1, L2, SQUARED

EDGES = np.array([[0, 1], [0, 3], [1, 2], [2, 3], [2, 4]])  # node 5 has none
V = 6
C = np.array([0.5, 1.0, 2.0, 0.1, 3.0])

kinds = pytest.mark.parametrize("kind", [L1, L2, SQUARED], ids=["L1", "L2", "squared"])
sizes = pytest.mark.parametrize("n", [1, 3, 20])


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def shares(n: int) -> np.ndarray:
    return np.random.default_rng(3).uniform(0, 2, (len(EDGES), n)).astype(np.float32)


@sizes
def test_divergence(n: int) -> None:
    u, out = random(len(EDGES), n), np.full((V, n), np.nan)
    flow.divergence(EDGES, u, out)
    expected = np.zeros((V, n))
    for e, (i, j) in enumerate(EDGES):
        expected[i] += u[e]
        expected[j] -= u[e]
    np.testing.assert_allclose(out, expected, rtol=1e-14, atol=1e-14)


@kinds
@sizes
def test_variation(kind: int, n: int) -> None:
    w = random(V, n)
    size = {L1: lambda d: sum(abs(d)), L2: lambda d: sum(d**2) ** 0.5, SQUARED: lambda d: sum(d**2)}[kind]
    expected = sum(c * size(w[i] - w[j]) for c, (i, j) in zip(C, EDGES, strict=True))
    assert flow.variation(kind, EDGES, C, w) == pytest.approx(expected, rel=1e-14)


@kinds
@sizes
def test_slack_weights(kind: int, n: int) -> None:
    u = random(len(EDGES), n)
    u[0] = 0.0
    S = np.zeros((len(EDGES), n), dtype=np.float32)
    S[1] = flow.PUSHED
    flow.slack_weights(kind, C, u, S)
    for e in range(len(EDGES)):
        least = flow.PUSHED_WEIGHT if e == 1 else flow.LEAST_WEIGHT
        for k in range(n):
            used = {L1: abs(u[e, k]), L2: sum(u[e] ** 2) ** 0.5, SQUARED: 0.0}[kind]
            assert S[e, k] == pytest.approx(max(C[e] - used, least * C[e]), rel=1e-6)


@sizes
def test_saturate_cuts(n: int) -> None:
    w = np.random.default_rng(1).integers(0, 2, (V, n)).astype(float)
    u, fixed = random(len(EDGES), n), np.zeros((len(EDGES), n), dtype=bool)
    before = u.copy()
    flow.saturate_cuts(EDGES, C, w, u, fixed)
    for e, (i, j) in enumerate(EDGES):
        for k in range(n):
            if w[i, k] == w[j, k]:
                assert (u[e, k], fixed[e, k]) == (before[e, k], False)
            else:
                assert (u[e, k], fixed[e, k]) == (C[e] * np.sign(w[i, k] - w[j, k]), True)


@pytest.mark.slow
@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("grounded", [False, True])
@sizes
def test_laplacian_and_its_diagonal(n: int, grounded: bool, far: bool) -> None:
    S, x = shares(n), random(V, n)
    ground = np.abs(random(V, n, seed=7)) if grounded else laplacian.NO_GROUND
    out, diagonal = np.full((V, n), np.nan), np.full((V, n), np.nan)
    laplacian.apply(static_int(far), EDGES, S, ground, x, out)
    laplacian.diagonal(EDGES, S, ground, diagonal)
    D = np.zeros((len(EDGES), V))
    for e, (i, j) in enumerate(EDGES):
        D[e, i], D[e, j] = 1.0, -1.0
    for k in range(n):
        L = D.T @ np.diag(S[:, k].astype(float)) @ D
        if grounded:
            L += np.diag(ground[:, k])
        np.testing.assert_allclose(out[:, k], L @ x[:, k], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(diagonal[:, k], np.diag(L), rtol=1e-12)


def moved(S: np.ndarray, potential: np.ndarray, u: np.ndarray) -> np.ndarray:
    """u − SDφ."""
    return np.array([u[e] - S[e].astype(float) * (potential[i] - potential[j]) for e, (i, j) in enumerate(EDGES)])


def lengths(kind: int, u: np.ndarray) -> np.ndarray:
    """Of each coordinate of each edge, or of the whole edge, as the penalty measures it."""
    return np.abs(u) if kind == L1 else np.linalg.norm(u, axis=1)[:, None]


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("factor", [1.0, 1.7])
@kinds
@sizes
def test_correct(kind: int, n: int, factor: float, far: bool) -> None:
    u, S, potential = random(len(EDGES), n), shares(n), random(V, n, seed=5)
    expected = moved(S, potential, u) / factor
    outside = lengths(kind, expected) > C[:, None]
    if kind != SQUARED:
        expected *= np.minimum(1.0, C[:, None] / lengths(kind, expected))
    flow.correct(static_int(min(n, 8)), kind, static_int(far), EDGES, C, S, potential, factor, u)
    np.testing.assert_allclose(u, expected, rtol=1e-12, atol=1e-13)
    if kind != SQUARED:
        np.testing.assert_array_equal((S == flow.PUSHED)[:, : outside.shape[1]], outside)


@pytest.mark.parametrize("far", [False, True])
@kinds
@sizes
def test_stretch(kind: int, n: int, far: bool) -> None:
    u, S, potential = random(len(EDGES), n), shares(n), random(V, n, seed=5)
    needed = 1.0 if kind == SQUARED else max(1.0, (lengths(kind, moved(S, potential, u)) / C[:, None]).max())
    assert flow.stretch(static_int(min(n, 8)), kind, static_int(far), EDGES, C, S, potential, u) == pytest.approx(
        needed, rel=1e-13
    )
    assert flow.stretch(static_int(min(n, 8)), kind, static_int(far), EDGES, 1e3 * C, S, potential, u) == 1.0


@sizes
def test_keep_flat(n: int) -> None:
    place = np.array([-1, 1, -1, 0, 2, -1])
    rows = np.zeros((3, 2, n))
    rows[0] = np.linalg.qr(random(n, n))[0][:2] if n > 1 else [[1.0], [0.0]]
    rows[1, 0] = random(n) / np.linalg.norm(random(n))  # one row, and one of zeros; the third node sees nothing
    x = random(V, n, seed=2)
    expected = x.copy()
    for i, row in enumerate(place):
        if row >= 0:
            for b in rows[row]:
                expected[i] -= b * (b @ x[i])
    unseen.leave(vector_buffer(n), np.array([3, 1, 4]), rows, x, x)
    np.testing.assert_allclose(x, expected, rtol=1e-12, atol=1e-14)


def test_no_edges() -> None:
    none, out = np.empty((0, 2), dtype=np.int64), np.ones((V, 2))
    flow.divergence(none, np.empty((0, 2)), out)
    np.testing.assert_array_equal(out, 0.0)
    assert flow.variation(L1, none, np.empty(0), np.ones((V, 2))) == 0.0
