from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coterie as ct
from problems import EVERY_LOSS, EVERY_PENALTY, KINDS, instance, is_binary, naive_objective

GRAPH = ct.EmpiricalGraph.from_edges([[0, 1]], n_nodes=3)
DATA = ct.LocalDatasets.from_rows(np.eye(3), [1.0, 2.0, 3.0], [0, 1, 2])


def best_constant(problem: ct.Problem) -> float:
    """The loss of the best constant prediction: the weighted mean of the labels, or even odds."""
    y, nodes = problem.data.y, problem.data.nodes
    rows = [r for r in range(len(y)) if not np.isnan(y[r])]
    share = dict.fromkeys(rows, 1.0)
    if getattr(problem.loss, "reduction", "mean") == "mean":
        share = {r: 1 / sum(nodes[q] == nodes[r] for q in rows) for r in rows}
    if is_binary(problem.loss):
        return float(sum(share.values()) * np.log(2))
    mean = sum(share[r] * y[r] for r in rows) / sum(share.values())
    return float(sum(share[r] * (y[r] - mean) ** 2 for r in rows))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_objective_by_a_naive_loop(loss: ct.Loss, penalty: ct.Penalty, kind: str) -> None:
    problem = instance(kind, loss, penalty, lam=0.37)
    w = np.random.default_rng(0).standard_normal((12, 3))
    assert problem.objective(w) == pytest.approx(naive_objective(problem, w), rel=1e-12)
    if isinstance(loss, ct.SquaredError | ct.Lasso | ct.Logistic):
        assert problem.constant_loss == pytest.approx(best_constant(problem), rel=1e-12)
    assert 0 < problem.constant_loss < np.inf


@pytest.mark.parametrize("offset", [5e6, -1e7])
def test_an_offset_of_the_labels_does_not_inflate_the_scale(offset: float) -> None:
    y = np.array([1.0, 2.0, 4.0])
    shifted = ct.Problem(GRAPH, ct.LocalDatasets.from_rows(np.eye(3), offset + y, [0, 1, 2]))
    assert shifted.constant_loss == pytest.approx(
        ct.Problem(GRAPH, ct.LocalDatasets.from_rows(np.eye(3), y, range(3))).constant_loss
    )


def test_constant_labels_leave_a_trace_of_scale() -> None:
    """What rounding of the labels could make: nothing would be relative to zero."""
    problem = ct.Problem(GRAPH, ct.LocalDatasets.from_rows(np.eye(3), [7.0] * 3, [0, 1, 2]))
    assert 0 < problem.constant_loss <= 1e-13 * problem.objective(np.zeros((3, 3)))


def test_the_defaults_are_the_papers() -> None:
    problem = ct.Problem(GRAPH, DATA)
    assert problem.loss == ct.SquaredError(reduction="mean", ridge=0.0)
    assert problem.penalty == ct.TotalVariation()
    assert problem.lam == 1e-3


@pytest.mark.parametrize(
    ("kind", "undetermined"),
    [("all labelled", []), ("few labelled", []), ("disconnected", [10, 11]), ("isolated nodes", [11])],
)
def test_undetermined_nodes(kind: str, undetermined: list[int]) -> None:
    assert instance(kind).undetermined.tolist() == undetermined


def test_nothing_is_determined_without_labels() -> None:
    data = ct.LocalDatasets.from_rows(np.eye(3), [np.nan] * 3, [0, 1, 2])
    problem = ct.Problem(GRAPH, data)
    assert problem.undetermined.tolist() == [0, 1, 2]
    assert problem.objective(np.ones((3, 3))) == problem.constant_loss == 0.0


BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "a class as loss": ({"loss": ct.SquaredError}, TypeError, "loss must be a Loss, an instance and not the class"),
    "a class as penalty": ({"penalty": ct.TotalVariation}, TypeError, "penalty must be a Penalty, an instance and no"),
    "a name as loss": ({"loss": "squared"}, TypeError, "loss must be a Loss; got 'squared'"),
    "edges as graph": ({"graph": [[0, 1]]}, TypeError, "graph must be a EmpiricalGraph"),
    "an array as data": ({"data": np.eye(3)}, TypeError, "data must be a LocalDatasets"),
    "negative lam": ({"lam": -0.1}, ValueError, "lam must be a finite number ≥ 0, got -0.1"),
    "nan lam": ({"lam": np.nan}, ValueError, "got nan"),
    "a word as lam": ({"lam": "large"}, ValueError, "lam must be a finite number ≥ 0, got 'large'"),
    "infinite lam": ({"lam": np.inf}, ValueError, "got inf"),
    "another number of nodes": (
        {"graph": ct.EmpiricalGraph.from_edges([[0, 4]])},
        ValueError,
        "graph has 5 nodes but the data 3; give n_nodes=graph.n_nodes",
    ),
    "labels not 0 or 1": ({"loss": ct.Logistic()}, ValueError, "node 1 has the label 2"),
    "no such column": ({"loss": ct.Lasso(1.0, unpenalised=(3,))}, ValueError, "names column 3, but there are 3"),
}


@pytest.mark.parametrize(("change", "error", "message"), BAD.values(), ids=BAD.keys())
def test_what_is_refused(change: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ct.Problem(**({"graph": GRAPH, "data": DATA} | change))
