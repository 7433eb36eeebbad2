"""Sets that must hold a minimiser, and what a rest costs there: compared in exact arithmetic."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.kernels import charge as kernels
from coterie.proofs.enclosure import Enclosure
from coterie.proofs.rest import Rest
from exactly import at_most, exact_objective, fractions, inner, solve
from pairs import in_pairs
from problems import EVERY_LOSS, EVERY_PENALTY, KINDS, instance, oracle, problems

pytestmark = pytest.mark.usefixtures("compiled_kernels")

# Squared hinges without ridge enclose minimisers only at low levels: tests/solver/test_loss_families.py tries these.
ENCLOSED = [loss for loss in EVERY_LOSS if not isinstance(loss, ct.SquaredHinge) or loss == ct.SquaredHinge(ridge=0.1)]


def clipped(problem: ct.Problem, w: np.ndarray) -> np.ndarray:
    """w with unlabelled nodes in the hull of the labelled ones, which costs nothing."""
    w, component = w.copy(), problem.graph.components
    for one in np.unique(component):
        nodes = np.flatnonzero(component == one)
        known = np.intersect1d(nodes, problem.M)
        if known.size and problem.lam > 0:
            w[nodes] = np.clip(w[nodes], w[known].min(axis=0), w[known].max(axis=0))
    return w


def charge_holds(problem: ct.Problem, w: np.ndarray, size: float, seed: int, rounding_bound: float = 0.0) -> None:
    """The charge at the level of w is at most Σ⟨ρ, w − at⟩, for any ρ within its rounding bound."""
    rng = np.random.default_rng(seed)
    rho = size * rng.standard_normal(w.shape) * rng.integers(0, 2, w.shape)
    rho[problem.undetermined] = 0.0
    at, level = w + rng.standard_normal(w.shape), problem.objective(w)
    enclosure = Enclosure(problem.bound)
    charge = enclosure.charge(Rest(rho, rounding_bound * np.abs(rho), at), level)
    if charge == -np.inf:
        return
    far = [a - b for a, b in zip(shifted(problem, enclosure, w), fractions(at.ravel()), strict=True)]
    slopes = fractions(rho.ravel())
    truth = inner(slopes, far) - Fraction(rounding_bound) * sum(abs(a * b) for a, b in zip(slopes, far, strict=True))
    assert Fraction(charge) <= truth


def shifted(problem: ct.Problem, enclosure: Enclosure, w: np.ndarray) -> list[Fraction]:
    """w, each component moved along what none of its rows sees, so that what can be zero at its first node is."""
    W, fixed, data = [fractions(row) for row in w], enclosure.free_weights(), problem.data
    component = np.arange(len(w)) if problem.lam == 0 else problem.graph.components
    for root in np.flatnonzero(fixed.any(axis=1)):
        nodes = np.flatnonzero(component == component[root])
        X = [fractions(x) for x, i, y in zip(data.X, data.nodes, data.y, strict=True) if i in nodes and not np.isnan(y)]
        others = np.flatnonzero(~fixed[root])
        step = solve([[x[k] for k in others] for x in X], [inner(x, np.array(W[root]) * fixed[root]) for x in X])
        assert step is not None, "the other columns cannot make up for those that are fixed at zero"
        move = [-value if free else Fraction(0) for value, free in zip(W[root], fixed[root], strict=True)]
        for k, value in zip(others, step, strict=True):
            move[k] = value
        for i in nodes:
            W[i] = [a + b for a, b in zip(W[i], move, strict=True)]
    return [value for row in W for value in row]


@pytest.mark.parametrize(("loss", "kind", "penalty"), in_pairs(EVERY_LOSS, KINDS, EVERY_PENALTY), ids=str)
def test_at_the_objective_of_the_optimum(loss: ct.Loss, penalty: ct.Penalty, kind: str) -> None:
    """The smallest set there is: nothing better than the oracle's weights is known."""
    problem = instance(kind, loss, penalty)
    charge_holds(problem, clipped(problem, oracle(problem).w), 1.0, 0)


@settings(max_examples=80)
@given(
    problems(lam=st.sampled_from([0.0, 1e-8, 1e-3, 0.1, 1.0])),
    st.sampled_from([0.0, 1e-6, 0.1, 1e3]),
    st.sampled_from([1e-6, 1.0, 1e3]),
    st.sampled_from([0.0, 1e-3]),
    st.integers(0, 99),
)
def test_on_any_problem(problem: ct.Problem, distance: float, size: float, rounding_bound: float, seed: int) -> None:
    w = oracle(problem).w
    w = w + distance * np.random.default_rng(seed).standard_normal(w.shape)
    charge_holds(problem, clipped(problem, w), size, seed, rounding_bound)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ENCLOSED, ids=repr)
def test_there_is_a_set_wherever_a_minimiser_is_unique(loss: ct.Loss, kind: str) -> None:
    problem = instance(kind, loss)
    rho = np.ones((12, 3))
    rho[problem.undetermined] = 0.0
    assert Enclosure(problem.bound).charge(Rest(rho, 0 * rho, 0 * rho), problem.constant_loss) > -np.inf


def test_nothing_left_costs_nothing() -> None:
    zero = np.zeros((12, 3))
    assert Enclosure(instance().bound).charge(Rest(zero, zero, zero), 1.0) == 0.0


def test_an_objective_of_zero_leaves_no_room() -> None:
    """All labels zero, λ and alpha on: the only minimiser is 0, and no 0/0 comes in the way."""
    data = ct.LocalDatasets.from_rows(np.eye(2), [0.0, 0.0], [0, 1])
    for loss in (ct.Lasso(10.0, unpenalised=(0,)), ct.SquaredError(ridge=0.1, unpenalised=(0,)), ct.SquaredError()):
        problem = ct.Problem(ct.EmpiricalGraph.from_edges([[0, 1]]), data, loss, lam=1.0)
        ones, zero = np.ones((2, 2)), np.zeros((2, 2))
        assert -1e-9 <= Enclosure(problem.bound).charge(Rest(ones, zero, zero), 0.0) <= 0.0
        assert Enclosure(problem.bound).reach(0.0) <= 1e-9


@pytest.mark.parametrize("nodes", [[0, 0], [0, 1], [1, 0]], ids=str)
def test_columns_of_very_different_sizes(nodes: list[int]) -> None:
    """The data fix w at (0, 1e9) with an objective of 0: curvature 1e-18 is small, and not nothing."""
    data = ct.LocalDatasets.from_rows([[1.0, 0.0], [0.0, 1e-9]], [0.0, 1.0], nodes, n_nodes=2)
    problem = ct.Problem(ct.EmpiricalGraph.from_edges([[0, 1]]), data, lam=1.0)
    w = np.array([[0.0, 1e9], [0.0, 1e9]])
    for level in (problem.objective(w), 1e-9, 0.5, problem.constant_loss, 100.0):
        assert 1e9 <= Enclosure(problem.bound).reach(level) < np.inf
        for sign in (1.0, -1.0):
            rest = Rest(np.full((2, 2), sign), np.zeros((2, 2)), np.zeros((2, 2)))
            assert -np.inf < Enclosure(problem.bound).charge(rest, level) <= sign * w.sum()


def hardly_seen(ratio: float, turned: bool, penalty: ct.Penalty | None = None) -> tuple[ct.Problem, np.ndarray]:
    """Three nodes, the last without labels; a noise-free common weight is the minimiser, however far away."""
    X = np.random.default_rng(0).standard_normal((8, 2)) * [1.0, ratio]
    truth = np.array([1.0, 1.0 / ratio])
    if turned:
        Q = np.array([[0.6, 0.8], [-0.8, 0.6]])
        X, truth = X @ Q, truth @ Q
    data = ct.LocalDatasets.from_rows(X, X @ truth, np.repeat([0, 1], 4), n_nodes=3)
    graph = ct.EmpiricalGraph.from_edges([[0, 1], [1, 2]])
    return ct.Problem(graph, data, penalty=penalty or ct.TotalVariation(), lam=1.0), np.tile(truth, (3, 1))


@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
@pytest.mark.parametrize("ratio", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("turned", [False, True])
def test_a_direction_that_is_hardly_seen(penalty: ct.Penalty, ratio: float, turned: bool) -> None:
    problem, truth = hardly_seen(ratio, turned, penalty)
    for seed in range(3):
        charge_holds(problem, truth, 1.0, seed)
    assert Enclosure(problem.bound).reach(problem.objective(truth)) >= np.abs(truth).max()


@pytest.mark.parametrize("ratio", [1e-3, 1e-6])
def test_no_bound_above_the_optimum_where_a_direction_is_hardly_seen(ratio: float) -> None:
    problem, truth = hardly_seen(ratio, turned=True)
    best = exact_objective(problem, truth)
    for flow in (1e-8, 1e-7, 1e-6):
        proof = ct.certify(problem, truth, np.array([[0.0, 0.0], [0.0, -flow]]))
        assert at_most(Fraction(proof.dual_bound), best)


def test_a_lower_objective_gives_a_smaller_charge() -> None:
    problem = instance("few labelled")
    enclosure, best = Enclosure(problem.bound), oracle(problem)
    rest = Rest(np.random.default_rng(0).standard_normal((12, 3)), np.zeros((12, 3)), best.w)
    assert enclosure.charge(rest, problem.constant_loss) < enclosure.charge(rest, best.value) < 0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", ENCLOSED, ids=repr)
def test_without_coupling_every_node_is_a_component(loss: ct.Loss, seed: int) -> None:
    """Two rows and three columns per node: one weight of each is fixed at zero, and no node speaks for another."""
    problem = replace(instance("few points", loss), lam=0.0)
    charge_holds(problem, oracle(problem).w, 1.0, seed)
    if not isinstance(loss, ct.Logistic):  # (whose classes may be separable at a node)
        rest = Rest(np.ones((12, 3)), np.zeros((12, 3)), np.zeros((12, 3)))
        assert Enclosure(problem.bound).charge(rest, problem.constant_loss) > -np.inf


def test_a_part_of_a_larger_graph_cannot_be_shifted_alone() -> None:
    """A column of zeros: the whole problem takes it at zero; a part, whose neighbours may need it, does not."""
    data = ct.LocalDatasets.from_rows([[1.0, 0.0], [2.0, 0.0]], [1.0, 2.0], [0, 1])
    problem = ct.Problem(ct.EmpiricalGraph.from_edges([[0, 1]]), data, lam=0.1)
    rest = Rest(np.ones((2, 2)), np.zeros((2, 2)), np.zeros((2, 2)))
    assert Enclosure(problem.bound).charge(rest, 1.0) > -np.inf
    assert Enclosure(problem.bound, shift=False).charge(rest, 1.0) == -np.inf


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["all labelled", "few labelled", "weighted edges", "isolated nodes"])
@pytest.mark.parametrize("loss", ENCLOSED, ids=str)
def test_reach_holds_the_labelled_weights_of_every_point_at_the_level(kind: str, loss: ct.Loss) -> None:
    problem = instance(kind, loss)
    enclosure, rng = Enclosure(problem.bound), np.random.default_rng(0)
    best = ct.solve(problem, 1e-6).w
    for size in (0.0, 0.1, 1.0, 10.0, 100.0):
        w = best + size * rng.standard_normal(best.shape)
        if np.isfinite(level := problem.objective(w)):  # rates of counts are beyond all numbers far away
            assert np.abs(w[problem.M]).max() <= enclosure.reach(level) < np.inf


def test_reach_is_infinite_where_a_direction_is_open() -> None:
    graph = ct.EmpiricalGraph.from_edges([], n_nodes=2)
    data = ct.LocalDatasets.from_rows([[1.0, 0.0], [1.0, 0.0]], [1.0, 2.0], [0, 1])
    separable = ct.LocalDatasets.from_rows([[1.0, 0.5], [1.0, -0.5]], [1.0, 0.0], [0, 1])
    assert Enclosure(ct.Problem(graph, data).bound, shift=False).reach(5.0) == np.inf
    assert Enclosure(ct.Problem(graph, separable, ct.Logistic()).bound).reach(5.0) == np.inf
    assert Enclosure(instance().bound).reach(np.inf) == np.inf


@pytest.mark.parametrize(
    ("rest", "low", "high", "charge"),
    [
        ([1.0, -2.0, 0.0], [-1.0, -1.0, -1.0], [3.0, 3.0, 3.0], -7.0),
        ([1.0, 1.0], [2.0, -3.0], [4.0, 5.0], -1.0),
        ([0.0, 0.0], [-np.inf, -1.0], [np.inf, 1.0], 0.0),
        ([1e-300, 0.0], [-np.inf, -1.0], [np.inf, 1.0], -np.inf),
    ],
)
@pytest.mark.parametrize("rounding_bound", [0.0, 1e-3])
def test_the_worst_corner_of_a_box(rest: list, low: list, high: list, charge: float, rounding_bound: float) -> None:
    rho, out = np.array([rest]), np.zeros(1)
    zero = np.zeros_like(rho)
    kernels.least(rho, rounding_bound * np.abs(rho), zero, np.zeros(1, int), np.array([low]), np.array([high]), out)
    extra = sum(
        rounding_bound * abs(r) * max(abs(a), abs(b))
        for r, a, b in zip(rest, low, high, strict=True)
        if rounding_bound * r
    )
    assert out[0] <= charge - extra
    assert out[0] >= (charge - extra) - 1e-12 * (1 + extra) if np.isfinite(charge) else out[0] == -np.inf


@settings(max_examples=100)
@given(st.integers(0, 2**16), st.sampled_from([1e-9, 1.0, 1e9]), st.sampled_from([1, 7, 60]))
def test_the_worst_corner_in_exact_arithmetic(seed: int, offset: float, count: int) -> None:
    """Also where weights lie far from zero and the box is narrow, so that every difference is rounded."""
    rng = np.random.default_rng(seed)
    rho, w = rng.standard_normal((count, 2)), offset + rng.standard_normal((count, 2))
    rounding_bound = 1e-6 * rng.random((count, 2))
    low = offset + rng.standard_normal((1, 2))
    high = low + rng.random((1, 2)) * 10.0 ** -rng.integers(0, 12)
    out = np.zeros(1)
    kernels.least(rho, rounding_bound, w, np.zeros(count, int), low, high, out)
    z = np.where(rng.random((count, 2)) < 0.5, low, high)
    signs = np.where(rng.random(2 * count) < 0.5, 1, -1)
    slope = [
        a + int(sign) * b
        for a, b, sign in zip(fractions(rho.ravel()), fractions(rounding_bound.ravel()), signs, strict=True)
    ]
    truth = inner(slope, [a - b for a, b in zip(fractions(z.ravel()), fractions(w.ravel()), strict=True)])
    assert Fraction(float(out[0])) <= truth


@given(
    st.lists(st.tuples(*[st.floats(-1, 1)] * 3, st.integers(-6, 6)), min_size=1, max_size=8),
    st.sampled_from([0.0, 1e-3, 1e6]),
    st.booleans(),
)
def test_rows_cap_single_numbers(nodes: list, lam: float, fits: bool) -> None:
    """No weight of a point is above the cap at its own objective, also where the rows fit and that is rounding."""
    x, y, w = (np.array([node[k] * 10.0 ** node[3] for node in nodes]) for k in range(3))
    x[np.abs(x) < 1e-9] = 0.0
    y = x * w if fits else y
    assume(x.any())
    V = len(nodes)
    path = ct.EmpiricalGraph.from_edges(np.stack([np.arange(V - 1), np.arange(1, V)], axis=1), n_nodes=V)
    problem = ct.Problem(path, ct.LocalDatasets.from_rows(x[:, None], y, np.arange(V)), lam=lam)
    enclosure, w = Enclosure(problem.bound), w[:, None]
    level = enclosure.design.ceiling(problem.objective(w), w)
    cap = enclosure._row_cap(level)
    assert np.abs(w).max() <= cap
    assert (cap == np.inf) == (x == 0).any()
    if cap < np.inf:
        rho = np.ones_like(w)
        assert -enclosure.charge(Rest(rho, rho, w), problem.objective(w), np.inf) >= 2 * V * np.abs(w).max()
