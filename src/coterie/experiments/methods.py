"""The methods that are compared, each as a function from a network to an Outcome."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.datasets import SyntheticNetwork
from coterie.experiments.measures import label_error, predictions, weight_error
from coterie.experiments.settings import Setting
from coterie.problem.arrays import Array
from coterie.solver import Solution, Status, algorithm1, solve


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method reached on one network; nan and None where a quantity has no meaning."""

    method: str
    train: float
    test: float
    weight_error: float
    gap: float
    n_iter: int | None
    seconds: float
    w: Array | None = None


def certified_optimum(setting: Setting, network: SyntheticNetwork, tol: float = 1e-6) -> Outcome:
    """Solve the setting's problem to a certified gap."""
    solution = solve(setting.problem(network), tol)
    if solution.status is Status.INTERRUPTED:  # half an answer has no place in a comparison
        raise KeyboardInterrupt
    return _of_solution("certified optimum", network, solution)


def paper_iteration(setting: Setting, network: SyntheticNetwork) -> Outcome:
    """Algorithm 1 with the setting's steps and number of iterations."""
    solution = algorithm1(setting.problem(network), setting.n_iter, sigma=setting.sigma)
    return _of_solution("Algorithm 1", network, solution)


def linear_regression(network: SyntheticNetwork) -> Outcome:
    """One linear regression with intercept on the pooled points of all labelled nodes."""
    from sklearn.linear_model import LinearRegression

    return _pooled("linear regression", network, LinearRegression())


def decision_tree(network: SyntheticNetwork) -> Outcome:
    """One regression tree of depth 2 on the pooled points of all labelled nodes."""
    from sklearn.tree import DecisionTreeRegressor

    return _pooled("decision tree", network, DecisionTreeRegressor(max_depth=2, random_state=0))


def _of_solution(method: str, network: SyntheticNetwork, s: Solution) -> Outcome:
    train, test = label_error(network, predictions(network, s.w))
    return Outcome(method, train, test, weight_error(network, s.w), s.gap, s.n_iter, s.seconds, s.w)


def _pooled(method: str, network: SyntheticNetwork, model: Any) -> Outcome:
    rows = network.data.labelled
    began = time.perf_counter()
    model.fit(rows.X, rows.y)
    seconds = time.perf_counter() - began
    train, test = label_error(network, model.predict(network.data.X))
    return Outcome(method, train, test, np.nan, np.nan, None, seconds)
