"""Rows whose duals have bounds, in repair: what is left vanishes, duals stay where they may be, bounds stay true."""

from __future__ import annotations

import numpy as np
import pytest

import coterie as ct
from coterie.engines.bounded_rows import BoundedRowsProver, array_prover
from coterie.kernels import laplacian, vector_buffer
from coterie.kernels.reference import laplacian as plain_laplacian
from coterie.solver.certificate import Certifier
from coterie.solver.repair import Repair
from problems import EVERY_PENALTY, instance, oracle

LOSSES = (
    ct.Quantile(),
    ct.Quantile(q=0.8, ridge=0.1, unpenalised=(0, 1)),
    ct.Huber(delta=0.3),
    ct.SquaredHinge(),
    ct.Huber(delta=0.3, l1=0.02),
    ct.Huber(ridge=0.1, unpenalised=(2,), positive=True),
    ct.SquaredHinge(lower=-0.2, upper=0.5, l1=0.01),
)


def with_bounded_rows(loss: ct.Loss, penalty: ct.Penalty) -> tuple[ct.Problem, BoundedRowsProver]:
    problem = instance("few points", loss, penalty)
    return problem, BoundedRowsProver(problem.bound, 1, problem.bound.f.smooth_part)


@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_repair_leaves_nothing(loss, penalty):
    problem, prover = with_bounded_rows(loss, penalty)
    solution = ct.solve(problem, 1e-3, engine="numpy")
    w, u = solution.w, solution.u.copy()
    prover.clip(u)
    s = prover.split(w, u)
    before = prover.residual(u, s)
    Repair(prover).rounds(u, 24, s)
    assert prover.residual(u, s) <= 1e-3 * before + 1e-12
    a, b, grounds = prover._parts(s)
    assert len(grounds) in (0, problem.graph.n_nodes)
    assert ((prover.lower <= grounds) & (grounds <= prover.upper)).all()
    assert ((prover.low <= a) & (a <= prover.high)).all()
    assert not b[:, prover.f.ridge == 0].any()
    left = problem.graph.D.T @ u
    design = prover.f.design
    if len(grounds):
        left += grounds
    for i, node in enumerate(problem.M):
        rows = slice(design.starts[i], design.starts[i + 1])
        left[node] += a[rows] @ design.X[rows] + b[i]
    assert np.abs(left).max() == pytest.approx(prover.residual(u, s), abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_bounds_are_true_and_close(loss):
    problem, prover = with_bounded_rows(loss, ct.TotalVariation())
    h = loss.ground(3)
    best, rng = oracle(problem, (h.lower, h.upper)), np.random.default_rng(0)
    for size in (0.0, 0.3):
        w = h.clip(best.w + size * rng.standard_normal(best.w.shape))
        u = 0.05 * rng.uniform(-1, 1, (problem.graph.n_edges, 3))
        proof = Certifier(prover)(w, u)
        assert proof.dual_bound <= best.value * (1 + 1e-9)
    solution = ct.solve(problem, engine="numpy")
    assert solution.status is ct.Status.OPTIMAL
    assert solution.objective == pytest.approx(best.value, rel=3e-6)


def test_rows_take_part_where_they_do_not_see_everything():
    for loss in (ct.Quantile(), ct.Huber(), ct.SquaredHinge(), ct.Huber(l1=0.1), ct.SquaredHinge(positive=True)):
        assert isinstance(array_prover(instance("few points", loss).bound), BoundedRowsProver)
    plain = (
        instance("few points"),
        instance("few points", ct.Poisson()),
        instance("few points", ct.Huber(ridge=0.1)),
        instance("few points", ct.Quantile(l1=0.1)),
    )
    assert not any(isinstance(array_prover(problem.bound), BoundedRowsProver) for problem in plain)


@pytest.mark.parametrize("loss", [ct.Huber(delta=0.3), ct.SquaredHinge(), ct.SquaredHinge(ridge=0.1)], ids=repr)
def test_primal_updates_by_rows_are_those_of_newton(loss):
    problem = instance("few points", loss)
    f, rng = problem.bound.f, np.random.default_rng(2)
    v, tau = rng.standard_normal((2, len(problem.M), 3)) * 3, np.full(len(problem.M), 0.7)
    assert f._goes_by_rows
    by_rows = f.prox(v[0], tau, v[1])
    newton = f._newton(np.zeros_like(v[0]), v[0], 1 / tau, v[1], 1e-12, 60)
    np.testing.assert_allclose(by_rows, newton, atol=1e-9)


def test_products_of_rows_in_both_forms():
    rng = np.random.default_rng(1)
    starts, nodes = np.array([0, 2, 3, 7]), np.array([0, 2, 3])
    X, G, x = rng.standard_normal((7, 4)), rng.uniform(size=7), rng.standard_normal((5, 4))
    found = [np.ones((5, 4)), np.ones((5, 4))]
    for module, out in zip((laplacian, plain_laplacian), found, strict=True):
        module.add_rows(vector_buffer(4), X, starts, nodes, G, x, out)
    np.testing.assert_allclose(*found, rtol=1e-12)
    assert (found[0][[1, 4]] == 1).all()
