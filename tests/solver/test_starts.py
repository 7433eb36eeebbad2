"""Where a solve begins must not matter: not for what is claimed, nor for whether there is an answer."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coterie as ct

CASES = [
    (ct.SquaredError(), ct.TotalVariation(), (1e155, 1)),
    (ct.SquaredError(), ct.SquaredVariation(), (1e300, 1)),
    (ct.SquaredError(), ct.TotalVariation(), (1, 1e300)),
    (ct.Poisson(), ct.TotalVariation(), (1e155, 1)),
]


def _problem(loss: ct.Loss, penalty: ct.Penalty) -> ct.Problem:
    rng = np.random.default_rng(0)
    data = ct.LocalDatasets.from_rows(rng.standard_normal((6, 2)), rng.integers(1, 4, 6), [0, 0, 1, 1, 2, 2])
    return ct.Problem(ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)]), data, loss, penalty, lam=0.1)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("loss", "penalty", "times"), CASES)
def test_starts_that_are_too_large_are_none(loss: ct.Loss, penalty: ct.Penalty, times: tuple[float, float]) -> None:
    """Their objective is no number: a gap would not be one either."""
    problem = _problem(loss, penalty)
    found = ct.solve(problem, engine="numpy")
    far = replace(found, w=found.w * times[0], u=found.u * times[1])
    again = ct.solve(problem, start=far, engine="numpy")
    assert again.status is ct.Status.OPTIMAL
    np.testing.assert_allclose(again.objective, found.objective, rtol=2e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.NotConverged)
        at_once = ct.solve(problem, start=far, max_iter=0, engine="numpy")
    proof = ct.certify(problem, far.w, far.u)
    assert at_once.gap >= 0
    assert max(at_once.dual_bound, proof.dual_bound) <= found.objective <= min(at_once.objective, proof.objective)


def _as(kind: str, x: np.ndarray) -> Any:
    if kind == "read-only":
        x = x.copy()
        x.setflags(write=False)
        return x
    return {"float32": x.astype(np.float32), "Fortran": np.asfortranarray(x), "list": x.tolist()}[kind]


@pytest.mark.parametrize("kind", ["read-only", "float32", "Fortran", "list"])
def test_starts_are_taken_in_every_form_and_left_alone(kind: str) -> None:
    problem = _problem(ct.SquaredError(), ct.TotalVariation())
    found = ct.solve(problem, engine="numpy")
    w, u = _as(kind, found.w), _as(kind, found.u)
    before = np.array(w), np.array(u)
    again = ct.solve(problem, 1e-9, start=replace(found, w=w, u=u), engine="numpy")
    assert again.status is ct.Status.OPTIMAL
    np.testing.assert_array_equal(before[0], w)
    np.testing.assert_array_equal(before[1], u)


@pytest.mark.parametrize(("side", "tol", "first"), [(90, 1e-6, 60), (90, 1e-4, 20), (20, 1e-6, 20)])
def test_large_problems_with_tight_gaps_are_looked_at_later(side: int, tol: float, first: int) -> None:
    rng, number = np.random.default_rng(0), np.arange(side * side).reshape(side, side)
    pairs = [np.stack([number[:-1], number[1:]], axis=-1), np.stack([number[:, :-1], number[:, 1:]], axis=-1)]
    graph = ct.EmpiricalGraph.from_edges(np.concatenate([one.reshape(-1, 2) for one in pairs]))
    X, y = rng.standard_normal((2 * side * side, 4)), rng.standard_normal(2 * side * side)
    data = ct.LocalDatasets.from_rows(X, y, np.repeat(np.arange(side * side), 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.NotConverged)
        found = ct.solve(ct.Problem(graph, data, lam=0.1), tol, max_iter=60, engine="numpy")
    assert [record.n_iter for record in found.history[:2]] == [0, first]
