"""One node between neighbours that stay: against CVXPY + Clarabel, and by hand."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coterie as ct
from coterie.estimators.fit_given_neighbours import fit_given_neighbours
from problems import EVERY_PENALTY, FIRST_LOSSES, bound_rows, case_of, rows_of_node


def objective(w, at, c, penalty, loss=None, rows=None):
    total = sum(c_j * case_of(penalty).naive(w - at_j) for at_j, c_j in zip(at, c, strict=True))
    return total if loss is None else total + case_of(loss).naive(loss, *rows_of_node(rows, 0), w)


def oracle(at, c, penalty, loss=None, rows=None):
    w = cp.Variable((1, at.shape[1]))
    goal = case_of(penalty).convex(np.ones((len(at), 1)) @ w - at, c)
    if loss is not None:
        X, y = rows_of_node(rows, 0)
        m = np.full(len(y), len(y))
        goal += case_of(loss).convex(loss, cp.sum(cp.multiply(X, np.ones((len(y), 1)) @ w), axis=1), y, m, w)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "solution may be inaccurate": its value is computed again
        asked = cp.Problem(cp.Minimize(goal))
        try:
            asked.solve(cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        except cp.SolverError:
            asked.solve(cp.CLARABEL)
    return w.value[0]


@pytest.mark.parametrize("penalty", EVERY_PENALTY)
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("spread", [1e-3, 1.0, 1e3])
def test_without_rows(penalty, k, spread):
    rng = np.random.default_rng(k)
    at, c = 3 + spread * rng.standard_normal((k, 3)), rng.uniform(0.1, 2, k)
    w, best = fit_given_neighbours(at, c, penalty), oracle(at, c, penalty)
    assert objective(w, at, c, penalty) <= objective(best, at, c, penalty) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("penalty", EVERY_PENALTY)
@pytest.mark.parametrize("loss", FIRST_LOSSES)
@pytest.mark.parametrize("m", [1, 6])
@pytest.mark.parametrize("lam", [1e-3, 0.3, 1e2])
def test_with_rows(penalty, loss, m, lam):
    rng = np.random.default_rng(7)
    at, c = rng.standard_normal((4, 3)), lam * rng.uniform(0.5, 2, 4)
    rows = bound_rows(loss, (m,))
    w, best = fit_given_neighbours(at, c, penalty, loss.bind(rows)), oracle(at, c, penalty, loss, rows)
    mine, peer = objective(w, at, c, penalty, loss, rows), objective(best, at, c, penalty, loss, rows)
    assert mine <= peer * (1 + 1e-7) + 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("penalty", EVERY_PENALTY)
@pytest.mark.parametrize("loss", FIRST_LOSSES)
def test_many_neighbours_and_features(penalty, loss):
    rng = np.random.default_rng(0)
    at, c = 30 * rng.standard_normal((25, 8)), rng.uniform(0.1, 2, 25)
    rows = bound_rows(loss, (4,), n=8)
    w, best = fit_given_neighbours(at, c, penalty, loss.bind(rows)), oracle(at, c, penalty, loss, rows)
    mine, peer = objective(w, at, c, penalty, loss, rows), objective(best, at, c, penalty, loss, rows)
    assert mine <= peer * (1 + 1e-8)


@pytest.mark.parametrize("c", [np.array([1.0, 1.0, 1.0, 1.0]), np.array([2.0, 1.0, 1.0, 2.0])])
def test_a_tie_of_medians_is_settled_in_the_middle(c):
    at = np.array([[0.0], [1.0], [3.0], [10.0]])
    assert fit_given_neighbours(at, c, ct.TotalVariation()) == pytest.approx([2.0])


def test_a_heavy_neighbour_is_the_median():
    at = np.array([[0.0, 5.0], [1.0, 1.0], [3.0, 7.0]])
    assert fit_given_neighbours(at, np.array([1.0, 1.0, 2.5]), ct.TotalVariation()).tolist() == [3.0, 7.0]


def test_known_medians_and_means():
    corners = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    assert fit_given_neighbours(corners, np.ones(4), ct.GroupTotalVariation()) == pytest.approx([1.0, 1.0], abs=1e-8)
    assert fit_given_neighbours(corners, np.array([1.0, 1.0, 1.0, 3.0]), ct.SquaredVariation()) == pytest.approx(
        [8 / 6, 8 / 6]
    )
    line = np.array([[0.0, 0.0], [1.0, 1.0], [5.0, 5.0]])
    assert fit_given_neighbours(line, np.ones(3), ct.GroupTotalVariation()) == pytest.approx([1.0, 1.0], abs=1e-8)


@given(
    at=st.lists(st.integers(-4, 4), min_size=1, max_size=7),
    c=st.lists(st.sampled_from([0.1, 0.3, 1.0, 2.0]), min_size=7, max_size=7),
)
def test_a_median_is_never_beaten(at, c):
    points, strengths = np.array(at, dtype=float)[:, None], np.array(c[: len(at)])
    w = fit_given_neighbours(points, strengths, ct.TotalVariation())
    best = min(objective(p, points, strengths, ct.TotalVariation()) for p in points)
    assert objective(w, points, strengths, ct.TotalVariation()) <= best + 1e-9


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("apart", [0.0, 1e-6, 1e-3])
def test_a_geometric_median_among_points_that_nearly_coincide(seed, apart):
    rng = np.random.default_rng(seed)
    at, c = 500 * rng.standard_normal((5, 4)), 10 ** rng.uniform(-1, 1, 5)
    at[:3] = at[0] + apart * rng.standard_normal((3, 4))
    w = fit_given_neighbours(at, c, ct.GroupTotalVariation())
    value = objective(w, at, c, ct.GroupTotalVariation())
    rivals = [oracle(at, c, ct.GroupTotalVariation()), *at]
    assert value <= min(objective(v, at, c, ct.GroupTotalVariation()) for v in rivals) * (1 + 1e-9)
