"""Models whose curvature is a diagonal and few rows: the same as with the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest

import coterie as ct
from coterie.kernels import nodes, thin_model, vector_buffer
from coterie.kernels.model import model_fall
from coterie.kernels.reference import thin_model as plain


def drawn(n: int, rank: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Steps τ, the diagonal h, rows Z, and H = diag(h) + ZᵀZ of five nodes."""
    rng = np.random.default_rng(seed)
    tau, h, Z = rng.lognormal(sigma=3, size=5), rng.uniform(0.01, 1.0, n), rng.standard_normal((5, rank, n))
    Z[1], Z[2, -1] = 0.0, Z[2, 0]
    return tau, h, Z, np.diag(h) + Z.transpose(0, 2, 1) @ Z


@pytest.mark.parametrize(("n", "rank"), [(2, 1), (15, 6), (33, 16)])
def test_what_is_kept_is_the_inverse(n: int, rank: int) -> None:
    tau, h, Z, H = drawn(n, rank)
    R = np.linalg.inv(np.eye(n) + tau[:, None, None] * H)
    for module in (thin_model, plain):
        Y, keep = np.empty_like(Z), np.empty((5, n))
        stiffest = module.thin_share(tau, h, Z, Y, keep)
        found = keep[:, :, None] * np.eye(n) - Y.transpose(0, 2, 1) @ Y
        np.testing.assert_allclose(found, R, rtol=1e-8, atol=1e-12)
        stiff = np.linalg.eigvalsh(tau[:, None, None] * Z @ (keep[:, :, None] * Z.transpose(0, 2, 1)))
        assert stiff.max() <= stiffest * (1 + 1e-9) <= rank * stiff.max() * (1 + 1e-6)


def test_long_steps_and_equal_rows_leave_what_no_row_sees() -> None:
    """Beside that curvature one is rounding, and nothing can be factorised that had to have it left."""
    Z = np.zeros((1, 3, 6))
    Z[0, :2, :2], Z[0, 2, 2] = 1.0, 1.0
    for module in (thin_model, plain):
        Y, keep = np.empty_like(Z), np.empty((1, 6))
        module.thin_share(np.array([1e17]), np.zeros(6), Z, Y, keep)
        found = keep[0] * np.eye(6) - Y[0].T @ Y[0]
        np.testing.assert_allclose(found[3:, 3:], np.eye(3), atol=1e-12)
        np.testing.assert_allclose(np.linalg.eigvalsh(found), [0, 0, 1, 1, 1, 1], atol=1e-6)


@pytest.mark.parametrize(("n", "rank"), [(2, 1), (15, 6)])
def test_falls_are_those_of_the_whole_matrix(n: int, rank: int) -> None:
    _, h, Z, H = drawn(n, rank)
    pull = np.random.default_rng(1).standard_normal((5, n))
    whole = model_fall(vector_buffer(n), H.copy(), pull)
    for module in (thin_model, plain):
        assert module.thin_fall(h, Z, pull) == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize(("n", "rank"), [(2, 1), (15, 6)])
def test_curvatures_of_groups_are_sums_of_whole_matrices(n: int, rank: int) -> None:
    _, h, Z, H = drawn(n, rank)
    group = np.array([2, 0, 2, 2, 0])
    whole = [H[group == g].sum(axis=0) for g in range(4)]  # of a group without nodes: nothing
    for module in (thin_model, plain):
        found = np.full((4, n, n), np.nan)
        module.add_thin(h, Z, group, found)
        np.testing.assert_allclose(found, whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("move", [False, True])
@pytest.mark.parametrize("g", [0.0, 0.3])
def test_a_pass_moves_nodes_as_the_whole_matrix_does(g: float, move: bool) -> None:
    tau_M, h, Z, H = drawn(15, 6)
    rng, place = np.random.default_rng(2), np.array([-1, 3, 0, 1, -1, 2, 4])
    tau = rng.lognormal(size=7)
    tau[place >= 0] = tau_M[place[place >= 0]]
    w, w0, xs = rng.standard_normal((7, 15)), rng.standard_normal((7, 15)), rng.standard_normal((7, 2, 15))
    centre, slope = rng.standard_normal((2, 5, 15))
    R = np.linalg.inv(np.eye(15) + tau_M[:, None, None] * H)
    Y, keep = np.empty_like(Z), np.empty((5, 15))
    thin_model.thin_share(tau_M, h, Z, Y, keep)
    moving = 0.9, 0.4, g, move
    none2, none3, rooms = np.empty((0, 0)), np.empty((0, 0, 0)), (np.empty(15), np.empty(15))
    kernel, room = thin_model.node_kernel(15)
    assert kernel is thin_model.short_node_pass
    thin, found = (tau, place, Y, keep, centre, slope), []
    for one, at in ((kernel, room()), (thin_model.thin_node_pass, rooms)):
        found.append((w.copy(), xs.copy()))
        one(*at, 0, 7, *thin, found[-1][0], w0, found[-1][1], *moving)
    nodes.node_pass(*rooms, 0, 7, tau, place, False, none3, none2, R, centre, slope, w, w0, xs, *moving)
    for w_thin, xs_thin in found:
        np.testing.assert_allclose(w_thin, w, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(xs_thin, xs, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("ridge", [0.0, 0.02])
def test_thin_and_whole_models_reach_the_same_answer(engine: str, ridge: float) -> None:
    """Two rows for every node of five columns are few, four are not."""
    rng, answers = np.random.default_rng(3), []
    graph = ct.EmpiricalGraph.from_edges([(i, j) for i in range(12) for j in range(i) if (i - j) % 5 < 2])
    X, y = rng.standard_normal((24, 5)), np.arange(24) % 3.0
    twice = [np.repeat(part, 2, axis=0) for part in (X, y, np.repeat(np.arange(12), 2))]
    for rows in ((X, y, np.repeat(np.arange(12), 2)), twice):
        problem = ct.Problem(graph, ct.LocalDatasets.from_rows(*rows), ct.Multinomial(3, ridge=ridge), lam=0.1)
        is_thin = problem.bound.f.thin_model(np.zeros((12, 15)), None) is not None
        answers.append((is_thin, ct.solve(problem, tol=1e-6, engine=engine)))
    assert [is_thin for is_thin, _ in answers] == [True, False]
    (_, one), (_, other) = answers
    assert one.gap <= 1e-6
    assert abs(one.objective - other.objective) <= 2e-6 * one.objective
