"""Effective parameters against differences of predictions, and what AICc and BIC make of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import poisson
from sklearn.linear_model import LinearRegression
from towns import EDGES, TRUTH

import coterie as ct
from coterie.estimators.criterion import choose_by_criterion, criteria_beside_folds

PATH = [(i, j) for i, j, _ in EDGES]


def rows(seed: int, m: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    nodes = np.repeat(np.arange(6), m)
    X = rng.standard_normal((len(nodes), 2))
    y = (X * TRUTH[nodes, :2]).sum(axis=1) + TRUTH[nodes, 2] + 0.3 * rng.standard_normal(len(nodes))
    return X, y, nodes


def followed(model: ct.NetworkedLinearRegression, X: np.ndarray, y: np.ndarray, nodes: np.ndarray) -> float:
    """Σ ∂ŷ_r/∂y_r by central differences."""
    total, d = 0.0, 1e-3  # weights of a gap of 1e-11 are known to about 1e-6
    for r in range(len(y)):
        up = model.fit(X, y + d * (np.arange(len(y)) == r), nodes).predict(X, nodes)[r]
        down = model.fit(X, y - d * (np.arange(len(y)) == r), nodes).predict(X, nodes)[r]
        total += (up - down) / (2 * d)
    return total


@pytest.mark.slow
@pytest.mark.parametrize(
    ("penalty", "kind"),
    [("l1", "plain"), ("l1", "ridge"), ("l1", "lasso"), ("l2", "plain"), ("l2", "lasso"), ("squared", "nodes")],
)
def test_effective_parameters_are_how_much_predictions_follow_labels(penalty, kind):
    X, y, nodes = rows(0, m=2)
    keep = np.flatnonzero(nodes != 4)  # a node without labels
    X, y, nodes = X[keep], y[keep], nodes[keep]
    common = {"penalty": penalty, "lam": 0.3, "standardize": False, "tol": 1e-11, "engine": "numpy"}
    model = {
        "plain": lambda: ct.NetworkedLinearRegression(PATH, **common),
        "ridge": lambda: ct.NetworkedLinearRegression(PATH, ridge=0.2, **common),
        "lasso": lambda: ct.NetworkedLasso(PATH, alpha=0.3, **common),
        "nodes": lambda: ct.NetworkedLinearRegression(PATH, weight_by="nodes", **common),
    }[kind]()
    by_differences = followed(model, X, y, nodes)
    assert model.fit(X, y, nodes).effective_parameters_ == pytest.approx(by_differences, abs=2e-3)


def test_with_total_variation_they_are_the_fused_groups():
    X, y, nodes = rows(1)
    model = ct.NetworkedLinearRegression(PATH, lam=0.05).fit(X, y, nodes)
    groups = model.solution_.clusters().by_coordinate.max(axis=0) + 1
    assert 3 < groups.sum() < 18
    assert model.effective_parameters_ == pytest.approx(groups.sum(), abs=1e-5)


def test_aicc_and_bic_of_counts_have_the_whole_likelihood():
    """With what the loss leaves out, so that other software has the same figures."""
    X, y, nodes = rows(1)
    counts, E = np.round(np.exp(y / 2)), 1.0 + np.arange(len(y)) % 3
    s = np.where(np.arange(len(y)) % 4 == 0, 2.0, 1.0)
    model = ct.NetworkedPoissonRegression(PATH, lam=0.1).fit(X, counts, nodes, s, exposure=E)
    minus_two_log = -2 * s @ poisson.logpmf(counts, model.predict(X, nodes, exposure=E))
    p, N = model.effective_parameters_, s.sum()
    assert model.aicc_ == pytest.approx(minus_two_log + 2 * p * N / (N - p - 1))
    assert model.bic_ == pytest.approx(minus_two_log + p * np.log(N))


def test_a_criterion_without_a_likelihood_is_refused_before_any_solve(monkeypatch):
    monkeypatch.setattr("coterie.estimators.criterion.solve_path", None)
    X, y, nodes = rows(1)
    with pytest.raises(ValueError, match="needs a likelihood, which Huber with TotalVariation does not have"):
        ct.NetworkedHuberRegressionCV(PATH, criterion="aicc").fit(X, y, nodes)


def test_labels_without_noise_have_the_largest_lam_of_those_that_fit_them():
    X, y, nodes = rows(1)
    model = ct.NetworkedLinearRegressionCV(PATH, n_lams=4, criterion="aicc").fit(X, 0 * y + 3, nodes)
    assert model.aicc_ == -np.inf
    assert model.lam_ == model.criterion_choice_.lams[0]


def test_rows_determine_no_more_parameters_than_there_are():
    X, y, nodes = rows(2, m=1)
    alone = ct.NetworkedLinearRegression(PATH, lam=0.0).fit(X, y, nodes)
    assert alone.effective_parameters_ == pytest.approx(6, abs=1e-5)
    assert np.isinf(alone.aicc_)
    assert np.isinf(alone.bic_)


def test_many_unknowns_are_probed(monkeypatch):
    X, y, nodes = rows(3)
    squared = ct.NetworkedLinearRegression(PATH, lam=0.1, penalty="squared").fit(X, y, nodes)
    fused = ct.NetworkedLinearRegression(PATH, lam=0.1).fit(X, y, nodes)
    exact = squared.effective_parameters_, fused.effective_parameters_
    monkeypatch.setattr("coterie.estimators.fused.EXACTLY", 0)
    squared._information = fused._information = None
    assert squared.effective_parameters_ == pytest.approx(exact[0], rel=0.2)
    assert fused.effective_parameters_ == pytest.approx(
        exact[1], abs=1e-5
    )  # where nothing is shrunken, probes are exact


def test_one_node_has_the_criteria_of_least_squares():
    X, y, _ = rows(4)
    model = ct.NetworkedLinearRegression(lam=0.0).fit(X, y)
    N, k = len(y), 4  # two slopes, an intercept, a variance
    rss = ((y - LinearRegression().fit(X, y).predict(X)) ** 2).sum()
    minus_two_log = N * (np.log(2 * np.pi * rss / N) + 1)
    assert model.aicc_ == pytest.approx(minus_two_log + 2 * k * N / (N - k - 1))
    assert model.bic_ == pytest.approx(minus_two_log + k * np.log(N))


def test_units_and_repeated_rows_do_not_matter():
    X, y, nodes = rows(5)
    one = ct.NetworkedLinearRegression(PATH, lam=0.05).fit(X, y, nodes)
    other = ct.NetworkedLinearRegression(PATH, lam=0.05).fit(1e3 * X, 7 + 5 * y, nodes)
    assert other.effective_parameters_ == pytest.approx(one.effective_parameters_)
    assert other.aicc_ == pytest.approx(one.aicc_ + len(y) * np.log(25), abs=1e-3)
    twice = ct.NetworkedLinearRegression(PATH, lam=0.05).fit(*(np.repeat(part, 2, axis=0) for part in (X, y, nodes)))
    weighed = ct.NetworkedLinearRegression(PATH, lam=0.05).fit(X, y, nodes, sample_weight=np.full(len(y), 2.0))
    assert weighed.bic_ == pytest.approx(twice.bic_, abs=1e-3)


def test_classes_have_a_deviance():
    X, y, nodes = rows(6, m=8)
    model = ct.NetworkedLogisticRegression(PATH, lam=0.1, ridge=0.0).fit(X, y > 0, nodes)
    p = model.predict_proba(X, nodes)[np.arange(len(y)), (y > 0).astype(int)]
    groups = (model.solution_.clusters().by_coordinate.max(axis=0) + 1).sum()
    assert model.effective_parameters_ == pytest.approx(groups, abs=1e-4)
    assert model.bic_ == pytest.approx(-2 * np.log(p).sum() + groups * np.log(len(y)), abs=1e-3)


@pytest.mark.parametrize("criterion", ["aicc", "bic"])
def test_a_criterion_chooses_its_smallest_value_without_folds(criterion):
    X, y, nodes = rows(7, m=8)
    model = ct.NetworkedLinearRegressionCV(PATH, n_lams=8, criterion=criterion).fit(X, y, nodes)
    choice = model.criterion_choice_
    assert choice.values[choice.best] == choice.values.min()
    assert model.lam_ == choice.lams[choice.best]
    assert getattr(model, f"{criterion}_") == pytest.approx(choice.values.min(), abs=0.01)
    assert len(choice.results()["aicc"]) == 8
    assert criterion in repr(choice)
    assert not hasattr(model, "lam_choice_")
    assert not hasattr(model, "held_out_")
    again = model.set_params(criterion="cv", cv=2).fit(X, y, nodes)
    assert again.lam_choice_ is not None
    assert not hasattr(again, "criterion_choice_")


def test_the_two_blocks_are_found():
    X, y, nodes = rows(8, m=20)
    model = ct.NetworkedLinearRegressionCV(PATH, n_lams=20, criterion="bic").fit(X, y, nodes)
    assert model.clusters_[:3].max() < model.clusters_[3:].min()
    assert model.effective_parameters_ < 12


def test_criteria_beside_folds_are_of_the_strength_in_time_that_folds_chose():
    X, y, nodes = rows(0)
    pairs = [("here", int(node)) for node in nodes]
    times = ct.time_graph(sorted({time for _, time in pairs}))
    graph, given = (ct.EmpiricalGraph.from_edges([], n_nodes=1, ids=["here"]), times), {"n_lams": 3, "cv": 2}
    model = ct.NetworkedLinearRegressionCV(graph, time_strengths=[0.5, 2.0], over="rows", random_state=0, **given)
    model.fit(X, y, pairs)
    found = criteria_beside_folds(model)
    assert len(found.lams) == 3
    assert model.lam_ in found.lams
    assert found.aicc[found.lams == model.lam_].item() == pytest.approx(model.aicc_, abs=0.01)


def test_criteria_beside_folds_need_more_rows_than_parameters():
    X, y, nodes = rows(0, m=2)
    model = ct.NetworkedLinearRegressionCV(PATH, lams=[0.0], cv=2, over="rows", random_state=0).fit(X, y, nodes)
    with pytest.raises(ValueError, match=r"AICc .* here 12 rows and .* parameters; leave out criteria="):
        criteria_beside_folds(model)


def test_what_no_criterion_can_choose_is_refused():
    X, y, nodes = rows(9, m=1)
    with pytest.raises(ValueError, match=r"criterion must be .* got 'r2'"):
        ct.NetworkedLinearRegressionCV(PATH, criterion="r2").fit(X, y, nodes)
    with pytest.raises(ValueError, match=r"6 rows and .* parameters; use criterion=\"cv\""):
        ct.NetworkedLinearRegressionCV(PATH, lams=[0.0], criterion="aicc").fit(X, y, nodes)
    model = ct.NetworkedLinearRegressionCV(PATH, criterion="aicc")
    problem = model._problem(*rows(9), None)[0]
    quantile = ct.Problem(problem.graph, problem.data, loss=ct.Quantile(q=0.5))
    with pytest.raises(ValueError, match="needs a likelihood, which Quantile with TotalVariation does not have"):
        choose_by_criterion(model, quantile, [0.1])


def test_files_hold_them(tmp_path):
    X, y, nodes = rows(10)
    model = ct.NetworkedLinearRegressionCV(PATH, n_lams=5, criterion="aicc").fit(X, y, nodes)
    model.save(tmp_path / "model")
    again = ct.load(tmp_path / "model")
    assert (again.effective_parameters_, again.aicc_, again.bic_) == (
        model.effective_parameters_,
        model.aicc_,
        model.bic_,
    )
    assert again.criterion_choice_.best == model.criterion_choice_.best
    assert np.array_equal(again.criterion_choice_.aicc, model.criterion_choice_.aicc)
    del again._information
    with pytest.raises(AttributeError, match="training rows"):
        again.aicc_  # noqa: B018


def test_baselines_know_a_criterion():
    X, y, nodes = rows(11, m=8)
    model = ct.NetworkedLinearRegressionCV(PATH, n_lams=5, criterion="aicc")
    found = ct.compare_baselines(model, X, y, nodes, cv=2)
    assert np.isfinite(found.mean[found.methods.index("networked")])
