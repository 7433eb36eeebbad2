import numpy as np
import pandas as pd
import pytest
from towns import EDGES, PLAIN, TOWNS, empirical, labels_for, names, quick, rows

import coterie as ct


def fitted(model=ct.NetworkedLinearRegression, **parameters):
    X, y, nodes = rows()
    return quick(model, empirical(), **{"standardize": False} | parameters).fit(X, labels_for(model, y), names(nodes))


def test_without_rows_it_is_the_median_of_the_neighbours():
    model = fitted(lam=1e-3)
    w = np.column_stack([model.coef_, model.intercept_])
    coef, intercept = model.weights_for(["a1", "a2", "b3"])
    assert [*coef, intercept] == pytest.approx(np.median(w[[0, 1, 5]], axis=0).tolist())
    coef, intercept = model.weights_for({"a1": 1.0, "b1": 1.0, "b3": 5.0})
    assert [*coef, intercept] == pytest.approx(w[5].tolist())
    assert (model.weights_for(["a2"]).coef == model.coef_[1]).all()


def test_without_rows_it_is_the_mean_of_squared_variation():
    model = fitted(penalty="squared")
    coef, intercept = model.weights_for({"a1": 1.0, "b1": 3.0})
    assert coef == pytest.approx((model.coef_[0] + 3 * model.coef_[3]) / 4)
    assert intercept == pytest.approx((model.intercept_[0] + 3 * model.intercept_[3]) / 4)


@pytest.mark.parametrize("model", PLAIN)
@pytest.mark.parametrize("penalty", ["l1", "l2", "squared"])
def test_with_rows_nothing_better_can_be_found(model, penalty):
    """The whole objective, as a function of the new node's weights alone, has its minimum there."""
    old = fitted(model, penalty=penalty)
    X, y, _ = rows(m=1, seed=9)
    y = labels_for(model, y)
    joined = {"a1": 1.0, "a3": 0.5, "b2": 2.0}
    coef, intercept = old.weights_for(joined, X, y)
    grown = fitted(model, penalty=penalty)
    grown.add_nodes({"new": joined}, X, y, ["new"] * len(y))
    w = np.vstack([np.column_stack([old.coef_, old.intercept_]), [*coef, intercept]])
    at = grown.problem_.objective(w)
    rng = np.random.default_rng(0)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(50):
            other = w.copy()
            other[-1] += size * rng.standard_normal(3)
            assert grown.problem_.objective(other) >= at - 1e-9


def test_at_lam_zero_the_rows_alone_decide():
    model = fitted(lam=0.0)
    X, y, _ = rows(m=2, seed=9)
    peer = ct.NetworkedLinearRegression().fit(X, y)
    assert model.weights_for(["a1"], X, y).coef == pytest.approx(peer.coef_[0])
    assert model.weights_for(["a1"]).coef == pytest.approx(model.coef_[0])
    assert (model.weights_for(["a1"], X, np.full(len(y), np.nan)).coef == model.coef_[0]).all()


def test_rows_cut_out_of_the_same_table():
    X, y, nodes = rows()
    table = pd.DataFrame({"rain": X[:, 0], "wind": X[:, 1], "town": names(nodes)})
    model = ct.NetworkedLinearRegression(empirical()).fit(table, y, groups="town")
    new = table[:4].assign(town="new")
    inside = model.weights_for(["a1"], new, y[:4])
    assert (inside.coef == model.weights_for(["a1"], new[["rain", "wind"]], y[:4]).coef).all()
    with pytest.raises(ValueError, match="'town' names 3"):
        model.weights_for(["a1"], table[table.town.isin(TOWNS[:3])], y[nodes < 3])
    before = model.coef_.copy()
    model.add_nodes({"new": ["a1", "a2"]}, new, y[:4])
    assert model.n_labelled_.tolist() == [5] * 6 + [4]
    assert model.nodes_.tolist() == [*TOWNS, "new"]
    assert model.coef_.shape == (7, 2)
    assert not np.array_equal(before, model.coef_[:6])
    assert (model.predict(new) == model.predict(new[["rain", "wind"]], groups=["new"] * 4)).all()


@pytest.mark.parametrize("model", PLAIN)
def test_neighbours_that_make_no_sense(model):
    old = fitted(model)
    X = np.ones((2, 2))
    for bad, message in (
        ([], "without neighbours"),
        (["a1", "zz"], "not among the 6 nodes of the graph: 'zz'"),
        (["a1", "a1"], "'a1' is listed twice"),
        ({"a1": -1.0}, "edge to 'a1' has the weight -1"),
        ({"a1": "near"}, "edge weights must hold numbers"),
        ("a1", "sequence of node ids or a dict"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            old.weights_for(bad)
    with pytest.raises(ValueError, match="y is None"):
        old.weights_for(["a1"], X)
    with pytest.raises(ValueError, match="3 features"):
        old.weights_for(["a1"], np.ones((2, 3)), [0, 1])
    if model is ct.NetworkedLogisticRegression:
        with pytest.raises(ValueError, match="class 'snow'; the model knows"):
            old.weights_for(["a1"], X, ["snow", "wet"])


@pytest.mark.parametrize("model", PLAIN)
def test_added_nodes_are_as_if_they_had_been_there(model):
    X, y, nodes = rows()
    y = labels_for(model, y)
    first = nodes < 4
    pairs, weights = [e[:2] for e in EDGES], [e[2] for e in EDGES]
    few = [k for k, (_, j) in enumerate(pairs) if j < 4]
    graph = ct.EmpiricalGraph.from_edges([pairs[k] for k in few], [weights[k] for k in few], ids=TOWNS[:4])
    grown = quick(model, graph, standardize=False, tol=1e-8).fit(X[first], y[first], names(nodes[first]))
    new = {"b2": {"b1": 1.0, "b3": 1.0}, "b3": {"b1": 2.0}}
    grown.add_nodes(new, X[~first], y[~first], names(nodes[~first]))
    whole = quick(model, empirical(), standardize=False, tol=1e-8).fit(X, y, names(nodes))
    assert grown.nodes_.tolist() == whole.nodes_.tolist()
    assert (grown.graph_.edges == whole.graph_.edges).all()
    assert (grown.graph_.weights == whole.graph_.weights).all()
    assert grown.gap_ <= 1e-8
    assert grown.solution_.objective == pytest.approx(whole.solution_.objective, rel=2e-8)
    assert grown.coef_ == pytest.approx(whole.coef_, abs=1e-3)
    assert grown.n_labelled_.tolist() == whole.n_labelled_.tolist()
    assert grown.graph.n_nodes < grown.graph_.n_nodes  # the parameter stays as it was given


def test_added_nodes_may_have_no_rows():
    model = fitted()
    model.add_nodes({"b4": ["b2", "b3"]})
    assert model.n_labelled_[-1] == 0
    assert (model.coef_[-1] == model.weights_for(["b2", "b3"]).coef).all()
    model.add_nodes({7: ["b4"]})
    assert model.nodes_.tolist() == [*TOWNS, "b4", 7]
    assert len(model.predict(np.ones((2, 2)), [7, "a1"])) == 2


def test_a_start_from_the_neighbours_saves_iterations():
    X, y, nodes = rows(m=3)
    y[np.isin(nodes, [1, 4])] = np.nan
    model = ct.NetworkedLasso(empirical(), lam=0.05, alpha=0.01).fit(X, y, names(nodes))
    cold = model.n_iter_
    model.add_nodes({"b4": ["b2", "b3"]})
    assert model.n_iter_ < cold


def test_nodes_that_cannot_be_added():
    model = fitted()
    X, y, _ = rows(m=1)
    for bad, message in (
        (["b4"], "dict of new id → its neighbours"),
        ({"a1": ["a2"]}, "already in the graph: 'a1'"),
        ({"b4": ["zz"]}, "new node 'b4' is joined to 'zz', which is not in the graph"),
        ({"b4": ["b4"]}, "joins node 'b4' to itself"),
        ({"b4": {"b5": 1.0}, "b5": {"b4": 2.0}}, "given twice, with weights"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            model.add_nodes(bad)
    with pytest.raises(ValueError, match="7 nodes; say with groups="):
        model.add_nodes({"b4": ["b3"]}, X, y)
    assert model.nodes_.tolist() == TOWNS


def test_rows_of_counts_come_with_an_exposure_and_weights():
    rng, nodes = np.random.default_rng(0), np.repeat(np.arange(4), 10)
    X, E = rng.standard_normal((40, 1)), rng.uniform(0.5, 4, 40)
    y = rng.poisson(E * np.exp(0.3 * X[:, 0])).astype(float)
    model = ct.NetworkedPoissonRegression([(0, 1), (1, 2), (2, 3)], lam=0.1, engine="numpy")
    model.fit(X, y, groups=nodes, exposure=E)
    twice = model.weights_for([0], np.repeat(X[:5], 2, axis=0), np.repeat(y[:5], 2), exposure=np.repeat(E[:5], 2))
    once = model.weights_for([0], X[:5], y[:5], exposure=E[:5], sample_weight=np.full(5, 2.0))
    np.testing.assert_allclose(twice.coef, once.coef, atol=1e-6)
    with pytest.raises(ValueError, match="exposure is of rows, and there are none: give X as well"):
        model.weights_for([0], exposure=E[:5])
    model.add_nodes({4: [0]}, X[:5], y[:5], [4] * 5, offset=np.log(E[:5]))
    assert model.coef_.shape == (5, 1)
    with pytest.raises(TypeError, match="NetworkedLinearRegression takes no exposure"):
        ct.NetworkedLinearRegression([(0, 1), (1, 2), (2, 3)]).fit(X, y, nodes).weights_for([0], X, y, exposure=E)
    with pytest.raises(ValueError, match=r"y\[0\] is -1; counts are numbers ≥ 0"):
        model.score(X[:1], [-1], groups=[0], exposure=1)
