"""Duals in twice the precision: what the second floats do to ρ, cost and need of room, in exact arithmetic."""

from __future__ import annotations

import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

import coterie as ct
from any_n import any_n
from coterie.engines.arrays import ArrayProver
from coterie.kernels.kinds import LOGISTIC
from coterie.problem import bound
from coterie.solver.certificate import Certifier
from coterie.solver.whole.joint_system import JointSystem
from coterie.solver.whole.twofold import FURTHEST, Duals, Twofold, twofold_duals
from exactly import DIGITS, Exact, at_most, exact_objective, fractions
from problems import problems, ugly_problems

pytestmark = pytest.mark.usefixtures("compiled_kernels")


def drawn(problem: ct.Problem, w: np.ndarray, off: float, small: float, seed: int) -> Twofold | None:
    """Duals off the best ones at w, with second floats that are `small` times as large."""
    design, rng = problem.f.design, np.random.default_rng(seed)
    if design is None or not len(problem.M):
        return None

    def noise(x: np.ndarray, size: float) -> np.ndarray:
        return x * size * rng.uniform(-1, 1, x.shape)

    a, b = design.slopes(w[problem.M])
    a, b = a + noise(a, off), b + noise(b, off)
    if design.psi.kernel == LOGISTIC:
        a = np.clip(a, -design.s, design.s)
    u = problem.c[:, None] * rng.uniform(-1, 1, (problem.graph.n_edges, w.shape[1])) / np.sqrt(w.shape[1])
    s = np.zeros_like(w)
    if problem.f.l1_box is not None:
        s[problem.M] = problem.f.l1_box[1] * rng.uniform(-1, 1, (len(problem.M), w.shape[1]))
    hi = Duals(a, b, u, s)
    lo = Duals(noise(a, small), noise(b, small), noise(u, FURTHEST), noise(s, FURTHEST))
    if design.psi.kernel == LOGISTIC:
        lo = lo._replace(a=np.where(np.abs(lo.a) <= 0.5 * np.minimum(np.abs(a), design.s - np.abs(a)), lo.a, 0.0))
    return Twofold(problem, design, hi, lo)


def exact_sum(duals: Twofold) -> list[list[Fraction]]:
    """a, b, u and s of hi + lo, each as one list."""
    pairs = zip(duals.hi, duals.lo, strict=True)
    return [[x + y for x, y in zip(fractions(one.ravel()), fractions(two.ravel()), strict=True)] for one, two in pairs]


def exact_rest(duals: Twofold) -> list[Fraction]:
    """Σ_r a_r x_r + b + s + Dᵀu of hi + lo."""
    problem, design = duals.problem, duals.design
    n, (a, b, u, s) = problem.n_features, exact_sum(duals)
    out = list(s)
    for k, i in enumerate(problem.M):
        for r in range(design.starts[k], design.starts[k + 1]):
            for c, x in enumerate(fractions(design.X[r])):
                out[i * n + c] += a[r] * x
        for c in range(n):
            out[i * n + c] += b[k * n + c]
    for e, (i, j) in enumerate(problem.graph.edges):
        for c in range(n):
            out[i * n + c] += u[e * n + c]
            out[j * n + c] -= u[e * n + c]
    return out


def exact_bracket(duals: Twofold, w: np.ndarray) -> Exact:
    """What the affine functions of hi + lo come to at w."""
    problem, design = duals.problem, duals.design
    n, (a, b, u, s) = problem.n_features, exact_sum(duals)
    W = fractions(w.ravel())
    total = sum((x * y for x, y in zip(s, W, strict=True)), Fraction(0))
    curved: Exact = Fraction(0)
    for k, i in enumerate(problem.M):
        own = W[i * n : (i + 1) * n]
        for r in range(design.starts[k], design.starts[k + 1]):
            z = sum((x * y for x, y in zip(fractions(design.X[r]), own, strict=True)), Fraction(0))
            y, factor = Fraction(float(design.y[r])), Fraction(float(design.s[r]))
            if design.psi.kernel == LOGISTIC:
                total += a[r] * z
                curved = plus(curved, entropy(abs(a[r]) / factor, factor))
            else:
                total += a[r] * (z - y) - a[r] ** 2 / (4 * factor)
        for c, ridge in enumerate(fractions(design.ridge)):
            if ridge > 0:
                total += b[k * n + c] * own[c] - b[k * n + c] ** 2 / (4 * ridge)
    squared = isinstance(problem.penalty, ct.SquaredVariation)
    for e, (i, j) in enumerate(problem.graph.edges):
        for c in range(n):
            flow, strength = u[e * n + c], Fraction(float(problem.c[e]))
            total += flow * (W[i * n + c] - W[j * n + c])
            if squared and strength > 0:
                total -= flow**2 / (4 * strength)
    return plus(curved, total)


def entropy(t: Fraction, factor: Fraction) -> Exact:
    with mpmath.workdps(2 * DIGITS):
        x = mpmath.mpf(t.numerator) / t.denominator
        parts = [-p * mpmath.log(p) for p in (x, 1 - x) if p > 0]
        return mpmath.fsum(parts) * factor.numerator / factor.denominator


def plus(a: Exact, b: Exact) -> Exact:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a + b
    with mpmath.workdps(2 * DIGITS):
        a, b = (mpmath.mpf(x.numerator) / x.denominator if isinstance(x, Fraction) else x for x in (a, b))
        return a + b


def has_second_floats(problem: ct.Problem) -> bool:
    """Whether its loss is one of those that second floats are used for."""
    design = problem.f.smooth_part.design
    return design is not None and design.psi.second_floats


ANY = st.one_of(problems(lam=st.sampled_from([1e-6, 1e-2, 1.0])), ugly_problems())
OFF, SMALL = st.sampled_from([0.0, 1e-12, 1e-3, 1.0]), st.sampled_from([1e-17, 1e-9, 0.1])


@settings(max_examples=60)
@given(ANY, st.sampled_from([1e-3, 1.0, 1e8]), OFF, SMALL, st.integers(0, 99))
def test_what_second_floats_do(problem: ct.Problem, size: float, off: float, small: float, seed: int) -> None:
    """ρ is known within its rounding bound; the bracket falls by at most the cost; the domain grows by at most δ."""
    assume(has_second_floats(problem))
    w = size * np.random.default_rng(seed).standard_normal((problem.graph.n_nodes, problem.n_features))
    duals = drawn(problem, w, off, small, seed)
    assume(duals is not None)
    rest = duals.rest(w)
    for exact, value, rounding_bound in zip(
        exact_rest(duals), rest.rho.ravel(), rest.rounding_bound.ravel(), strict=True
    ):
        assert abs(exact - Fraction(float(value))) <= Fraction(float(rounding_bound)) + Fraction(2) ** -900
    alone = duals._replace(lo=Duals(*map(np.zeros_like, duals.lo)))
    cost = Fraction(duals.cost(w)) + Fraction(2) ** -900
    assert at_most(plus(exact_bracket(alone, w), -cost), exact_bracket(duals, w))
    allowed = Fraction(duals.stretch())
    if not isinstance(problem.penalty, ct.SquaredVariation):
        for lo, c in zip(duals.lo.u, problem.c, strict=True):
            squares = [x * x for x in fractions(lo)]
            square = max(squares) if isinstance(problem.penalty, ct.TotalVariation) else sum(squares)
            assert square <= (allowed * Fraction(float(c))) ** 2
    if problem.f.l1_box is not None:
        for lo in duals.lo.s[problem.M]:
            assert all(
                abs(x) <= allowed * y for x, y in zip(fractions(lo), fractions(problem.f.l1_box[1]), strict=True)
            )


@settings(max_examples=40)
@given(ugly_problems(), st.integers(0, 99))
def test_what_is_found_is_in_its_domain(problem: ct.Problem, seed: int) -> None:
    design = problem.f.design
    assume(design is not None and len(problem.M) > 0 and has_second_floats(problem))
    rng = np.random.default_rng(seed)
    w = solved(problem).w * (1 + 1e-6 * rng.standard_normal((problem.graph.n_nodes, problem.n_features)))
    u = problem.c[:, None] * rng.uniform(-1, 1, (problem.graph.n_edges, problem.n_features))
    certifier = Certifier(ArrayProver(problem.bound))
    certifier.prover.clip(u)
    s = None if problem.f.l1_box is None else certifier.closer.tight_split(w, u)
    duals = twofold_duals(problem.bound, design, w, u, s, certifier.prover.enclosure.free_weights())
    if not isinstance(problem.penalty, ct.SquaredVariation):
        norm = np.inf if isinstance(problem.penalty, ct.TotalVariation) else 2
        size = np.linalg.norm(duals.hi.u, ord=norm, axis=1) if duals.hi.u.size else np.zeros(len(problem.c))
        assert (size <= problem.c * (1 + 1e-14)).all()
        assert duals.stretch() <= 1e-12
    if problem.f.l1_box is not None:
        assert (np.abs(duals.hi.s[problem.M]) <= problem.f.l1_box[1]).all()
    if design.psi.kernel == LOGISTIC:
        a, lo = duals.hi.a, duals.lo.a
        assert (np.where(design.y > 0.5, -a, a) >= 0).all()
        assert (np.abs(a) <= design.s).all()
        assert (np.abs(lo) <= 0.5 * np.minimum(np.abs(a), design.s - np.abs(a))).all()


@settings(max_examples=40)
@given(ugly_problems())
def test_no_bound_of_a_third_look_is_too_high(problem: ct.Problem) -> None:
    answer, certifier = solved(problem), Certifier(ArrayProver(problem.bound))
    level = problem.objective(answer.w)
    nothing = certifier(answer.w, 0 * answer.u, goal=np.inf, rounds=0)
    for u in (answer.u.copy(), certifier.closer.tight_on_cuts(answer.w)):
        proof = certifier.closer.in_twice_the_precision(answer.w, u, level, 0.0, nothing)
        if proof.unconditional and np.isfinite(proof.dual_bound):
            assert at_most(Fraction(proof.dual_bound), exact_objective(problem, answer.w))


def solved(problem: ct.Problem, tol: float = 1e-7) -> ct.Solution:
    """To a gap that rounding of another kind, on another machine, allows as well; compiled, once for all n."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.NotConverged)
        return ct.solve(problem, tol, max_iter=2000, time_limit=60.0, engine=any_n())


def path_of_six(X: np.ndarray, y: np.ndarray, loss: ct.Loss, lam: float) -> ct.Problem:
    """Six nodes in a row, six rows each, group total variation."""
    graph = ct.EmpiricalGraph.from_edges([(i, i + 1) for i in range(5)])
    data = ct.LocalDatasets.from_rows(X, y, np.repeat(np.arange(6), 6))
    return ct.Problem(graph, data, loss, ct.GroupTotalVariation(), lam)


@pytest.mark.parametrize("seed", range(3))
def test_equal_columns_of_a_lasso(seed: int) -> None:
    """Only alpha = 1e-8 holds what one column takes from the other: rounding times 1/alpha is more than the gap."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((36, 3))
    X[:, 2] = X[:, 0]
    y = X @ [1.0, 2.0, 0.0] + rng.standard_normal(36) + 100 * np.repeat(np.arange(6), 6)
    assert solved(path_of_six(X, y, ct.Lasso(1e-8), 2.0)).status is ct.Status.OPTIMAL


@pytest.mark.parametrize("seed", range(5))
def test_a_shifted_column(seed: int) -> None:
    """Weights differ by a millionth of themselves, and pivots of Newton's system are lost in rounding."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.standard_normal((36, 2))[:, 0] + 1e6, np.ones(36)])
    assert solved(path_of_six(X, rng.standard_normal(36), ct.SquaredError(), 100.0)).status is ct.Status.OPTIMAL


def test_a_system_without_unknowns_has_no_factors_and_lapack_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    graph = ct.EmpiricalGraph.from_edges([(0, 1)])
    data = ct.LocalDatasets.from_rows([[1.0], [1.0]], [1.0, 3.0], nodes=[0, 1])
    problem = bound(ct.Problem(graph, data, lam=0.5))
    system = JointSystem(problem, problem.f.design)
    K = system.curvature(sparse.diags_array(np.ones(1)))
    assert system.factorised(K, np.zeros(2), np.ones(2, dtype=bool)) is None
    assert capfd.readouterr() == ("", "")
