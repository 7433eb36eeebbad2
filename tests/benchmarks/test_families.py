from __future__ import annotations

import numpy as np
import pytest

import coterie as ct
from benchmarks.families import DEGREE, FAMILIES, grid_edges

TINY = 0.02


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "f"])
def test_a_seed_gives_one_problem(name):
    one, same, other = (FAMILIES[name].build(TINY, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.graph.edges, same.graph.edges)
    np.testing.assert_array_equal(one.data.X, same.data.X)
    np.testing.assert_array_equal(one.data.y, same.data.y)
    assert not np.array_equal(one.data.y, other.data.y, equal_nan=True)


@pytest.mark.parametrize("name", FAMILIES)
def test_tiny_problems_are_worth_solving(name):
    """Their optimum is neither that of separate nodes nor that of one common weight."""
    problem = FAMILIES[name].build(TINY / 20 if name == "f" else TINY, 0)
    solution = ct.solve(problem)
    assert solution.gap <= 1e-6
    assert solution.objective > 1e-5 * problem.constant_loss
    assert (solution.w != solution.w[0]).any()


@pytest.mark.parametrize(("name", "across"), [("b", 0.02), ("b2", 0.1)])
def test_the_block_models_are_as_the_table_says(name, across):
    problem = FAMILIES[name].build(1.0, 0)
    assert problem.graph.n_nodes == 2000
    assert problem.graph.degrees.mean() == pytest.approx(DEGREE, rel=0.03)
    i, j = problem.graph.edges.T // 500
    assert (i != j).mean() == pytest.approx(across, rel=0.2)
    assert len(problem.M) == 400


def test_grid_edges():
    assert sorted(map(tuple, grid_edges(2))) == [(0, 1), (0, 2), (1, 3), (2, 3)]
