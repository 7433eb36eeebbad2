"""Maximum flow and elimination on forests in NumPy, beside the compiled forms."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import coterie as ct
from coterie.kernels import route, tree, vector_buffer
from coterie.kernels.reference import route as plain
from coterie.kernels.reference import tree as plain_tree
from coterie.solver.whole.interior import Rooted
from problems import Graph, graphs

LEAST = 1e-12


@given(graphs(), st.integers(0, 999))
def test_as_much_flows_as_in_the_compiled_form(graph: Graph, seed: int) -> None:
    """And what is left of the excess can go where it can go there."""
    built, rng = graph.build(), np.random.default_rng(seed)
    V, E = built.n_nodes, built.n_edges
    assume(E > 0)
    c, fixed = rng.uniform(0.5, 9, E), rng.random((E, 1)) < 0.2
    given_u, given_rest = rng.uniform(-c, c)[:, None], rng.uniform(-6, 6, V) * (rng.random(V) < 0.7)
    left, reached = [], []
    for module in (route, plain):
        u, rest = given_u.copy(), given_rest.copy()
        level, room = np.empty(V, dtype=np.int64), np.empty(2 * E)
        module.rooms(0, c, fixed, u, room)
        for _ in range(100):
            if module.route(0, 20, *module.arcs_of(built.edges, V), u, room, rest, LEAST, level):
                break
        else:
            raise AssertionError("no end")
        np.testing.assert_allclose(rest, given_rest + (built.D.T @ (u - given_u)).ravel(), atol=1e-9)
        assert (np.abs(u.ravel()) <= c * (1 + 1e-12)).all()
        assert (u == given_u)[fixed].all()
        left.append(np.abs(rest).sum())
        reached.append(level >= 0)
    assert left[1] == pytest.approx(left[0], abs=1e-6)
    np.testing.assert_array_equal(reached[1], reached[0])


@given(graphs(), st.integers(0, 999))
def test_both_forms_sweep_along_the_same_trees(graph: Graph, seed: int) -> None:
    built, rng = graph.build(), np.random.default_rng(seed)
    V, E = built.n_nodes, built.n_edges
    assume(E > 0)
    c, fixed = rng.uniform(0.5, 9, E), rng.random((E, 1)) < 0.2
    given_u, given_rest, found = rng.uniform(-c, c)[:, None], rng.uniform(-6, 6, V), []
    for module in (route, plain):
        u, rest, room, again = given_u.copy(), given_rest.copy(), np.empty(2 * E), np.empty(2 * E)
        module.rooms(0, c, fixed, u, room)
        module.sweep(0, *module.arcs_of(built.edges, V), u, room, rest)
        np.testing.assert_allclose(rest, given_rest + (built.D.T @ (u - given_u)).ravel(), atol=1e-9)
        module.rooms(0, c, fixed, u, again)
        np.testing.assert_allclose(again, room, atol=1e-9)
        assert (np.abs(u.ravel()) <= c * (1 + 1e-12)).all()
        assert (u == given_u)[fixed].all()
        found.append(u)
    np.testing.assert_allclose(found[0], found[1], atol=1e-12)


def test_a_sweep_takes_all_that_is_small_everywhere_away() -> None:
    edges = np.stack([np.arange(9), np.arange(1, 10)], axis=1)
    u, rest, room = np.zeros((9, 1)), 0.01 * np.random.default_rng(0).standard_normal(10), np.ones(18)
    rest -= rest.mean()
    route.sweep(0, *route.arcs_of(edges, 10), u, room, rest)
    np.testing.assert_allclose(rest, 0, atol=1e-15)


@given(graphs())
def test_arcs(graph: Graph) -> None:
    built = graph.build()
    for compiled, numpy in zip(*(m.arcs_of(built.edges, built.n_nodes) for m in (route, plain)), strict=True):
        np.testing.assert_array_equal(numpy, compiled)


@pytest.mark.parametrize("n", [1, 3, 12])
def test_elimination(n: int) -> None:
    rng = np.random.default_rng(n)
    graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (1, 3), (4, 5), (5, 6)], n_nodes=8)
    labelled = np.array([0, 2, 3, 5, 7])
    place = np.full(8, -1)
    place[labelled] = np.arange(5)
    rooted, B = Rooted.of(SimpleNamespace(graph=graph)), rng.standard_normal((5, n, n + 2))
    H, theta, b = B @ B.transpose(0, 2, 1), rng.uniform(0.1, 2, (graph.n_edges, n)), rng.standard_normal((8, n))
    found = []
    for module in (tree, plain_tree):
        S, x = np.empty((8, n, n)), np.empty((8, n))
        module.eliminate(vector_buffer(n), rooted.order, rooted.parent, rooted.via, place, H, theta, S)
        module.substitute(rooted.order, rooted.parent, rooted.via, theta, S, b.copy(), x)
        found.append(x)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-7, atol=1e-9)


def test_a_singular_block_ends_in_nan_and_not_in_an_error() -> None:
    one, none = np.zeros(1, dtype=np.int64), np.full(1, -1)
    S = np.empty((1, 2, 2))
    H = np.array([[[1.0, 1.0], [1.0, 1.0]]])
    plain_tree.eliminate(None, one, none, none, one, H * 2.0**60, np.empty((0, 2)), S)
    assert not np.isfinite(S).all() or np.abs(S).max() > 1e-6
    plain_tree.eliminate(None, one, none, none, one, np.zeros((1, 2, 2)), np.empty((0, 2)), S)
    assert np.abs(S).max() > 1e200
    np.testing.assert_array_equal(plain_tree._inverse(np.ones((2, 2))), np.nan)
