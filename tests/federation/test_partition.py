from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coterie as ct
from coterie.federation.partition import partition
from problems import graphs, instance


@st.composite
def cut_graphs(draw: Any) -> tuple[ct.EmpiricalGraph, np.ndarray]:
    """Any graph, any assignment to parts 0, 1, … that leaves none empty."""
    graph = draw(graphs()).build()
    drawn = draw(st.lists(st.integers(0, 4), min_size=graph.n_nodes, max_size=graph.n_nodes))
    return graph, np.unique(drawn, return_inverse=True)[1]


@given(cut_graphs())
def test_every_edge_is_inside_one_part_or_cut_between_two(case: tuple[ct.EmpiricalGraph, np.ndarray]) -> None:
    graph, of = case
    parts, cut = partition(graph, of)
    inner = [e for part in parts for e in part.inner_edges]
    leaving = [e for part in parts for e in part.cut_edges]
    assert sorted(set(inner) | set(leaving)) == list(range(graph.n_edges))
    assert len(inner) + len(leaving) // 2 == graph.n_edges
    assert len(leaving) == 2 * cut.graph.n_edges
    assert sorted(n for part in parts for n in part.own) == list(range(graph.n_nodes))


@given(cut_graphs())
def test_parts_know_their_edges_boundary_and_halo(case: tuple[ct.EmpiricalGraph, np.ndarray]) -> None:
    graph, of = case
    weight = {(int(i), int(j)): a for (i, j), a in zip(graph.edges, graph.weights, strict=True)}
    parts, cut = partition(graph, of)
    for p, part in enumerate(parts):
        across = [(i, j) for i, j in weight if (of[i] == p) != (of[j] == p)]
        assert {(int(part.own[i]), int(part.own[j])): a for (i, j), a in _edges(part.graph)} == {
            e: a for e, a in weight.items() if of[e[0]] == of[e[1]] == p
        }
        assert set(part.own[part.boundary]) == {i if of[i] == p else j for i, j in across}
        assert set(part.halo) == {j if of[i] == p else i for i, j in across}
        assert list(cut.nodes[cut.of(p)]) == list(part.own[part.boundary])
    assert {(min(e), max(e)): a for e, a in _named(cut)} == {e: a for e, a in weight.items() if of[e[0]] != of[e[1]]}


def _edges(graph: ct.EmpiricalGraph) -> list[tuple[np.ndarray, float]]:
    return list(zip(graph.edges, graph.weights, strict=True))


def _named(cut: Any) -> list[tuple[tuple[int, int], float]]:
    return [((int(cut.nodes[i]), int(cut.nodes[j])), a) for (i, j), a in _edges(cut.graph)]


def test_one_part_has_no_boundary() -> None:
    graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)], n_nodes=4)
    (part,), cut = partition(graph, np.zeros(4, dtype=int))
    assert (part.graph.edges == graph.edges).all()
    assert part.boundary.size == part.halo.size == cut.nodes.size == cut.graph.n_edges == 0


def test_parts_of_single_nodes_have_no_inner_edge() -> None:
    graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)], n_nodes=4)
    parts, cut = partition(graph, np.arange(4))
    assert [part.graph.n_edges for part in parts] == [0, 0, 0, 0]
    assert [list(part.halo) for part in parts] == [[1], [0, 2], [1], []]
    assert (cut.graph.edges == graph.edges).all()


def test_the_problems_of_the_parts_and_the_cut_add_up_to_the_whole() -> None:
    problem = instance("few labelled")
    parts, cut = partition(problem.graph, np.arange(12) % 3)
    w = np.random.default_rng(0).standard_normal((12, 3))
    inside = sum(part.problem(problem).objective(w[part.own]) for part in parts)
    across = problem.penalty.value(cut.graph.D @ w[cut.nodes], problem.lam * cut.graph.weights)
    assert inside + across == pytest.approx(problem.objective(w), rel=1e-12)


@pytest.mark.parametrize(
    ("part_of", "message"),
    [
        ([0, 1], "one whole number for each of the 3 nodes"),
        ([0.0, 1.0, 1.0], "one whole number"),
        ([0, 2, 2], "part 1 has no node"),
        ([0, -1, 1], "node 1 is in part -1"),
    ],
)
def test_assignments_that_make_no_sense_are_refused(part_of: Any, message: str) -> None:
    graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)])
    with pytest.raises(ValueError, match=message):
        partition(graph, part_of)
