"""Groups that strong edges hold together: what they cost is never above the truth, compared in exact arithmetic."""

from __future__ import annotations

import warnings
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.proofs.enclosure import Enclosure
from coterie.proofs.hierarchy import Level, alone, cheapest, levels_between, levels_of
from coterie.proofs.rest import Rest
from exactly import fractions, inner
from problems import EVERY_LOSS, EVERY_PENALTY, rows_of

pytestmark = pytest.mark.usefixtures("compiled_kernels")

SEEDS = st.integers(0, 2**32)


def uneven(seed: int, loss: ct.Loss | None = None, penalty: ct.Penalty | None = None) -> ct.Problem:
    """A random graph whose edges have weights over twelve decades; some nodes have no label."""
    rng = np.random.default_rng(seed)
    V = int(rng.integers(3, 8))
    i, j = np.triu_indices(V, 1)
    keep = rng.random(len(i)) < 0.5
    keep[0] = True
    loss = loss or ct.SquaredError()
    sizes = rng.integers(0, 5, V)
    sizes[0] = 5
    X, y, nodes = rows_of(loss, rng.standard_normal((V, 3)), sizes, rng)
    data = ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=V)
    weights = 10.0 ** rng.uniform(-6, 6, int(keep.sum()))
    graph = ct.EmpiricalGraph.from_edges(np.stack([i[keep], j[keep]], axis=1), weights, n_nodes=V)
    return ct.Problem(graph, data, loss, penalty or ct.TotalVariation(), 0.1)


def reached(problem: ct.Problem, strength: float, start: int) -> set[int]:
    """Nodes that edges of at least this strength lead to, found the slow way."""
    found, more = {start}, True
    while more:
        ends = [set(e.tolist()) for e, c in zip(problem.graph.edges, problem.c, strict=True) if c >= strength]
        larger = found.union(*(pair for pair in ends if pair & found))
        found, more = larger, len(larger) > len(found)
    return found


@given(SEEDS)
def test_groups_are_what_strong_edges_join(seed: int) -> None:
    problem = uneven(seed)
    levels = [alone(problem), *levels_of(problem, problem.c)]
    for level in levels:
        for i in range(problem.graph.n_nodes):
            group = set(np.flatnonzero(level.group == level.group[i]).tolist())
            assert group == reached(problem, level.strength, i)
            assert (level.labelled[i] >= 0) == bool(group & set(problem.M.tolist()))
            if level.labelled[i] >= 0:
                assert level.sizes[level.labelled[i]] == len(group)
                assert set(np.flatnonzero(level.labelled == level.labelled[i]).tolist()) == group
    for lower, upper in pairwise(levels):  # every group lies in one of the next level
        assert len(np.unique(np.stack([lower.group, upper.group]), axis=1).T) == lower.group.max() + 1
    assert (np.diff([level.strength for level in levels]) < 0).all()


def test_edges_of_one_size_have_no_levels_between() -> None:
    graph = ct.EmpiricalGraph.from_edges([[0, 1], [1, 2]], [1.0, 2.0])
    data = ct.LocalDatasets.from_rows(np.eye(3), np.ones(3), [0, 1, 2])
    assert levels_between(ct.Problem(graph, data)) == []
    assert levels_between(ct.Problem(graph, data, lam=0.0)) == []
    assert levels_of(ct.Problem(graph, data, lam=0.0), np.zeros(2)) == []


def exact_cheapest(cost: list[Fraction | None], levels: list[tuple[Level, np.ndarray]]) -> list[Fraction | None]:
    """What each group of the last level costs; None for −∞. Groups stand for their first nodes."""
    costs: dict[frozenset[int], Fraction | None] = {frozenset([i]): one for i, one in enumerate(cost)}
    for level, charges in levels:
        merged: dict[frozenset[int], Fraction | None] = {}
        for g in range(int(level.group.max()) + 1):
            nodes = frozenset(np.flatnonzero(level.group == g).tolist())
            parts = [value for key, value in costs.items() if key <= nodes]
            number = level.labelled[min(nodes)]
            ways = [] if None in parts else [sum(parts, Fraction(0))]
            if number >= 0 and np.isfinite(charges[number]):
                ways.append(Fraction(float(charges[number])))
            merged[nodes] = max(ways, default=None)
        costs = merged
    return [costs[frozenset(np.flatnonzero(level.group == g).tolist())] for g in range(int(level.group.max()) + 1)]


@settings(max_examples=150)
@given(SEEDS, st.booleans())
def test_the_cheapest_way_in_exact_arithmetic(seed: int, both_signs: bool) -> None:
    """Charges over thirty decades, of both signs so that they nearly cancel, and −∞ among them."""
    problem, rng = uneven(seed), np.random.default_rng(seed)
    V = problem.graph.n_nodes

    def charges(count: int) -> np.ndarray:
        size = 10.0 ** rng.choice([0.0, 0.0, rng.uniform(-20, 10)], count) * rng.choice([0.1, 1 / 3, 1.0], count)
        values = size * (rng.choice([-1.0, 1.0], count) if both_signs else -1.0)
        return np.where(rng.random(count) < 0.2, -np.inf, values)

    levels = [(level, charges(len(level.sizes))) for level in [alone(problem), *levels_of(problem, problem.c)]]
    cost, top = charges(V), levels[-1][0].group
    found = cheapest(cost, levels, top, int(top.max()) + 1)
    truth = exact_cheapest([Fraction(float(one)) if np.isfinite(one) else None for one in cost], levels)
    for value, exact in zip(found, truth, strict=True):
        assert (value == -np.inf) == (exact is None)
        if exact is not None:
            assert Fraction(float(value)) <= exact


def test_sums_that_cancel_are_rounded_down() -> None:
    """.1 is carried by three nodes in parts that add up to more, beside −.1: what is left is all rounding."""
    group = np.array([0, 0, 0, 1])
    low = Level(1.0, group, group, np.array([3, 1]))
    top = np.zeros(4, dtype=np.int64)
    high = Level(0.1, top, top, np.array([4]))
    for size in 10.0 ** np.arange(-3, 10) / 3:
        cost = np.full(4, -np.inf)
        found = cheapest(cost, [(low, np.array([size, -size])), (high, np.array([-np.inf]))], top, 1)
        assert -1e-14 * size <= found[0] <= 0


@given(SEEDS)
def test_long_sums_are_rounded_down(seed: int) -> None:
    cost = np.random.default_rng(seed).standard_normal(500)
    found = cheapest(np.append(cost, -cost), [], np.zeros(1000, dtype=np.int64), 1)
    assert -1e-9 <= found[0] <= 0


def test_a_group_without_labels_costs_nothing_only_if_nothing_is_left() -> None:
    group, labelled = np.array([0, 0, 1]), np.array([-1, -1, 0])
    level = Level(1.0, group, labelled, np.array([1]))
    assert cheapest(np.array([0.0, 0.0, -1.0]), [(level, np.array([-0.5]))], group, 2)[0] == 0
    assert cheapest(np.array([-np.inf, 0.0, 0.0]), [(level, np.array([-0.5]))], group, 2)[0] == -np.inf


@pytest.mark.slow
@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
@settings(max_examples=25)
@given(st.sampled_from(EVERY_LOSS), SEEDS, st.sampled_from([0.0, 1e-3, 1.0]))
def test_charges_by_level(penalty: ct.Penalty, loss: ct.Loss, seed: int, far: float) -> None:
    """Never above Σ⟨ρ, z − w⟩, for any z whose objective is the level: nearly constant on strong edges, and not."""
    problem, rng = uneven(seed, loss, penalty), np.random.default_rng(seed)
    enclosure, shape = Enclosure(problem.bound), (problem.graph.n_nodes, 3)
    rho = rng.standard_normal(shape) * rng.integers(0, 2, shape)
    rho[problem.undetermined] = 0.0
    z = solution(problem) + far * rng.standard_normal(shape) / (1 + 1e3 * strongest(problem))[:, None]
    w = z + rng.standard_normal(shape)
    shares = enclosure._share_of(above(problem, z), enclosure._own.floors)
    caps, rest = enclosure._caps(above(problem, z)), Rest(rho, np.zeros(shape), w)
    assume(enclosure._levels)
    charges = enclosure._by_level(rest, shares, caps, enclosure._own_charges(rest, shares, caps))
    for g, charge in enumerate(charges):
        own = enclosure._labelled_component == g
        moved = [a - b for a, b in zip(fractions(z[own].ravel()), fractions(w[own].ravel()), strict=True)]
        assert charge == -np.inf or Fraction(float(charge)) <= inner(rho[own].ravel(), moved)


def above(problem: ct.Problem, z: np.ndarray) -> float:
    return problem.objective(z) * (1 + 1e-12)


def strongest(problem: ct.Problem) -> np.ndarray:
    """The strongest edge of each node."""
    c = np.zeros(problem.graph.n_nodes)
    np.maximum.at(c, problem.graph.edges.ravel(), np.repeat(problem.c, 2))
    return c


def solution(problem: ct.Problem) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.NotConverged)
        return ct.solve(problem, 1e-6, max_iter=400, time_limit=1.0).w
