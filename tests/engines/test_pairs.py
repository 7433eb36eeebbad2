"""Dual ascent in pairs: the matchings, one edge after the other done naively, and the answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.engines.base import Mode
from coterie.engines.numba import NumbaEngine
from coterie.engines.pairs import PairsEngine
from coterie.kernels.pairs import matchings
from coterie.solver import driver
from coterie.solver.balance import MOST_EDGES, Steps, suit_pairs
from problems import Graph, graphs, oracle

DECADES = st.floats(-3, 3).map(lambda power: 10.0**power)


def denoising(graph: ct.EmpiricalGraph, seed: int = 0, lam: float = 0.3, X: np.ndarray | None = None) -> ct.Problem:
    """One row at every node."""
    rng, V = np.random.default_rng(seed), graph.n_nodes
    X = rng.uniform(1.0, 1.5, V) if X is None else X
    data = ct.LocalDatasets.from_rows(X[:, None], rng.standard_normal(V), np.arange(V))
    return ct.Problem(graph, data, lam=lam)


def grid(side: int) -> ct.EmpiricalGraph:
    node = np.arange(side * side).reshape(side, side)
    across = np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], axis=1)
    return ct.EmpiricalGraph.from_edges(
        np.concatenate([across, np.stack([node[:-1].ravel(), node[1:].ravel()], axis=1)])
    )


def stars(leaves: int, count: int) -> ct.EmpiricalGraph:
    """Stars whose hubs form a path."""
    hubs = np.arange(count) * (leaves + 1)
    rays = np.stack([np.repeat(hubs, leaves), (hubs[:, None] + np.arange(1, leaves + 1)).ravel()], axis=1)
    return ct.EmpiricalGraph.from_edges(np.concatenate([rays, np.stack([hubs[:-1], hubs[1:]], axis=1)]))


def check_matchings(graph: ct.EmpiricalGraph) -> np.ndarray:
    matching = matchings(graph.edges.astype(np.uint32), graph.n_nodes)
    for k in range(matching.max(initial=0) + 1):
        ends = graph.edges[matching == k].ravel()
        assert len(ends) == len(set(ends.tolist()))
    return matching


@given(graphs(largest=12))
def test_edges_of_a_matching_share_no_node(graph: Graph) -> None:
    check_matchings(graph.build())


def test_a_grid_is_four_matchings_and_many_edges_at_a_node_fit() -> None:
    assert check_matchings(grid(12)).max() == 3
    i, j = np.triu_indices(MOST_EDGES + 1, 1)
    assert check_matchings(ct.EmpiricalGraph.from_edges(np.stack([i, j], axis=1))).max() < 64


class Naive:
    """The same, edge by edge, with the weights computed anew for each."""

    def __init__(self, problem: ct.Problem, u: np.ndarray, order: np.ndarray) -> None:
        self.problem, self.order = problem, order
        self.u, self.u0, self.k = u.copy(), u.copy(), 0

    def weights(self, u: np.ndarray) -> np.ndarray:
        """argmin Σ h/2 (w − ŵ)² + ⟨Dᵀu, w⟩."""
        X, y = self.problem.data.X[:, 0], self.problem.data.y
        return y / X - (self.problem.graph.D.T @ u)[:, 0] / (2 * X**2)

    def advance(self) -> float:
        momentum, h, total = self.k / (self.k + 3), 2 * self.problem.data.X[:, 0] ** 2, 0.0
        before, now = self.u0.copy(), self.u.copy()
        for e in self.order:
            i, j = self.problem.graph.edges[e]
            sigma, x = 1 / (1 / h[i] + 1 / h[j]), self.weights(now)
            best = np.clip(now[e, 0] + sigma * (x[i] - x[j]), -self.problem.c[e], self.problem.c[e])
            total += (best - now[e, 0]) ** 2 / sigma
            now[e] = best
        self.u0, self.u, self.k = now, now + momentum * (now - before), self.k + 1
        return float(np.sqrt(total))

    def restart(self) -> None:
        self.u, self.k = self.u0.copy(), 0


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("equal", [True, False])
def test_every_edge_is_solved_in_turn(threads: int, equal: bool) -> None:
    graph = grid(5)
    problem = denoising(graph, X=np.full(25, 1.3) if equal else None)
    u = np.random.default_rng(1).uniform(-0.3, 0.3, (graph.n_edges, 1))
    engine = PairsEngine(threads)
    engine.setup(problem, np.zeros((25, 1)), u)
    naive = Naive(problem, u, np.argsort(matchings(graph.edges.astype(np.uint32), 25), kind="stable"))
    for n_iter in (1, 4, 2):
        r = engine.advance(n_iter, Mode.PAIRS)
        assert r == pytest.approx([naive.advance() for _ in range(n_iter)][-1], rel=1e-9)
        w, duals = engine.point()
        np.testing.assert_allclose(duals, naive.u0, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(w[:, 0], naive.weights(naive.u0), rtol=1e-9, atol=1e-12)
        if n_iter == 4:
            engine.restart()
            naive.restart()


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(graph=graphs(largest=8), lam=DECADES, data=st.data())
def test_curvatures_and_strengths_over_decades(graph: Graph, lam: float, data: Any) -> None:
    """Plain steps without momentum come near the solution whatever the data are: each solves an edge exactly."""
    built = graph.build()
    assume(built.n_edges > 0)
    X = np.array(data.draw(st.lists(DECADES, min_size=built.n_nodes, max_size=built.n_nodes))) ** 0.3
    problem = denoising(built, lam=lam, X=X)
    engine = PairsEngine()
    engine.setup(problem, np.zeros((built.n_nodes, 1)), np.zeros((built.n_edges, 1)))
    for _ in range(3000):
        engine.advance(1, Mode.PAIRS)
        engine.restart()
    w, u = engine.point()
    assert (np.abs(u[:, 0]) <= problem.c).all()
    assert problem.objective(w) == pytest.approx(oracle(problem).value, rel=2e-2, abs=1e-8)


def test_where_it_applies() -> None:
    problem = denoising(grid(6))
    assert suit_pairs(problem)
    assert Steps.in_pairs().modes == (Mode.PAIRS,)
    assert not suit_pairs(denoising(grid(6), lam=0.0))
    assert not suit_pairs(denoising(stars(MOST_EDGES + 1, 2)))
    assert not suit_pairs(denoising(grid(6), X=np.random.default_rng(0).standard_normal(36) ** 3))
    assert not suit_pairs(ct.Problem(problem.graph, problem.data, penalty=ct.SquaredVariation(), lam=0.3))
    rows = ct.LocalDatasets.from_rows(np.ones((35, 1)), np.ones(35), np.arange(35), n_nodes=36)
    assert not suit_pairs(ct.Problem(problem.graph, rows, lam=0.3))
    assert not suit_pairs(ct.Problem(problem.graph, problem.data, ct.Lasso(0.1), lam=0.3))


@pytest.mark.parametrize("lam", [0.05, 0.5, 5.0])
def test_as_certified_as_by_other_ways(lam: float, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = denoising(grid(25), lam=lam)
    found = ct.solve(problem, 1e-8)
    monkeypatch.setattr(driver, "suit_pairs", lambda problem: False)
    other = ct.solve(problem, 1e-8)
    assert found.status is other.status is ct.Status.OPTIMAL
    assert found.unconditional
    assert found.objective == pytest.approx(other.objective, rel=1e-7)
    assert found.n_iter <= other.n_iter


@pytest.mark.slow
def test_momentum_that_runs_away_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves of a star hear of each other only through their hub: there, matchings undo each other's momentum."""
    problem = denoising(stars(30, 60), lam=20 / 2, X=np.ones(60 * 31))
    monkeypatch.setattr(driver, "FOREST", 10**9)
    used: list[str] = []
    setup = NumbaEngine.setup
    monkeypatch.setattr(NumbaEngine, "setup", lambda self, *args: (used.append("plain"), setup(self, *args))[1])
    assert suit_pairs(problem)
    solution = ct.solve(problem, engine="numba")
    assert solution.status is ct.Status.OPTIMAL
    assert used
