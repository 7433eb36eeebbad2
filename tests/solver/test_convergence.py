"""A hundred random problems, most of them badly scaled: a certified answer, or a warning and a true bound."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.engines.arrays import ArrayProver
from coterie.solver.certificate import Certifier
from pairs import in_pairs
from problems import EVERY_LOSS, EVERY_PENALTY, FIRST_LOSSES, oracle, outside_domain, rows_of

TOL, MAX_ITER = 1e-6, 20_000
GRAPHS = ("star", "complete", "tree", "path", "random")


@dataclass(frozen=True)
class Draw:
    """Everything that a random problem depends on; `build` makes it."""

    graph: str
    V: int
    n: int
    m: int
    labelled: float
    loss: ct.Loss
    penalty: ct.Penalty
    unit: float  # of the features
    share: float  # λ, as a part of the largest useful one
    seed: int

    def build(self) -> ct.Problem:
        rng = np.random.default_rng(self.seed)
        edges = edges_of(self.graph, self.V, rng)
        weights = 10 ** rng.normal(0.0, 1.0, len(edges))  # six orders of magnitude from −3σ to 3σ
        X, y, nodes = rows_of(self.loss, rng.standard_normal((self.V, self.n)), self.m, rng)
        hidden = rng.random(self.V) >= self.labelled
        hidden[rng.integers(self.V)] = False
        y[hidden[nodes]] = np.nan
        problem = ct.Problem(
            ct.EmpiricalGraph.from_edges(edges, weights, n_nodes=self.V),
            ct.LocalDatasets.from_rows(self.unit * X, y, nodes, n_nodes=self.V),
            self.loss,
            ct.TotalVariation(),
        )
        largest = ct.largest_useful_lam(problem) or 1.0
        return replace(problem, penalty=self.penalty, lam=self.share * largest)


def edges_of(graph: str, V: int, rng: np.random.Generator) -> np.ndarray:
    i, j = np.triu_indices(V, 1)
    if graph == "star":
        keep = i == 0
    elif graph == "complete":
        keep = i < j
    elif graph == "path":
        keep = j == i + 1
    elif graph == "tree":
        keep = i == np.concatenate([[0], [rng.integers(k) for k in range(1, V)]]).astype(int)[j]
    else:
        keep = rng.random(len(i)) < 4 / V
    return np.stack([i[keep], j[keep]], axis=1)


@st.composite
def draws(draw: Any) -> Draw:
    return Draw(
        graph=draw(st.sampled_from(GRAPHS)),
        V=draw(st.integers(2, 20)),
        n=draw(st.integers(2, 3)),
        m=draw(st.sampled_from([1, 2, 5])),
        labelled=draw(st.sampled_from([0.2, 0.6, 1.0])),
        loss=draw(st.sampled_from(EVERY_LOSS)),
        penalty=draw(st.sampled_from(EVERY_PENALTY)),
        unit=draw(st.sampled_from([1e-3, 1.0, 1e3])),
        share=10.0 ** draw(st.integers(-6, 0)),
        seed=draw(st.integers(0, 2**16)),
    )


def meets(condition: str, w: np.ndarray) -> bool:
    """Whether w has no weight above the one that the condition of a bound names."""
    found = re.search(r"no weight above (\S+) in absolute value", condition)
    return found is None or bool(np.abs(w).max() <= float(found.group(1)))


def check(problem: ct.Problem) -> ct.Solution:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = ct.solve(problem, TOL, max_iter=MAX_ITER, time_limit=2.0)
    best = oracle(problem)
    slack = 1e-10 * (abs(best.value) + problem.constant_loss)
    if meets(solution.condition, best.w):
        assert solution.dual_bound <= best.value + slack
        if solution.status is ct.Status.OPTIMAL:
            assert solution.objective <= best.value * (1 + TOL) + slack
    assert outside_domain(problem, solution.u) <= 1e-14 * problem.c.max(initial=0.0)
    again = Certifier(ArrayProver(problem.bound))(solution.w, solution.u, rounds=0)
    assert again.objective == pytest.approx(solution.objective, rel=1e-12)
    if meets(again.condition, best.w):
        assert again.dual_bound <= best.value + slack
    if solution.status is ct.Status.OPTIMAL:
        assert not caught
        assert solution.gap <= TOL
    else:
        assert [w.category for w in caught] == [ct.NotConverged]
        assert f"{solution.gap:.2e}" in str(caught[0].message)
    return solution


@pytest.mark.parametrize(
    ("parts", "graph", "unit", "share"),
    in_pairs(list(product(FIRST_LOSSES, EVERY_PENALTY)), GRAPHS, [1e-3, 1.0, 1e3], [1e-6, 1e-3, 1.0]),
    ids=str,
)
def test_it_converges_on_every_kind_of_graph(
    parts: tuple[ct.Loss, ct.Penalty], graph: str, unit: float, share: float
) -> None:
    draw = Draw(graph, 15, 3, 5, 0.6, *parts, unit, share, seed=1)
    assert check(draw.build()).status is ct.Status.OPTIMAL


@pytest.mark.parametrize("share", [1e-5, 1e-2])
def test_classes_that_cannot_be_separated_need_no_condition(share: float) -> None:
    """Their level sets are bounded, and the rows prove it, without any ridge."""
    draw = Draw("path", 3, 2, 1, 0.2, ct.Logistic(), ct.GroupTotalVariation(), 1e-3, share, seed=8886)
    solution = ct.solve(draw.build(), TOL)
    assert solution.status is ct.Status.OPTIMAL
    assert solution.unconditional


def test_the_weights_meet_the_condition_of_their_bound() -> None:
    """Classes that can be separated: no minimiser exists, and no bound is called unconditional."""
    data = ct.LocalDatasets.from_rows([[1.0, 2.0], [1.0, -2.0]], [1.0, 0.0], [0, 2], n_nodes=3)
    problem = ct.Problem(ct.EmpiricalGraph.from_edges([[0, 1], [1, 2]]), data, ct.Logistic(), lam=1e-3)
    with pytest.warns(ct.NotConverged, match="The bound holds if some minimiser has no weight above"):
        solution = ct.solve(problem, TOL)
    assert solution.status is ct.Status.CONDITIONAL
    assert not solution.unconditional
    assert meets(solution.condition, solution.w)
    assert solution.dual_bound <= solution.objective


@pytest.mark.slow
@settings(max_examples=100)
@given(draws())
def test_a_certified_answer_or_a_warning(draw: Draw) -> None:
    check(draw.build())


@pytest.mark.parametrize("alpha", [0.0, 1e-6])
def test_lasso_with_nearly_parallel_columns(alpha: float) -> None:
    """With squared error alone, the same problem is solved before the first iteration."""
    data = ct.LocalDatasets.from_rows([[1.0, 0.999], [1.0, 1.0]], [1.0, 0.0], [0, 0], n_nodes=2)
    problem = ct.Problem(ct.EmpiricalGraph.from_edges([[0, 1]]), data, ct.Lasso(alpha), lam=1e-4)
    assert check(problem).status is ct.Status.OPTIMAL
