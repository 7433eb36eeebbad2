import numpy as np
import pytest
from comparison import assert_same
from hypothesis import given
from hypothesis import strategies as st

import coterie as ct
from coterie.io.moments import Moments


@st.composite
def rows(draw, n=None):
    """Rows of a few nodes: also single rows, repeated rows, constant and dependent columns, missing labels."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = n or draw(st.integers(1, 4))
    N = draw(st.integers(1, 40))
    X = rng.standard_normal((N, n)) * 10.0 ** rng.integers(-3, 4, n)
    if draw(st.booleans()):
        X[:, 0] = X[:, -1]
    if draw(st.booleans()):
        X = np.round(X)
    if draw(st.booleans()):
        X[:, -1] = 1.0
    y = rng.standard_normal(N)
    y[rng.random(N) < draw(st.sampled_from([0.0, 0.3]))] = np.nan
    return X, y, rng.integers(0, draw(st.integers(1, 6)), N)


def loss_of(X, y, w):
    return ((y - X @ w) ** 2).mean()


@given(rows(), st.booleans(), st.integers(0, 100))
def test_condensed_rows_have_the_loss_of_the_rows(data, fit_intercept, seed):
    X, y, nodes = data
    condensed = Moments.of(X, y, nodes).datasets(6, fit_intercept).labelled
    Z = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    labelled = ~np.isnan(y)
    np.testing.assert_array_equal(condensed.M, np.unique(nodes[labelled]))
    rng = np.random.default_rng(seed)
    for k, i in enumerate(condensed.M):
        of = labelled & (nodes == i)
        part = slice(*condensed.starts[k : k + 2])
        assert condensed.m[k] <= min(of.sum(), X.shape[1] + 2)
        assert condensed.weights[part].sum() == pytest.approx(of.sum())
        for w in rng.standard_normal((3, Z.shape[1])) / np.maximum(np.abs(Z).max(axis=0), 1e-9):
            expected = loss_of(Z[of], y[of], w)
            scale = (y[of] ** 2).mean() + ((Z[of] * w) ** 2).sum(axis=1).mean()
            assert abs(loss_of(condensed.X[part], condensed.y[part], w) - expected) <= 1e-12 * scale


@given(rows(n=2), rows(n=2), rows(n=2))
def test_merging_is_the_moments_of_all_rows_in_any_grouping(a, b, c):
    whole = Moments.of(*(np.concatenate(parts) for parts in zip(a, b, c, strict=True)))
    first, second, third = (Moments.of(*part) for part in (a, b, c))
    for merged in (first.merge(second).merge(third), first.merge(second.merge(third))):
        assert merged.ids == first.merge(second).merge(third).ids
        assert_same(merged, whole)


def test_sizes_are_root_mean_squares():
    X, y = np.array([[1.0, 10.0], [2.0, -20.0], [3.0, 30.0], [9.0, 9.0]]), np.array([1.0, 2.0, 2.0, np.nan])
    expected = np.sqrt((np.column_stack([X, y])[:3] ** 2).mean(axis=0))
    np.testing.assert_allclose(Moments.of(X, y, [0, 1, 1, 0]).sizes, expected)


def test_moments_of_different_width_are_not_merged():
    one, two = (Moments.of(np.ones((2, n)), [1.0, 2.0], [0, 1]) for n in (1, 2))
    with pytest.raises(ValueError, match="1 and of 2 features"):
        one.merge(two)


def test_a_large_offset_costs_nothing():
    rng = np.random.default_rng(0)
    small = rng.integers(-1000, 1000, (500, 3)) / 64  # still exact after adding the offset
    X, y, nodes = small[:, :2] + 1e8, small[:, 2] + 1e6, rng.integers(0, 5, 500)
    plain, moved = Moments.of(small[:, :2], small[:, 2], nodes), Moments.of(X, y, nodes)
    np.testing.assert_allclose(moved.comoments, plain.comoments, rtol=0, atol=1e-12 * plain.comoments.max())
    np.testing.assert_allclose(moved.mean - [1e8, 1e8, 1e6], plain.mean, atol=1e-7)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    "loss",
    [
        ct.SquaredError(),
        ct.SquaredError(ridge=0.1, unpenalised=(0,)),
        ct.SquaredError("sum"),
        ct.Lasso(0.05),
    ],
)
def test_solving_from_condensed_rows_is_solving_from_rows(loss, fit_intercept):
    rng = np.random.default_rng(1)
    graph = ct.EmpiricalGraph.from_edges([(i, (i + 1) % 12) for i in range(12)])
    nodes = rng.integers(0, 12, 300)
    nodes = np.append(nodes[(nodes != 11) & (nodes != 4)], 4)  # none for node 11, one for node 4
    X = rng.normal([0, 5, 0], size=(len(nodes), 3))
    y = np.where(nodes < 6, X @ [1, 2, 0], X @ [-1, 0, 1]) + 0.1 * rng.standard_normal(len(nodes)) + 2
    Z = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    problem = ct.Problem(graph, ct.LocalDatasets.from_rows(Z, y, nodes, 12), loss, lam=0.05)
    whole = ct.solve(problem, tol=1e-9)
    data = Moments.of(X, y, nodes).datasets(graph, fit_intercept)
    few = ct.solve(ct.Problem(graph, data, loss, lam=0.05), tol=1e-9)
    assert len(data.X) <= 11 * 5
    for solution in (whole, few):
        assert solution.gap <= 1e-9
        assert solution.unconditional
    assert few.objective == pytest.approx(whole.objective, rel=3e-9)
    assert problem.objective(few.w) == pytest.approx(few.objective, rel=1e-12)


def test_what_no_weights_explain_survives_an_offset():
    rng = np.random.default_rng(2)
    x = 1e4 + rng.standard_normal(300)
    X, y, nodes = (
        np.column_stack([x, np.ones(300)]),
        1e6 + 3 * x + 0.01 * rng.standard_normal(300),
        np.repeat([0, 1], 150),
    )
    rows = ct.LocalDatasets.from_rows(X, y, nodes).labelled
    condensed = Moments.of(x[:, None], y, nodes).datasets(2, fit_intercept=True).labelled
    whole, few = (ct.SquaredError().bind(labelled) for labelled in (rows, condensed))
    np.testing.assert_allclose(few.floor, whole.floor, rtol=1e-5)
    np.testing.assert_allclose(few.centre, whole.centre, rtol=1e-5)


def test_nodes_go_where_the_graph_has_them():
    graph = ct.EmpiricalGraph(3, np.array([[0, 1], [1, 2]]), np.ones(2), ids=("a", "b", "c"))
    data = Moments.of([[1.0], [2.0], [3.0]], [1.0, np.nan, 3.0], ["c", "b", "a"]).datasets(graph)
    np.testing.assert_array_equal(data.labelled.M, [0, 2])
    np.testing.assert_allclose(data.X[:, 0] * np.sign(data.X[:, 0]), [3, 1])
    with pytest.raises(ValueError, match="'d'"):
        Moments.of([[1.0]], [np.nan], ["d"]).datasets(graph)


def test_no_labels_at_all_is_no_rows():
    data = Moments.of([[1.0], [2.0]], [np.nan, np.nan], [0, 1]).datasets(3, fit_intercept=True)
    assert data.X.shape == (0, 2)
    assert data.n_nodes == 3
