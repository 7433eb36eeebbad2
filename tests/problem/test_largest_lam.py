from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import coterie as ct
import coterie.problem.largest_lam as module
from coterie.kernels.choice import using
from problems import FIRST_LOSSES, instance, naive_objective, oracle

CUTTING = [ct.TotalVariation(), ct.GroupTotalVariation()]


def spread_inside_components(problem: ct.Problem, w: np.ndarray) -> float:
    component = problem.graph.components
    return max(np.ptp(w[component == k], axis=0).max() for k in np.unique(component[problem.M]))


def pooled_objective(problem: ct.Problem) -> float:
    """The best objective of weights that are equal in each component."""
    component = problem.graph.components
    v, _ = problem.f.pooled(component[problem.M], component.max() + 1)
    return naive_objective(problem, v[component])


@pytest.mark.parametrize("kind", ["all labelled", "few labelled", "disconnected", "isolated nodes", "weighted edges"])
@pytest.mark.parametrize("penalty", CUTTING, ids=repr)
@pytest.mark.parametrize("loss", FIRST_LOSSES, ids=repr)
def test_from_there_on_components_have_one_weight(loss: ct.Loss, penalty: ct.Penalty, kind: str) -> None:
    problem = instance(kind, loss, penalty)
    lam = ct.largest_useful_lam(problem)
    above = replace(problem, lam=1.0001 * lam)
    assert pooled_objective(above) <= oracle(above).value * (1 + 1e-7)


@pytest.mark.parametrize("penalty", CUTTING, ids=repr)
@pytest.mark.parametrize("loss", FIRST_LOSSES, ids=repr)
def test_exact_on_a_tree(loss: ct.Loss, penalty: ct.Penalty) -> None:
    edges = [[0, 1], [1, 2], [1, 3], [3, 4], [3, 5], [5, 6], [6, 7], [7, 8], [8, 9], [9, 10], [10, 11]]
    problem = replace(instance("all labelled", loss, penalty), graph=ct.EmpiricalGraph.from_edges(edges))
    lam = ct.largest_useful_lam(problem)
    below = replace(problem, lam=0.9 * lam)
    best = oracle(below)
    assert best.value < pooled_objective(below) - 1e-7
    assert spread_inside_components(below, best.w) > 1e-4


def test_never_for_squared_variation() -> None:
    assert ct.largest_useful_lam(instance(penalty=ct.SquaredVariation())) == np.inf


@pytest.mark.parametrize("penalty", [*CUTTING, ct.SquaredVariation()], ids=repr)
def test_zero_where_nothing_pulls(penalty: ct.Penalty) -> None:
    data = ct.LocalDatasets.from_rows(np.eye(3), [np.nan, np.nan, np.nan], [0, 1, 2])
    assert ct.largest_useful_lam(ct.Problem(ct.EmpiricalGraph.from_edges([[0, 1], [1, 2]]), data, penalty=penalty)) == 0


def test_a_rough_potential_still_gives_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spanning tree carries what conjugate gradients have not yet settled."""
    problem = instance("weighted edges")
    settled = ct.largest_useful_lam(problem)
    for steps in (0, 1, 3):
        monkeypatch.setattr(module, "CG_STEPS", steps)
        rough = ct.largest_useful_lam(problem)
        assert rough >= 0.5 * settled
        solution = ct.solve(replace(problem, lam=1.001 * rough), 1e-9)
        assert len(solution.clusters()) == 1


def test_weak_edges_that_close_circles_do_not_make_it_rough() -> None:
    """Places that are chained in time by weak edges: what 300 steps leave would go along these."""
    rng = np.random.default_rng(0)
    graph = ct.product_graph(
        ct.knn_graph(rng.random((60, 2)), k=4, ids=range(60)), ct.time_graph(range(20)), strength=(1.0, 0.002)
    )
    nodes = np.arange(graph.n_nodes)
    data = ct.LocalDatasets.from_rows(np.ones((len(nodes), 1)), rng.standard_normal(len(nodes)) + nodes / 400, nodes)
    found = []
    for compiled in (False, True):
        with using(compiled=compiled):
            found.append(ct.largest_useful_lam(ct.Problem(graph, data)))
    assert found[0] == pytest.approx(found[1], rel=0.01)


@pytest.mark.parametrize("weak", [1e-18, 1e-26, 1e-60])
def test_a_weak_edge_asks_for_as_much_more(weak: float) -> None:
    data = ct.LocalDatasets.from_rows(np.ones((4, 1)), [1.0, 2.0, 4.0, 5.0], [0, 1, 2, 3])
    path = [(0, 1), (1, 2), (2, 3)]
    even, uneven = (
        ct.largest_useful_lam(ct.Problem(ct.EmpiricalGraph.from_edges(path, [1.0, middle, 1.0]), data))
        for middle in (1.0, weak)
    )
    assert uneven == pytest.approx(even / weak, rel=1e-6)


@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-8])
def test_labels_that_one_model_fits_ask_for_next_to_nothing(noise: float) -> None:
    """What rounding leaves of sums that are zero must not become a flow."""
    rng = np.random.default_rng(0)
    X, nodes = rng.standard_normal((200, 3)), np.repeat(np.arange(40), 5)
    data = ct.LocalDatasets.from_rows(X, X[:, 0] + noise * rng.standard_normal(200), nodes)
    assert ct.largest_useful_lam(ct.Problem(ct.knn_graph(rng.random((40, 2)), 3), data)) <= 1e3 * noise + 1e-12
