from __future__ import annotations

import numpy as np
import pytest

from coterie.kernels.norms import lanczos


def dense(edges: np.ndarray, s: np.ndarray, d: np.ndarray) -> np.ndarray:
    """½ T^½ Dᵀ diag(s) D T^½."""
    A = np.zeros((len(d), len(d)))
    for (i, j), strength in zip(edges, s, strict=True):
        row = np.zeros(len(d))
        row[i], row[j] = d[i] ** -0.5, -(d[j] ** -0.5)
        A += 0.5 * strength * np.outer(row, row)
    return A


def problem(V: int = 9, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(V, 1)
    keep = rng.random(len(i)) < 0.5
    edges = np.stack([i[keep], j[keep]], axis=1)
    s = rng.lognormal(size=len(edges))
    d = np.bincount(edges.ravel(), weights=np.repeat(s, 2), minlength=V)
    return edges, s, d, rng.standard_normal(V)


@pytest.mark.parametrize("seed", range(5))
def test_all_steps_give_the_spectrum(seed: int) -> None:
    edges, s, d, x = problem(seed=seed)
    alpha, beta = lanczos(edges, s, d, x, 9)
    T = np.diag(alpha) + np.diag(beta[:-1], 1) + np.diag(beta[:-1], -1)
    np.testing.assert_allclose(np.linalg.eigvalsh(T), np.linalg.eigvalsh(dense(edges, s, d))[-len(T) :], atol=1e-6)


def test_few_steps_are_the_tridiagonal_of_the_krylov_space() -> None:
    edges, s, d, x = problem()
    alpha, beta = lanczos(edges, s, d, x, 4)
    A = dense(edges, s, d)
    Q, _ = np.linalg.qr(np.stack([np.linalg.matrix_power(A, k) @ x for k in range(4)], axis=1))
    T = Q.T @ A @ Q
    np.testing.assert_allclose(alpha, np.diag(T), rtol=1e-9)
    np.testing.assert_allclose(beta[:3], np.abs(np.diag(T, 1)), rtol=1e-8)


def test_it_ends_where_the_space_does() -> None:
    """Two nodes and one edge: the matrix has two eigenvectors."""
    alpha, beta = lanczos(np.array([[0, 1]]), np.ones(1), np.ones(2), np.array([1.0, -1.0]), 16)
    assert len(alpha) == 1
    assert alpha[0] == pytest.approx(1.0)
    assert beta[0] < 1e-12
