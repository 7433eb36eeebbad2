"""Units of X and y are nobody's business: powers of two change nothing at all, powers of ten nothing that counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.kernels.choice import using
from coterie.solver.units import Units
from pairs import in_pairs
from problems import EVERY_LOSS, EVERY_PENALTY, instance, is_binary


def in_units(problem: ct.Problem, x: float, y: float) -> tuple[ct.Problem, float, float]:
    """The problem with X·x and y·y, strengths to match; what weights and objectives are then multiplied with."""
    y = 1.0 if is_binary(problem.loss) or isinstance(problem.loss, ct.Poisson) else y
    weight, value = y / x, y if isinstance(problem.loss, ct.Quantile) else y * y
    changed: dict[str, Any] = {"delta": problem.loss.delta * y} if isinstance(problem.loss, ct.Huber) else {}
    if getattr(problem.loss, "ridge", 0.0):
        changed["ridge"] = problem.loss.ridge * (value / weight**2)
    for name in ("alpha", "l1"):
        if size := getattr(problem.loss, name, 0.0):
            changed[name] = size * (value / weight)
    data = replace(problem.data, X=problem.data.X * x, y=problem.data.y * y)
    lam = problem.lam * (value / weight**problem.penalty.degree)
    return replace(problem, data=data, loss=replace(problem.loss, **changed), lam=lam), weight, value


TWOS = (("numba", 2.0**40, 2.0**-30), ("numpy", 2.0**-40, 1.0), ("numba", 1.0, 2.0**40))
TENS = ((1e12, 1e-12), (1e-12, 1e12), (1e12, 1e12), (1e-12, 1e-12))


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "penalty", "how"), in_pairs(EVERY_LOSS, EVERY_PENALTY, TWOS), ids=str)
def test_powers_of_two_change_nothing(loss: ct.Loss, penalty: ct.Penalty, how: tuple[str, float, float]) -> None:
    engine, x, y = how
    problem = instance("few labelled", loss, penalty)
    scaled, weight, value = in_units(problem, x, y)
    a, b = ct.solve(problem, engine=engine), ct.solve(scaled, engine=engine)
    assert (a.n_iter, a.status, a.gap) == (b.n_iter, b.status, b.gap)
    np.testing.assert_array_equal(a.w * weight, b.w)
    assert (a.objective * value, a.dual_bound * value) == (b.objective, b.dual_bound)
    with using(compiled=engine == "numba"):
        again, other = ct.certify(problem, a.w, a.u), ct.certify(scaled, b.w, b.u)
    assert again.dual_bound * value == other.dual_bound
    assert again.bound_before_charge * value == other.bound_before_charge
    np.testing.assert_array_equal(again.u * (value / weight), other.u)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "units", "penalty"), in_pairs(EVERY_LOSS, TENS, EVERY_PENALTY), ids=str)
def test_the_same_iterations_in_any_units(loss: ct.Loss, units: tuple[float, float], penalty: ct.Penalty) -> None:
    problem = instance("all labelled", loss, penalty)
    a = ct.solve(problem)
    scaled, weight, value = in_units(problem, *units)
    b = ct.solve(scaled)
    assert b.status is ct.Status.OPTIMAL
    assert abs(a.n_iter - b.n_iter) <= 40  # one look at the gap more, or less
    assert b.objective == pytest.approx(a.objective * value, rel=2e-6)
    np.testing.assert_allclose(b.w / weight, a.w, atol=0.02)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
@pytest.mark.parametrize(("x", "y"), [(3.7e9, 1e-5), (1.0, 1.0), (1e-100, 1e-40)])
def test_there_and_back_rounds_nothing(loss: ct.Loss, x: float, y: float) -> None:
    problem, _, _ = in_units(instance(loss=loss), x, y)
    units, rng = Units.of(problem.bound), np.random.default_rng(0)
    design, inside = problem.f.design, units.problem.f.design
    assert np.log2(units.weight) % 1 == np.log2(units.value) % 1 == 0
    assert 0.5 <= np.sqrt(np.mean(inside.X**2)) <= 2
    np.testing.assert_array_equal(inside.X * (np.abs(design.X).max() / np.abs(inside.X).max()), design.X)
    w, u = rng.standard_normal((12, 3)), rng.standard_normal((problem.graph.n_edges, 3))
    w_in, u_in = units.into(w, u)
    np.testing.assert_array_equal(w_in * units.weight, w)
    np.testing.assert_array_equal(u_in * (units.value / units.weight), u)
    assert units.problem.objective(w_in) * units.value == problem.objective(w)


def test_a_table_without_numbers_has_no_units() -> None:
    data = ct.LocalDatasets.from_rows(np.zeros((2, 1)), [0.0, 0.0], [0, 1])
    problem = ct.Problem(ct.EmpiricalGraph.from_edges([[0, 1]]), data)
    assert Units.of(problem.bound).problem is problem.bound
    assert Units.of(replace(problem, data=replace(data, y=np.full(2, np.nan))).bound).weight == 1.0


def faint(x: float, A: float, lam: float, penalty: ct.Penalty) -> ct.Problem:
    """Weights of 1/x cost next to nothing on pairs of nodes with edges of next to no strength."""
    X, y = np.r_[np.full(8, x), 1.0][:, None], np.r_[np.tile([1.0, 0.0], 4), 0.0]
    graph = ct.EmpiricalGraph.from_edges(np.arange(8).reshape(4, 2), np.full(4, A), n_nodes=9)
    data = ct.LocalDatasets.from_rows(X, y, np.arange(9), n_nodes=9)
    return ct.Problem(graph, data, ct.SquaredError(), penalty, lam)


@pytest.mark.parametrize(
    "problem",
    [
        faint(1e-160, 1e-100, 1e-70, ct.GroupTotalVariation()),
        faint(8.8e-147, 1e-150, 4.8e-157, ct.SquaredVariation()),
        faint(3e-154, 1e-150, 1e-166, ct.SquaredVariation()),
        faint(1e140, 1e-100, 1e-140, ct.TotalVariation()),  # in units of its own it would be zero
    ],
    ids=repr,
)
def test_edges_that_double_precision_cannot_tell_from_none_are_refused(problem: ct.Problem) -> None:
    with pytest.raises(ValueError, match="edge between nodes 0 and 1 has the strength lam × weight"):
        ct.solve(problem)


@pytest.mark.parametrize("x", [1.0, 1e140])
def test_a_ridge_that_vanishes_is_refused(x: float) -> None:
    problem = replace(faint(x, 1.0, x, ct.TotalVariation()), loss=ct.SquaredError(ridge=1e-200))
    with pytest.raises(ValueError, match="ridge of column 0 is 1e-200"):
        ct.solve(problem)


def test_squares_do_not_vanish_beside_a_small_strength() -> None:
    """u²/4c with u² below the smallest number."""
    value = ct.SquaredVariation().conjugate(np.array([[1e-163]]), np.array([1e-200]))
    assert value == pytest.approx(0.25e-126, rel=1e-12)


@pytest.mark.parametrize(("x", "y"), [(2.0**300, 2.0**-300), (2.0**-300, 2.0**300)])
def test_strengths_neither_vanish_nor_end_where_squares_of_weights_do(x: float, y: float) -> None:
    """With λ = 0 in their place the wrong problem was solved, and called optimal."""
    problem = instance("all labelled", ct.SquaredError(), ct.SquaredVariation())
    data = replace(problem.data, X=problem.data.X * x, y=problem.data.y * y)
    scaled, weight, value = replace(problem, data=data, lam=problem.lam * x**2), y / x, y**2
    a, b = ct.solve(problem, engine="numpy"), ct.solve(scaled, engine="numpy")
    np.testing.assert_array_equal(a.w * weight, b.w)
    assert (a.objective * value, a.dual_bound * value) == (b.objective, b.dual_bound)
    assert Units.of(scaled.bound).ratio_into(x**2) == Units.of(problem.bound).ratio_into(1.0)
