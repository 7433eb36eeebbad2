"""Elimination on forests and inverses in place, against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest

import coterie as ct
from coterie.kernels import tree, vector_buffer
from coterie.kernels.compiling import jit
from coterie.kernels.invert import invert, scratch
from coterie.solver.whole.interior import Rooted


@jit
def invert_one(room, A):
    invert(room, scratch(len(room)), A)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 4, 10, 11, 12, 13, 14, 50])
def test_an_inverse_in_place(n: int) -> None:
    B = np.random.default_rng(n).standard_normal((n, n + 5))
    A = B @ B.T + 0.1 * np.eye(n)
    inverse = A.copy()
    invert_one(vector_buffer(n), inverse)
    np.testing.assert_allclose(inverse @ A, np.eye(n), atol=1e-10)
    np.testing.assert_allclose(inverse, inverse.T, rtol=1e-9, atol=1e-12)


def forest(V: int, roots: int, seed: int) -> np.ndarray:
    """Random edges from each node to one before it, in an order of nodes that says nothing."""
    rng = np.random.default_rng(seed)
    name = rng.permutation(V)
    return np.sort([(name[rng.integers(0, k)], name[k]) for k in range(roots, V)], axis=1)


@pytest.mark.parametrize("n", [1, 3, 12])
@pytest.mark.parametrize(("V", "roots"), [(2, 1), (15, 1), (15, 4)])
def test_elimination_solves_the_whole_system(V: int, roots: int, n: int) -> None:
    rng = np.random.default_rng(V + n)
    edges = forest(V, roots, seed=n)
    labelled = np.unique(np.append(rng.choice(V, V // 2), np.arange(roots)))
    data = ct.LocalDatasets.from_rows(np.ones((len(labelled), n)), np.zeros(len(labelled)), labelled, n_nodes=V)
    problem = ct.Problem(ct.EmpiricalGraph.from_edges(edges, n_nodes=V), data)
    rooted = Rooted.of(problem)
    place = np.full(V, -1)
    place[labelled] = np.arange(len(labelled))
    B = rng.standard_normal((len(labelled), n, n))
    H, theta = B @ B.transpose(0, 2, 1) + np.eye(n), rng.lognormal(size=(len(edges), n), sigma=2.0)
    S, x, b = np.empty((V, n, n)), np.empty((V, n)), rng.standard_normal((V, n))
    for component in range(problem.graph.components.max() + 1):  # a tree without labels has no unique answer
        if not np.isin(labelled, np.flatnonzero(problem.graph.components == component)).any():
            b[problem.graph.components == component] = 0.0
    tree.eliminate(vector_buffer(n), rooted.order, rooted.parent, rooted.via, place, H, theta, S)
    tree.substitute(rooted.order, rooted.parent, rooted.via, theta, S, b.copy(), x)
    D = problem.graph.D.toarray()
    product = D.T @ (theta * (D @ x))
    product[labelled] += np.einsum("ikl,il->ik", H, x[labelled])
    np.testing.assert_allclose(product, b, atol=1e-9 * max(1.0, np.abs(b).max()))
