"""The same pictures on matplotlib axes."""

from dataclasses import replace

import numpy as np
import pytest
from fitted_models import fitted, with_everything

import coterie as ct
from coterie.estimators.lam_choice import LamChoice
from coterie.report.coefficients import draw_coefficients
from coterie.report.convergence import Convergence, convergence_figure, draw_convergence, draw_gap, gap_figure
from coterie.report.figures import new_figure
from coterie.report.held_out import Dots, draw_held_out, held_out_figure
from coterie.report.map import draw_map
from coterie.report.notes import Notes
from coterie.report.page import render
from coterie.report.validation import close_to_best, draw_comparison, draw_lam_choice, lam_choice_figure


@pytest.fixture
def ax():
    figure = new_figure(6, 4)
    yield figure.add_subplot()
    figure.draw_without_rendering()


@pytest.fixture(scope="module")
def model():
    model = with_everything()
    model.feature_names_in_ = np.array(["speed", "mass"], dtype=object)
    return model


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_convergence(ax, model):
    draw_convergence(ax, model.solution_)
    assert texts(ax) == ["objective", "lower bound"]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [line.objective for line in model.solution_.history])


def test_gap(ax, model):
    draw_gap(ax, model.solution_, tol=1e-6)
    assert texts(ax) == ["relative gap", "asked for"]
    assert ax.get_yscale() == "log"


@pytest.mark.parametrize("history", [(), "all", "odd"])
def test_any_history_can_be_drawn(ax, model, history):
    odd = tuple(line._replace(dual_bound=-np.inf, gap=np.inf) for line in model.solution_.history)
    solution = replace(model.solution_, history={"all": model.solution_.history, "odd": odd}.get(history, ()))
    low, high = Convergence.of(solution).window
    assert low < solution.objective < high
    draw_convergence(ax, solution)
    convergence_figure(solution)
    gap_figure(solution, 1e-6)


def test_lam_choice(ax, model):
    draw_lam_choice(ax, model.lam_choice_)
    assert ax.get_xscale() == "log"
    assert texts(ax)[0].startswith("best")


def test_lam_choice_with_zero_and_one_fold(ax):
    choice = LamChoice(
        np.array([1.0, 0.5, 0.0]), np.array([[3.0], [1.0], [2.0]]), np.zeros((3, 1)), "given", np.ones(1)
    )
    draw_lam_choice(ax, choice)
    assert ax.get_xscale() == "linear"
    assert texts(ax) == ["best, also by the one-SE rule: λ = 0.5"]
    assert lam_choice_figure(choice, "error").layout.xaxis.type == "linear"


def test_predicted_against_actual(ax, model):
    draw_held_out(ax, model.held_out_)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("predicted", "actual")
    dots = Dots.of(model.held_out_)
    assert dots.rows.sum() == model.n_labelled_.sum()
    assert len(held_out_figure(dots).data) == 2


def test_predicted_probabilities_against_shares(ax):
    model = fitted(ct.NetworkedLogisticRegressionCV, n_lams=3, cv=2, random_state=0)
    draw_held_out(ax, model.held_out_)
    dots = Dots.of(model.held_out_)
    assert dots.ends == (0, 1)
    assert dots.rows.sum() == model.n_labelled_.sum()
    assert ((dots.actual >= 0) & (dots.actual <= 1)).all()


def test_what_is_not_known_is_not_drawn(ax, model):
    bare = replace(model.held_out_, edges=None, counts=None)
    assert Dots.of(bare) is None
    with pytest.raises(ValueError, match="single predictions are not known"):
        draw_held_out(ax, bare)


def test_comparison(ax, model):
    comparison = Notes.of(model).baselines
    draw_comparison(ax, comparison)
    assert [label.get_text() for label in ax.get_yticklabels()] == list(comparison.methods)
    assert close_to_best(comparison) == []
    near = ct.Comparison(("a", "b", "c"), np.array([[1.0, 3.0], [1.5, 3.0], [9.0, 9.0]]), "rows", np.ones(2))
    assert close_to_best(near) == ["b"]


def test_coefficients(ax, model):
    draw_coefficients(ax, model)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["speed", "mass", "intercept"]


@pytest.mark.parametrize("coordinate", [None, "speed", "intercept"])
def test_map(ax, model, coordinate):
    draw_map(ax, model, coordinate)
    assert ax.get_xlabel() == "lon"


def test_map_without_coordinates(ax):
    draw_map(ax, fitted())


def test_map_of_an_unknown_coefficient(ax, model):
    with pytest.raises(ValueError, match=r"no coefficient 'height'; choose one of speed, mass, intercept"):
        draw_map(ax, model, "height")


def test_residuals_against_expected_counts(ax):
    rng = np.random.default_rng(0)
    X, nodes = rng.standard_normal((60, 1)), np.repeat(np.arange(4), 15)
    y = rng.poisson(np.exp(1 + 0.5 * X[:, 0]))
    ring = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)])
    model = ct.NetworkedPoissonRegressionCV(ring, lams=[0.1], cv=2, random_state=0, engine="numpy").fit(X, y, nodes)
    draw_held_out(ax, model.held_out_)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("expected count", "residual")
    dots = Dots.of(model.held_out_)
    assert dots.rows.sum() == 60
    assert np.average(np.abs(dots.actual) < 2.5, weights=dots.rows) > 0.9
    assert held_out_figure(dots).layout.xaxis.type == "log"
    said = render(model)
    assert "mean deviance" in said
    assert "Deviance residuals" in said


def test_a_quantile_says_how_many_labels_lie_below(ax):
    rng = np.random.default_rng(0)
    X, nodes = rng.standard_normal((40, 1)), np.repeat(np.arange(2), 20)
    y = X[:, 0] + rng.standard_normal(40)
    pair = ct.EmpiricalGraph.from_edges([(0, 1)])
    model = ct.NetworkedQuantileRegressionCV(pair, quantile=0.7, lams=[0.1], cv=2, random_state=0, engine="numpy")
    model.fit(X, y, nodes)
    draw_held_out(ax, model.held_out_)
    share = f"{model.held_out_.coverage:.0%}"
    assert f"Labels below the dashed line, {share}" in Dots.of(model.held_out_).meaning
    assert "% of labels below" in render(model)
