"""Quadratic models of the logistic loss: they touch it, and lie above it where they say so."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import coterie as ct
from coterie.engines import models
from coterie.engines.models import Models
from coterie.kernels import vector_buffer
from coterie.kernels.model import model_share
from coterie.problem.losses.base import LocalLosses
from problems import oracle


def losses(n: int, m: int, size: float = 1.0, seed: int = 0) -> LocalLosses:
    rng = np.random.default_rng(seed)
    nodes = np.repeat(np.arange(6), m)
    X, y = size * rng.standard_normal((6 * m, n)), rng.integers(0, 2, 6 * m).astype(float)
    return ct.Logistic(ridge=0.1).bind(ct.LocalDatasets.from_rows(X, y, nodes).labelled)


def value_of(model, centre: np.ndarray, at_centre: np.ndarray, w: np.ndarray) -> np.ndarray:
    d = w - centre
    return at_centre + (model.slope * d).sum(axis=1) + 0.5 * np.einsum("ik,ikl,il->i", d, model.H, d)


@pytest.mark.parametrize("size", [0.1, 1.0, 30.0])
@pytest.mark.parametrize(("n", "m"), [(1, 3), (4, 10), (12, 5)])
def test_a_first_model_lies_above_everywhere(n: int, m: int, size: float) -> None:
    f, rng = losses(n, m, size), np.random.default_rng(1)
    centre = rng.standard_normal((6, n))
    model = f.model(centre, None)
    assert model is not None
    np.testing.assert_allclose(model.slope, f.gradient(centre), rtol=1e-9, atol=1e-12)
    for far in (1e-2, 1.0, 10.0):
        w = centre + far * rng.standard_normal((6, n))
        assert (value_of(model, centre, f.value(centre), w) >= f.value(w) * (1 - 1e-12)).all()


@pytest.mark.parametrize("size", [0.1, 1.0, 30.0])
def test_later_models_lie_above_as_far_as_the_margins_have_come(size: float) -> None:
    f, rng = losses(1, 5, size), np.random.default_rng(2)
    for _ in range(50):  # with one feature, no margin moves further than it has come when w does not
        before, centre = 2 * rng.standard_normal((2, 6, 1))
        model = f.model(centre, before)
        assert model is not None
        w = centre + rng.uniform(-1, 1, (6, 1)) * (centre - before)
        assert (value_of(model, centre, f.value(centre), w) >= f.value(w) * (1 - 1e-12)).all()


def test_models_become_newtons() -> None:
    f, centre = losses(3, 4), np.random.default_rng(3).standard_normal((6, 3))
    model = f.model(centre, centre)
    assert model is not None
    assert model.change == 0.0
    np.testing.assert_allclose(model.H, f.hessian(centre), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [1, 4, 12])
def test_what_a_model_keeps(n: int) -> None:
    f, tau = losses(n, 3), np.random.default_rng(4).lognormal(size=6)
    model = f.model(np.zeros((6, n)), None)
    assert model is not None
    R = np.empty_like(model.H)
    model_share(vector_buffer(n), tau, model.H, R)
    np.testing.assert_allclose(R, np.linalg.inv(np.eye(n) + tau[:, None, None] * model.H), rtol=1e-8, atol=1e-12)


def test_models_that_do_not_come_to_rest_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "PATIENCE", 3)
    rng, chain = np.random.default_rng(5), Models(losses(2, 3))
    wild = [chain.around(100 * rng.standard_normal((6, 2))) for _ in range(6)]
    assert [model is not None for model in wild] == [True] * 4 + [False] * 2
    calm = Models(losses(2, 3))
    assert all(calm.around(1e-3 * rng.standard_normal((6, 2))) is not None for _ in range(9))
    assert (
        Models(ct.SquaredError().bind(ct.LocalDatasets.from_rows([[1.0]], [1.0], [0]).labelled)).around(
            np.zeros((1, 1))
        )
        is None
    )


def test_where_weights_hardly_move_a_model_serves_several_blocks() -> None:
    step, chain = np.ones((6, 2)), Models(losses(2, 3))
    found = [chain.around(at * step) for at in (0.0, 0.1, 0.2, 0.2001, 0.2002, 0.2003, 0.2004, 0.2005)]
    same = [one is other for one, other in pairwise(found)]
    assert same == [False, False, False, True, True, True, False]
    assert chain.centre[0, 0] == 0.2005


@pytest.mark.parametrize("patience", [0, 25])
def test_both_ways_reach_the_same_certified_answer(patience: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "PATIENCE", patience)
    rng, side = np.random.default_rng(6), 8
    node = np.arange(side**2).reshape(side, side)
    edges = [
        (a, b)
        for x, y in ((node[:, :-1], node[:, 1:]), (node[:-1], node[1:]))
        for a, b in zip(x.flat, y.flat, strict=True)
    ]
    nodes = np.repeat(np.arange(side**2), 6)
    X = rng.standard_normal((len(nodes), 3))
    y = (X @ [2.0, -1.0, 0.5] * np.where(nodes < 32, 1, -1) + rng.logistic(size=len(nodes)) > 0).astype(float)
    data = ct.LocalDatasets.from_rows(X, y, nodes)
    problem = ct.Problem(ct.EmpiricalGraph.from_edges(edges), data, ct.Logistic(ridge=0.01), lam=0.1)
    solution, best = ct.solve(problem), oracle(problem).value
    assert solution.gap <= 1e-6
    assert solution.unconditional
    assert solution.dual_bound <= best * (1 + 1e-7)
    assert solution.objective <= best * (1 + 2e-6)
