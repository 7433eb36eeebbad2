"""No bound above the objective of any weights that are known, on ugly data, compared in exact arithmetic."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from exactly import Exact, at_most, exact_objective
from problems import oracle, problems, ugly_problems


def solved(problem: ct.Problem, tol: float = 1e-9) -> ct.Solution:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.NotConverged)
        return ct.solve(problem, tol, max_iter=2000, time_limit=2.0)


def static_int(problem: ct.Problem, solution: ct.Solution) -> Iterator[np.ndarray]:
    """Weights that may be good: those of the solver and of another one, scaled, and one common least-squares fit."""
    yield solution.w
    yield solution.w * (1 + 1e-9)
    yield solution.w * 2
    yield np.zeros_like(solution.w)
    yield oracle_weights(problem)
    data = problem.data
    rows = ~np.isnan(data.y)
    if rows.any():
        fit = np.linalg.lstsq(data.X[rows], data.y[rows], rcond=1e-15)[0]
        yield np.tile(fit, (len(solution.w), 1))


def oracle_weights(problem: ct.Problem) -> np.ndarray:
    """Those of CVXPY, which knows no weights of rows, and breaks down on some such data."""
    w = np.zeros((problem.graph.n_nodes, problem.n_features))
    if (problem.data.weights == 1).all():
        with suppress(cp.SolverError, ValueError):
            w = oracle(problem).w
    return w


def below_all(proof: Any, reach: float, values: list[tuple[np.ndarray, Exact]]) -> None:
    """A conditional bound speaks of weights up to its reach only."""
    if not np.isfinite(proof.dual_bound):
        return
    for w, value in values:
        if proof.unconditional or np.abs(w).max(initial=0.0) <= reach:
            assert at_most(Fraction(proof.dual_bound), value)


def reach_of(condition: str) -> float:
    if not condition:
        return np.inf
    number = condition.removeprefix("some minimiser has no weight above ").removesuffix(" in absolute value")
    return float(number) * 0.99  # it is written with three digits


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(ugly_problems(), st.sampled_from([0.0, 1e-9, 1.0]), st.integers(0, 2**16))
def test_on_ugly_data(problem: ct.Problem, size: float, seed: int) -> None:
    solution = solved(problem)
    values = [(w, exact_objective(problem, w)) for w in static_int(problem, solution) if np.isfinite(w).all()]
    below_all(solution, reach_of(solution.condition), values)
    rng = np.random.default_rng(seed)
    w = solution.w + size * rng.standard_normal(solution.w.shape)
    u = solution.u + size * problem.lam * rng.standard_normal(solution.u.shape)
    proof = ct.certify(problem, w, u)
    below_all(proof, proof.bound.weight_bound, values)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(problems())
def test_on_ordinary_data(problem: ct.Problem) -> None:
    solution = solved(problem, 1e-12)
    values = [(w, exact_objective(problem, w)) for w in static_int(problem, solution)]
    below_all(solution, reach_of(solution.condition), values)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(ugly_problems())
def test_an_objective_is_what_it_says(problem: ct.Problem) -> None:
    """To 1e-12 of itself, or of the unit that gaps are measured in; of counts to 1e-10, as log y is rounded."""
    solution = solved(problem, 1e-6)
    truth = float(exact_objective(problem, solution.w))
    accuracy = 1e-10 if isinstance(problem.loss, ct.Poisson) else 1e-12
    assert abs(solution.objective - truth) <= accuracy * max(truth, 1e-8 * problem.constant_loss)
