"""The measures against naive loops, and each method on one draw of the paper's network."""

import numpy as np
import pytest

from coterie.experiments.measures import label_error, predictions, weight_error, weight_mse
from coterie.experiments.methods import certified_optimum, decision_tree, linear_regression, paper_iteration
from coterie.experiments.settings import AUTHORS, PRINTED


@pytest.fixture(scope="module")
def printed():
    return PRINTED.network(0)


@pytest.fixture(scope="module")
def authors():
    return AUTHORS.network(0)


def test_measures_agree_with_loops(printed):
    w = np.random.default_rng(0).standard_normal(printed.weights.shape)
    M, data = set(printed.data.labelled.M.tolist()), printed.data
    epsilon = sum(((printed.weights[i] - w[i]) ** 2).sum() for i in range(300) if i not in M) / 300
    assert weight_error(printed, w) == pytest.approx(epsilon)
    assert weight_mse(printed, w) == pytest.approx(np.mean([(printed.weights[i] - w[i]) ** 2 for i in range(300)]))
    squares = {True: [], False: []}
    for x, y, i in zip(data.X, printed.labels, data.nodes, strict=True):
        squares[int(i) in M].append((y - x @ w[i]) ** 2)
    error = label_error(printed, predictions(printed, w))
    assert error == pytest.approx((np.mean(squares[True]), np.mean(squares[False])))


def test_true_weights_make_no_error(printed):
    assert label_error(printed, predictions(printed, printed.weights)) == pytest.approx((0, 0), abs=1e-28)
    assert weight_error(printed, printed.weights) == 0


def test_algorithm_1_as_printed_has_hardly_moved(printed):
    outcome = paper_iteration(PRINTED, printed)
    assert outcome.weight_error == pytest.approx(6.85, abs=0.03)
    assert outcome.test > 6
    assert outcome.gap > 0.9


def test_the_optimum_of_the_printed_problem_beats_the_printed_table(printed):
    outcome = certified_optimum(PRINTED, printed)
    assert outcome.gap <= 1e-6
    assert outcome.weight_error < 1.2e-6
    assert outcome.test < 1.8e-6


def test_the_authors_settings_give_their_order_of_magnitude(authors):
    assert 3e-7 < paper_iteration(AUTHORS, authors).test < 4e-5


def test_baselines_cannot_tell_the_clusters_apart(authors):
    assert 3 < linear_regression(authors).test < 5.5
    assert 3.5 < decision_tree(authors).test < 6


def test_linear_regression_has_an_intercept(authors):
    shifted = type(authors)(
        authors.graph,
        type(authors.data).from_rows(authors.data.X, authors.data.y + 100, authors.data.nodes, n_nodes=300),
        authors.labels + 100,
        authors.weights,
        authors.cluster,
    )
    assert linear_regression(shifted).test == pytest.approx(linear_regression(authors).test)
