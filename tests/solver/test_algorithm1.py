from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

import coterie as ct
from pairs import in_pairs
from problems import EVERY_PENALTY, FIRST_LOSSES, KINDS, instance, naive_objective, rows_of_node

LAST_BITS = 8 * np.finfo(float).eps


@dataclass
class Node:
    """One local dataset. It knows its own data and hears from its own edges, and from nobody else."""

    w: np.ndarray
    tau: float
    PU: Callable[[np.ndarray, np.ndarray], np.ndarray] | None  # none without labels

    def update(self, messages: list[np.ndarray]) -> np.ndarray:
        """Take (Dᵀu)_i's terms from the edges; return the message 2w⁺ − w for all of them."""
        flow = np.zeros_like(self.w)
        for message in messages:
            flow = flow + message
        v, before = self.w - self.tau * flow, self.w
        self.w = v if self.PU is None else self.PU(v, before)
        return 2 * self.w - before


@dataclass
class Edge:
    """One edge {i, j}, i < j. It hears from its two nodes."""

    i: int
    j: int
    c: float
    u: np.ndarray

    def update(self, penalty: ct.Penalty, sigma: float, from_i: np.ndarray, from_j: np.ndarray) -> None:
        moved = self.u + sigma * (from_i - from_j)
        self.u = penalty.dual_step(moved[None], np.array([self.c]), np.array([sigma]))[0]


def message_passing(problem: ct.Problem, n_iter: int, sigma: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1 with no global array: only messages between a node and its own edges."""
    n = problem.n_features
    edges = [Edge(int(i), int(j), c, np.zeros(n)) for (i, j), c in zip(problem.graph.edges, problem.c, strict=True)]
    own = [[(e, 1 if e.i == i else -1) for e in edges if i in (e.i, e.j)] for i in range(problem.graph.n_nodes)]
    nodes = []
    for i, around in enumerate(own):
        tau = 1 / max(len(around), 1)
        PU = primal_update(problem, i, tau)
        start = np.zeros(n) if around or PU is None else own_minimiser(problem, i)
        nodes.append(Node(start, tau, PU))
    for _ in range(n_iter):
        said = [node.update([sign * e.u for e, sign in around]) for node, around in zip(nodes, own, strict=True)]
        for e in edges:
            e.update(problem.penalty, sigma, said[e.i], said[e.j])
    return np.array([node.w for node in nodes]), np.array([e.u for e in edges]).reshape(-1, n)


def local_loss(problem: ct.Problem, i: int):
    """The loss of one node, bound to its rows alone; None without labels."""
    if i not in problem.M:
        return None
    X, y = rows_of_node(problem.data.labelled, int(np.searchsorted(problem.M, i)))
    return problem.loss.bind(ct.LocalDatasets.from_rows(X, y, np.zeros(len(y), dtype=int)).labelled)


def primal_update(problem: ct.Problem, i: int, tau: float) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    f = local_loss(problem, i)
    return None if f is None else lambda v, before: f.prox(v[None], np.array([tau]), before[None])[0]


def own_minimiser(problem: ct.Problem, i: int) -> np.ndarray:
    return local_loss(problem, i).pooled(np.array([0]), 1)[0][0]


def iterates(problem: ct.Problem, n_iter: int) -> tuple[np.ndarray, np.ndarray]:
    """The last w and u of ct.algorithm1, before the certificate repairs u."""
    last = []
    ct.algorithm1(problem, n_iter, callback=lambda k, w, u: last.append((w, u)))
    return last[-1]


@pytest.mark.parametrize(("kind", "loss", "penalty"), in_pairs(KINDS, FIRST_LOSSES, EVERY_PENALTY), ids=str)
def test_messages_between_neighbours_are_enough(loss: ct.Loss, penalty: ct.Penalty, kind: str) -> None:
    """Both forms agree to the last bits where PU_i has a closed form, and otherwise to its inner accuracy.

    (An inner solve for many nodes at once goes on until the slowest is done; a node by itself stops earlier.)
    """
    problem = instance(kind, loss, penalty)
    w, u = iterates(problem, 30)
    w_messages, u_messages = message_passing(problem, 30)
    accuracy = LAST_BITS if isinstance(loss, ct.SquaredError) else 1e-10
    np.testing.assert_allclose(w, w_messages, rtol=0, atol=accuracy)
    np.testing.assert_allclose(u, u_messages, rtol=0, atol=accuracy)


def test_the_closed_form_of_the_paper_gives_the_same_iterates() -> None:
    """PU_i(v) = (I + (2τ/m_i) XᵀX)⁻¹ (v + (2τ/m_i) Xᵀy), with the 1/m_i that the print drops."""
    problem = instance("weighted edges")
    D, V, n = problem.graph.D.toarray(), problem.graph.n_nodes, problem.n_features
    w, u = np.zeros((V, n)), np.zeros((len(D), n))
    for _ in range(100):
        w_next = np.empty_like(w)
        for i in range(V):
            tau = 1 / problem.graph.degrees[i]
            v = w[i] - tau * D[:, i] @ u
            X, y = rows_of_node(problem.data.labelled, i)
            step = 2 * tau / len(y)
            w_next[i] = np.linalg.solve(np.eye(n) + step * X.T @ X, v + step * X.T @ y)
        c = problem.c[:, None]
        u, w = np.clip(u + 0.5 * D @ (2 * w_next - w), -c, c), w_next
    np.testing.assert_allclose(np.hstack([*iterates(problem, 100)[0]]), w.ravel(), rtol=1e-11, atol=1e-12)


def test_the_experiment_as_printed_stays_at_an_error_of_about_7() -> None:
    """Two clusters of 150, λ = 1e-3, 30 labelled nodes, 500 iterations: 7.2 at the start, 6.85 in the end."""
    rng = np.random.default_rng(0)
    V, cluster = 300, np.repeat([0, 1], 150)
    i, j = np.triu_indices(V, 1)
    keep = rng.random(len(i)) < np.where(cluster[i] == cluster[j], 0.5, 1e-3)
    truth = np.array([[2.0, 2.0], [-2.0, 2.0]])[cluster]
    X, nodes = rng.standard_normal((5 * V, 2)), np.repeat(np.arange(V), 5)
    labelled = rng.choice(V, 30, replace=False)
    y = np.where(np.isin(nodes, labelled), (X * truth[nodes]).sum(axis=1), np.nan)
    problem = ct.Problem(
        ct.EmpiricalGraph.from_edges(np.stack([i[keep], j[keep]], axis=1), n_nodes=V),
        ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=V),
        lam=1e-3,
    )
    unlabelled = np.setdiff1d(np.arange(V), labelled)
    w, _ = iterates(problem, 500)
    assert (truth[unlabelled] ** 2).sum() / V == pytest.approx(7.2)
    assert ((w - truth)[unlabelled] ** 2).sum() / V == pytest.approx(6.85, abs=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_the_solution_certifies_its_own_weights(kind: str) -> None:
    problem = instance(kind)
    solution = ct.algorithm1(problem, 200)
    assert solution.status is ct.Status.ITERATIONS_DONE
    assert solution.n_iter == 200
    assert solution.objective == pytest.approx(naive_objective(problem, solution.w), rel=1e-12)
    assert solution.dual_bound <= solution.objective
    assert solution.history[-1].gap == solution.gap
    np.testing.assert_array_equal(solution.undetermined, problem.undetermined)


def test_without_coupling_every_node_finds_its_own_minimiser() -> None:
    problem = instance("weighted edges", lam=0.0)
    own, _ = problem.f.pooled(np.arange(12), 12)
    solution = ct.algorithm1(problem, 2000)
    np.testing.assert_allclose(solution.w, own, rtol=1e-8)
    assert not solution.u.any()
    assert solution.gap < 1e-10


@pytest.mark.parametrize("loss", FIRST_LOSSES, ids=repr)
def test_isolated_nodes_have_their_own_minimiser_at_once(loss: ct.Loss) -> None:
    problem = instance("isolated nodes", loss)
    for n_iter in (0, 50):
        w = ct.algorithm1(problem, n_iter).w
        np.testing.assert_allclose(w[0], own_minimiser(problem, 0), rtol=1e-8, atol=1e-8)
        np.testing.assert_array_equal(w[11], 0.0)


def test_components_without_labels_stay_at_zero_and_are_reported() -> None:
    solution = ct.algorithm1(instance("disconnected"), 100)
    assert solution.undetermined.tolist() == [10, 11]
    np.testing.assert_array_equal(solution.w[[10, 11]], 0.0)
    assert np.abs(solution.w[:10]).min() > 0


def test_no_iterations() -> None:
    problem = instance()
    solution = ct.algorithm1(problem, 0)
    assert not solution.w.any()
    assert solution.objective == problem.objective(np.zeros_like(solution.w))
    assert solution.n_iter == 0


def test_a_negative_number_of_iterations_is_refused() -> None:
    with pytest.raises(ValueError, match="n_iter must not be negative, got -1"):
        ct.algorithm1(instance(), -1)


def test_the_callback_sees_every_iteration() -> None:
    seen: list[int] = []
    ct.algorithm1(instance(), 7, callback=lambda k, w, u: seen.append(k))
    assert seen == [1, 2, 3, 4, 5, 6, 7]


def test_more_iterations_come_closer_for_any_balance() -> None:
    problem = replace(instance("few labelled"), lam=0.01)
    gaps = [ct.algorithm1(problem, 400, sigma=0.5 / s, tau=s).gap for s in (1.0, 10.0, 30.0)]
    assert gaps[1] < gaps[0]
    assert min(gaps) < 1e-3
