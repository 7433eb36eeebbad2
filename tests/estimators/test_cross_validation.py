from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, ShuffleSplit
from towns import CHOOSING, PLAIN, empirical, labels_for, names, networkx_graph, quick, rows

import coterie as ct
from coterie.datasets import stochastic_block_model
from coterie.estimators.fold_errors import mean_over_folds, standard_error
from coterie.estimators.fold_paths import mean_error
from coterie.estimators.folds import folds_of, reachable, without
from coterie.estimators.lam_choice import LamChoice
from coterie.estimators.lam_errors import cross_validate_lam
from coterie.solver.solve import solve_closer
from problems import problems


def stated(y, nodes, X=None):
    """The data of rows as they came, and their order in it."""
    X = np.arange(len(y), dtype=float)[:, None] if X is None else X
    return ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=6), np.argsort(nodes, kind="stable")


# --- folds ----------------------------------------------------------------------------------------------------


def test_folds_over_nodes_hold_out_whole_nodes():
    _, y, nodes = rows()
    y[nodes == 2] = np.nan
    data, order = stated(y, nodes)
    folds, over = folds_of(data, 5, "auto", order, 0)
    assert over == "nodes"
    held = [sorted(set(data.nodes[fold.test])) for fold in folds]
    assert sorted(i for out in held for i in out) == [0, 1, 3, 4, 5]
    for fold, out in zip(folds, held, strict=True):
        assert (fold.test == np.isin(data.nodes, out)).all()
        assert (fold.train == (~np.isin(data.nodes, [2, *out]))).all()


def test_folds_over_rows_hold_out_any_row():
    _, y, nodes = rows()
    data, order = stated(y, nodes)
    folds, over = folds_of(data, 3, "auto", order, 0)
    assert over == "rows"
    assert sum(fold.test.astype(int) for fold in folds).tolist() == [1] * 30
    assert all((fold.train != fold.test).all() for fold in folds)
    assert [fold.test.sum() for fold in folds] == [10, 10, 10]


def test_single_rows_mean_nodes():
    data, order = stated(np.arange(6.0), np.arange(6))
    assert folds_of(data, 3, "auto", order, 0)[1] == "nodes"


def test_two_classes_are_shared_out():
    nodes = rows()[2]
    few = np.zeros(30)
    few[:3] = 1
    data, order = stated(few, nodes)
    for fold in folds_of(data, 3, "rows", order, 0)[0]:
        assert data.y[fold.test].sum() == 1


@given(
    m=st.lists(st.integers(1, 60), min_size=5, max_size=40),
    positive=st.floats(0.05, 0.95),
    cv=st.integers(2, 5),
    seed=st.integers(0, 99),
)
def test_whole_nodes_are_dealt_evenly(m, positive, cv, seed):
    """No fold has more of a class than its even share and the largest node with some of it."""
    nodes, rng = np.repeat(np.arange(len(m)), m), np.random.default_rng(seed)
    y = (rng.random(len(nodes)) < positive).astype(float)
    data = ct.LocalDatasets.from_rows(np.ones((len(y), 1)), y, nodes)
    folds, over = folds_of(data, cv, "nodes", np.arange(len(y)), seed)
    assert over == "nodes"
    assert all(fold.test.any() and fold.train.any() for fold in folds)
    assert (sum(fold.test.astype(int) for fold in folds) == 1).all()
    largest = sum(np.bincount(nodes, y == kind).max() / max((y == kind).sum(), 1) for kind in (0, 1))
    shares = [sum((y[fold.test] == kind).sum() / max((y == kind).sum(), 1) for kind in (0, 1)) for fold in folds]
    assert max(shares) <= 2 / cv + 2 * largest + 1e-9


def test_a_rare_class_is_in_every_fold_of_nodes():
    nodes = np.repeat(np.arange(20), 5)
    y = ((nodes < 5) & (np.arange(100) % 5 == 0)).astype(float)  # five nodes have one positive row each
    data = ct.LocalDatasets.from_rows(np.ones((100, 1)), y, nodes)
    for seed in range(5):
        folds = folds_of(data, 5, "nodes", np.arange(100), seed)[0]
        assert [y[fold.test].sum() for fold in folds] == [1] * 5
        assert [fold.test.sum() for fold in folds] == [20] * 5


def test_numbers_are_dealt_node_by_node():
    nodes = np.repeat([0, 1, 2], [50, 10, 5])
    data = ct.LocalDatasets.from_rows(np.ones((65, 1)), np.arange(65.0), nodes)
    for fold in folds_of(data, 5, "rows", np.arange(65), 3)[0]:
        assert np.bincount(nodes[fold.test]).tolist() == [10, 2, 1]


@pytest.mark.parametrize("over", ["nodes", "rows"])
def test_repeated_folds_are_other_folds(over):
    _, y, nodes = rows()
    data, order = stated(y, nodes)
    folds, _ = folds_of(data, 3, over, order, 0, repeats=4)
    assert len(folds) == 12
    draws = [frozenset(tuple(fold.test) for fold in folds[k : k + 3]) for k in range(0, 12, 3)]
    assert len(set(draws)) > 1
    for k in range(0, 12, 3):
        assert (sum(fold.test.astype(int) for fold in folds[k : k + 3]) == 1).all()
    with pytest.raises(ValueError, match="cv_repeats must be a whole number"):
        folds_of(data, 3, over, order, 0, repeats=0)
    with pytest.raises(ValueError, match="cv_repeats=2 needs a number for cv"):
        folds_of(data, KFold(3), over, order, 0, repeats=2)


def test_given_splits_count_rows_as_they_came():
    _, y, nodes = rows()
    y[4] = np.nan
    data, order = stated(y, nodes)
    splits = [(np.arange(10, 30), np.arange(10)), (np.arange(5), np.arange(20, 25))]
    folds, over = folds_of(data, splits, "auto", order, None)
    assert over == "given"
    for fold, (train, test) in zip(folds, splits, strict=True):
        assert sorted(data.X[fold.train, 0]) == sorted(set(train) - {4})
        assert sorted(data.X[fold.test, 0]) == sorted(set(test) - {4})


@pytest.mark.parametrize("splitter", [KFold(3), GroupKFold(3), LeaveOneGroupOut(), ShuffleSplit(2, random_state=0)])
def test_splitters_see_rows_as_they_came_with_nodes_as_groups(splitter):
    _, y, nodes = rows()
    data, order = stated(y, nodes)
    folds, _ = folds_of(data, splitter, "auto", order, None)
    groups = None if isinstance(splitter, KFold | ShuffleSplit) else nodes
    for fold, (train, test) in zip(folds, splitter.split(data.X, y, groups), strict=True):
        assert sorted(data.X[fold.train, 0]) == sorted(train)
        assert sorted(data.X[fold.test, 0]) == sorted(test)


def test_given_folds_without_labels_are_left_out():
    _, y, nodes = rows()
    y[nodes == 1] = np.nan
    data, order = stated(y, nodes)
    assert len(folds_of(data, LeaveOneGroupOut(), "auto", order, None)[0]) == 5
    with pytest.raises(ValueError, match="labels both to learn from and to test on"):
        folds_of(data, [(np.flatnonzero(nodes == 1), np.arange(30))], "auto", order, None)


def test_folds_that_make_no_sense():
    _, y, nodes = rows()
    data, order = stated(y, nodes)
    with pytest.raises(ValueError, match="cv=7 folds over nodes"):
        folds_of(data, 7, "nodes", order, 0)
    with pytest.raises(ValueError, match="cv=1 folds"):
        folds_of(data, 1, "rows", order, 0)
    with pytest.raises(ValueError, match="over must be"):
        folds_of(data, 5, "edges", order, 0)


@given(problem=problems(), over=st.sampled_from(["auto", "nodes", "rows"]), seed=st.integers(0, 3))
def test_no_fold_learns_from_what_it_holds_out(problem, over, seed):
    data = problem.data
    counts = ~np.isnan(data.y)
    try:
        folds, held = folds_of(data, 2, over, np.arange(len(data.y)), seed)
    except ValueError:
        assert len(data.labelled.M) < 2 or over != "nodes"
        assert counts.sum() < 2 or len(data.labelled.M) < 2 or len(np.unique(data.y[counts])) == 2
        reject()
    for fold in folds:
        assert not (fold.train & fold.test).any()
        assert ((fold.train | fold.test) == counts).all()
        if held == "nodes":
            assert not set(data.nodes[fold.train]) & set(data.nodes[fold.test])
        training = without(problem, fold)
        assert np.isnan(training.data.y[fold.test]).all()
        assert (training.data.y[fold.train] == data.y[fold.train]).all()
        assert not np.isin(training.M, data.nodes[~np.isin(data.nodes, data.nodes[fold.train])]).any()


@pytest.mark.parametrize("over", ["nodes", "rows"])
def test_held_out_labels_do_not_matter_to_the_fit(over):
    X, y, nodes = rows()
    data, order = stated(y, nodes, X)
    problem = ct.Problem(empirical(), data, lam=0.1)
    fold = folds_of(data, 3, over, order, 0)[0][0]
    other = ct.Problem(
        empirical(),
        ct.LocalDatasets.from_rows(data.X, np.where(fold.test, 99.0, data.y), data.nodes, n_nodes=6),
        lam=0.1,
    )
    assert (ct.solve(without(problem, fold)).w == ct.solve(without(other, fold)).w).all()


def test_rows_that_no_label_reaches_are_not_counted():
    X, y, nodes = rows()
    data, order = stated(y, nodes, X)
    graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (3, 4)], n_nodes=6)
    problem = ct.Problem(graph, data, lam=0.1)
    for fold in folds_of(data, 6, "nodes", order, 0)[0]:
        out = set(data.nodes[fold.test])
        if out == {5}:
            with pytest.raises(ValueError, match="no other label is connected"):
                reachable(without(problem, fold), fold)
        else:
            assert (reachable(without(problem, fold), fold) == fold.test).all()


# --- the choice -----------------------------------------------------------------------------------------------


def test_errors_are_those_of_models_fitted_to_the_rest():
    X, y, nodes = rows()
    data, order = stated(y, nodes, X)
    s = np.random.default_rng(0).uniform(0.5, 2, len(y))
    data = ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=6, weights=s)
    problem = ct.Problem(empirical(), data)
    folds, _ = folds_of(data, 3, "rows", order, 0)
    choice = cross_validate_lam(problem, [0.01, 1.0], folds, "rows", tol=1e-9)
    assert choice.lams.tolist() == [1.0, 0.01]
    for k, fold in enumerate(folds):
        for row, lam in enumerate(choice.lams):
            keep = fold.train
            rest = ct.LocalDatasets.from_rows(data.X[keep], data.y[keep], data.nodes[keep], 6, data.weights[keep])
            w = ct.solve(ct.Problem(empirical(), rest, lam=lam), 1e-9).w
            off = data.y - np.einsum("rk,rk->r", data.X, w[data.nodes])
            expected = np.average(off[fold.test] ** 2, weights=data.weights[fold.test])
            assert choice.errors[row, k] == pytest.approx(np.sqrt(expected), rel=1e-3)
            assert mean_error(problem, fold.test, w) == pytest.approx(expected)


@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 99))
def test_one_standard_error_never_chooses_a_smaller_lam(K, folds, seed):
    errors = np.random.default_rng(seed).exponential(size=(K, folds))
    choice = LamChoice(np.geomspace(10, 1, K), errors, np.zeros((K, folds)), "rows", np.ones(folds))
    assert choice.lams[choice.one_se] >= choice.lams[choice.best]
    assert choice.mean[choice.best] == errors.mean(axis=1).min()
    limit = choice.mean.min() + choice.standard_error[choice.best]
    assert choice.mean[choice.one_se] <= limit
    assert (choice.mean[: choice.one_se] > limit).all()


@given(st.integers(2, 6), st.integers(1, 4), st.integers(0, 99))
def test_standard_errors(K, repeats, seed):
    rng = np.random.default_rng(seed)
    errors, even = rng.exponential(size=(3, K)), np.ones(K)
    assert standard_error(errors, even) == pytest.approx(errors.std(axis=1, ddof=1) / np.sqrt(K))
    again, weights = np.tile(errors, repeats), rng.uniform(0.1, 9, K)
    once = standard_error(errors, weights)
    assert standard_error(again, np.tile(weights, repeats), repeats) == pytest.approx(once)  # it does not shrink
    assert standard_error(errors, 7 * weights) == pytest.approx(once)


def test_the_mean_is_over_rows_not_over_folds():
    X, y, nodes = rows()
    split = [(np.arange(2, 30), np.arange(2)), (np.arange(10), np.arange(10, 30))]
    model = ct.NetworkedLinearRegressionCV(empirical(), lams=[0.1], cv=split, standardize=False).fit(X, y, names(nodes))
    choice = model.lam_choice_
    assert choice.weights / choice.weights.sum() == pytest.approx([1 / 11, 10 / 11])
    assert choice.mean == pytest.approx(np.sqrt(choice.errors**2 @ [1 / 11, 10 / 11]))


def test_errors_are_in_the_units_of_y():
    X, y, nodes = rows()
    plain = ct.NetworkedLinearRegressionCV(empirical(), lams=[0.1], cv=3, random_state=0).fit(X, y, names(nodes))
    larger = ct.NetworkedLinearRegressionCV(empirical(), lams=[0.1], cv=3, random_state=0).fit(X, 1e3 * y, names(nodes))
    assert larger.cv_results_["mean_error"] == pytest.approx(1e3 * plain.cv_results_["mean_error"], rel=1e-6)


@pytest.mark.parametrize("model", CHOOSING)
def test_a_choice_of_repeated_folds(model, tmp_path):
    X, y, nodes = rows()
    fitted = quick(model, empirical(), cv_repeats=3).fit(X, labels_for(model, y), names(nodes))
    choice = fitted.lam_choice_
    assert choice.repeats == 3
    assert choice.errors.shape == (4, 6)
    fitted.save(tmp_path / "m")
    again = ct.load(tmp_path / "m").lam_choice_
    assert (again.standard_error == choice.standard_error).all()
    assert (again.mean == choice.mean).all()


@pytest.mark.slow
@pytest.mark.parametrize("model", CHOOSING)
@pytest.mark.parametrize("over", ["nodes", "rows"])
def test_a_model_that_chooses(model, over):
    X, y, nodes = rows()
    y = labels_for(model, y)
    graph = networkx_graph()
    best = quick(model, graph, over=over).fit(X, y, names(nodes))
    results = best.cv_results_
    folds = ["fold0_error", "fold1_error"]
    assert list(results) == ["lam", "mean_error", "standard_error", *folds, "largest_gap"]
    assert all(len(column) == 4 for column in results.values())
    of_folds, degree = np.stack([results[name] for name in folds], axis=1), best._loss(()).measure.degree
    assert results["mean_error"] == pytest.approx(mean_over_folds(of_folds, np.ones(2), degree))
    assert best.lam_ == results["lam"][np.argmin(results["mean_error"])]
    assert best.lam_choice_.over == over
    assert (results["largest_gap"] < 1e-2).all()
    one_se = quick(model, graph, over=over, rule="one_se").fit(X, y, names(nodes))
    assert one_se.lam_ >= best.lam_
    plain = PLAIN[CHOOSING.index(model)](graph, lam=best.lam_).fit(X, y, names(nodes))
    assert best.coef_ == pytest.approx(plain.coef_, abs=1e-12)
    again = quick(model, graph, over=over).fit(X, y, names(nodes))
    assert again.cv_results_["mean_error"] == pytest.approx(results["mean_error"], rel=1e-3)  # compiled by now


def test_given_values_and_splits():
    X, y, nodes = rows()
    model = ct.NetworkedLinearRegressionCV(empirical(), lams=[0.01, 1.0, 0.1], cv=GroupKFold(3)).fit(X, y, names(nodes))
    assert model.cv_results_["lam"].tolist() == [1.0, 0.1, 0.01]
    assert model.lam_choice_.over == "given"
    assert model.lam_ in (1.0, 0.1, 0.01)
    with pytest.raises(ValueError, match='rule must be "best" or "one_se"'):
        model.set_params(rule="median").fit(X, y, names(nodes))
    with pytest.raises(ValueError, match="lams must be"):
        model.set_params(rule="best", lams=[-1.0]).fit(X, y, names(nodes))
    with pytest.raises(ValueError, match="lams is empty; give the values of λ to try, or None"):
        model.set_params(lams=[]).fit(X, y, names(nodes))


@pytest.mark.parametrize("penalty", ["l1", "l2", "squared"])
def test_lam_is_sensible_on_a_block_model(penalty):
    """Two blocks with a model each: neither alone (small λ) nor all together (large λ) is best."""
    network = stochastic_block_model((15, 15), p_in=0.8, p_out=0.03, labelled=16, noise=0.3, seed=1)
    data = network.data
    model = ct.NetworkedLinearRegressionCV(
        network.graph, n_lams=8, cv=3, penalty=penalty, fit_intercept=False, random_state=0
    ).fit(data.X, data.y, data.nodes)
    assert model.lam_choice_.over == "nodes"
    errors = model.cv_results_["mean_error"]
    assert errors[model.lam_choice_.best] < 0.5 * errors[0]
    assert model.lam_choice_.best > 0
    assert np.abs(model.coef_ - network.weights).mean() < 0.3


def test_ctrl_c_ends_the_choice(monkeypatch):
    X, y, nodes = rows()

    def interrupted(*given, **named):
        return replace(solve_closer(*given, **named), status=ct.Status.INTERRUPTED)

    monkeypatch.setattr("coterie.solver.path.solve_closer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        quick(ct.NetworkedLassoCV, empirical()).fit(X, y, names(nodes))
