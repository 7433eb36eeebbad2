"""A loss that a user writes in plain NumPy: as slow as it is, every engine gives the right answer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import cvxpy as cp
import numpy as np
import pytest

import coterie as ct
import problems
from any_n import any_n
from coterie.problem.losses import LocalLosses
from pairs import in_pairs
from problems import EVERY_PENALTY, KINDS, LossCase, instance, oracle, rows_of


@dataclass(frozen=True)
class Huber(ct.Loss):
    """The mean of h(y_r − ⟨x_r, w⟩) with h(d) = d²/2 for |d| ≤ 1, else |d| − 1/2."""

    def bind(self, rows: Any) -> HuberLosses:
        first = np.cumsum(rows.m) - rows.m
        return HuberLosses([(rows.X[a : a + m], rows.y[a : a + m]) for a, m in zip(first, rows.m, strict=True)])


class HuberLosses(LocalLosses):
    """Smooth, with gradient and Hessian; inner problems by damped Newton steps, one node after the other."""

    smooth = True

    def __init__(self, nodes: list[tuple[np.ndarray, np.ndarray]]) -> None:
        self.nodes = nodes

    def value(self, w: np.ndarray) -> np.ndarray:
        return np.array([self._value(k, z) for k, z in enumerate(w)])

    def gradient(self, w: np.ndarray) -> np.ndarray:
        return np.array([self._gradient(k, z) for k, z in enumerate(w)]).reshape(w.shape)

    def hessian(self, w: np.ndarray) -> np.ndarray:
        return np.array([self._hessian(k, z) for k, z in enumerate(w)]).reshape(*w.shape, w.shape[1])

    def prox(self, v: np.ndarray, tau: np.ndarray, start: np.ndarray) -> np.ndarray:
        return np.array([self._newton([k], 0 * v[k], v[k], 1 / tau[k], start[k]) for k in range(len(v))])

    def conjugate(self, p: np.ndarray, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Exact at q = ∇L(w), for any w; Newton looks for the one with q = p."""
        w = np.array([self._newton([k], p[k], near[k], 1e-9, near[k]) for k in range(len(p))]).reshape(p.shape)
        q = self.gradient(w)
        return q, (q * w).sum(axis=1) - self.value(w)

    def pooled(self, groups: np.ndarray, n_groups: int) -> tuple[np.ndarray, np.ndarray]:
        n = self.nodes[0][0].shape[1]
        v, p = np.zeros((n_groups, n)), np.zeros((len(groups), n))
        for g in range(n_groups):
            members = np.flatnonzero(groups == g)
            if members.size:
                v[g] = self._newton(list(members), np.zeros(n), np.zeros(n), 1e-12, np.zeros(n))
                p[members] = self.gradient(v[groups])[members]
                p[members] -= p[members].mean(axis=0)
        return v, p

    def _value(self, k: int, z: np.ndarray) -> float:
        X, y = self.nodes[k]
        d = np.abs(y - X @ z)
        return float(np.where(d <= 1, d**2 / 2, d - 0.5).mean())

    def _gradient(self, k: int, z: np.ndarray) -> np.ndarray:
        X, y = self.nodes[k]
        return -X.T @ np.clip(y - X @ z, -1, 1) / len(y)

    def _hessian(self, k: int, z: np.ndarray) -> np.ndarray:
        X, y = self.nodes[k]
        return X.T @ (X * (np.abs(y - X @ z) <= 1)[:, None]) / len(y)

    def _newton(self, of: list[int], p: np.ndarray, anchor: np.ndarray, curvature: float, z: np.ndarray) -> np.ndarray:
        """argmin Σ L_k(z) − ⟨p, z⟩ + curvature ‖z − anchor‖²/2."""

        def objective(z: np.ndarray) -> float:
            return sum(self._value(k, z) for k in of) - p @ z + curvature / 2 * sum((z - anchor) ** 2)

        enough = 1e-12 * max(1.0, np.abs(p).max(), curvature * np.abs(anchor).max())
        for _ in range(50):
            slope = sum(self._gradient(k, z) for k in of) - p + curvature * (z - anchor)
            if np.abs(slope).max() <= enough:
                break
            H = sum(self._hessian(k, z) for k in of) + (curvature + 1e-8) * np.eye(len(z))
            step, length = -np.linalg.solve(H, slope), 1.0
            step /= max(1.0, 1e-2 * np.abs(step).max())
            now = objective(z)
            while objective(z + length * step) > now + 1e-4 * length * (slope @ step) + 1e-15 * abs(now):
                length /= 2
            z = z + length * step
        return z


@dataclass(frozen=True)
class Absolute(ct.Loss):
    """Σ_r |y_r − x_r w| for a single feature: not smooth, and no more than the four methods that must be there."""

    def bind(self, rows: Any) -> AbsoluteLosses:
        first = np.cumsum(rows.m) - rows.m
        parts = [(rows.X[a : a + m, 0], rows.y[a : a + m]) for a, m in zip(first, rows.m, strict=True)]
        return AbsoluteLosses([(np.abs(x), y / x) for x, y in parts])


class AbsoluteLosses(LocalLosses):
    """Σ_r a_r |w − b_r|: everything happens at the breakpoints."""

    smooth: ClassVar[bool] = False

    def __init__(self, nodes: list[tuple[np.ndarray, np.ndarray]]) -> None:
        self.nodes = nodes

    def value(self, w: np.ndarray) -> np.ndarray:
        return np.array([a @ np.abs(z[0] - b) for (a, b), z in zip(self.nodes, w, strict=True)])

    def prox(self, v: np.ndarray, tau: np.ndarray, start: np.ndarray) -> np.ndarray:
        out = np.empty_like(v)
        for k, (a, b) in enumerate(self.nodes):
            stops = np.sort(b)
            pulls = np.array([a @ np.sign(s - b) for s in (*((stops[1:] + stops[:-1]) / 2), *b)])
            candidates = np.concatenate([b, v[k, 0] - tau[k] * np.array([*pulls, a.sum(), -a.sum()])])
            values = [a @ np.abs(z - b) + (z - v[k, 0]) ** 2 / (2 * tau[k]) for z in candidates]
            out[k] = candidates[np.argmin(values)]
        return out

    def conjugate(self, p: np.ndarray, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q, value = np.empty_like(p), np.empty(len(p))
        for k, (a, b) in enumerate(self.nodes):
            q[k] = np.clip(p[k], -a.sum(), a.sum())
            value[k] = max(q[k, 0] * s - a @ np.abs(s - b) for s in b)
        return q, value

    def pooled(self, groups: np.ndarray, n_groups: int) -> tuple[np.ndarray, np.ndarray]:
        v, p = np.zeros((n_groups, 1)), np.zeros((len(groups), 1))
        for g in range(n_groups):
            members = np.flatnonzero(groups == g)
            if not members.size:
                continue
            a, b = (np.concatenate(part) for part in zip(*(self.nodes[k] for k in members), strict=True))
            v[g] = median = b[np.argmin([a @ np.abs(s - b) for s in b])]
            slope = np.array([c @ np.sign(median - d) for c, d in (self.nodes[k] for k in members)])
            room = np.array([c @ (d == median) for c, d in (self.nodes[k] for k in members)])
            p[members, 0] = slope - room * slope.sum() / room.sum()
        return v, p


def _real_labels(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return z + 0.3 * rng.standard_t(2, len(z))


def _convex_huber(loss: Any, z: cp.Expression, y: np.ndarray, m: np.ndarray, w: cp.Expression) -> cp.Expression:
    return 0.5 * (1 / m) @ cp.huber(z - y, 1)


def _naive_huber(loss: Any, X: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    return float(np.mean([d**2 / 2 if abs(d) <= 1 else abs(d) - 0.5 for d in y - X @ w]))


CASES = {
    Huber: LossCase((Huber(),), _real_labels, _naive_huber, _convex_huber, lambda loss, n: np.zeros((1, n))),
    Absolute: LossCase(
        (Absolute(),),
        _real_labels,
        lambda loss, X, y, w: float(sum(abs(y - X @ w))),
        lambda loss, z, y, m, w: cp.norm1(z - y),
        lambda loss, n: np.zeros((1, n)),
    ),
}

engines = pytest.mark.parametrize("engine", ["numba", "numpy"])
penalties = pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)


@pytest.fixture(autouse=True)
def _known_to_the_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, case in CASES.items():
        monkeypatch.setitem(problems.LOSSES, kind, case)


def solved(problem: ct.Problem, tol: float = 1e-6, **options: Any) -> ct.Solution:
    """Nothing is known of the rows behind such a loss: bounds may rest on a condition, and a warning says so."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        solution = ct.solve(problem, tol, **options)
    if solution.unconditional:
        assert solution.status is ct.Status.OPTIMAL
        assert not told
    else:
        assert solution.status is ct.Status.CONDITIONAL
        assert [one.category for one in told] == [ct.NotConverged]
        assert f"The bound holds if {solution.condition}." in str(told[0].message)
        assert np.abs(solution.w).max() <= reach_of(solution.condition)
    return solution


def reach_of(condition: str) -> float:
    """The number in "some minimiser has no weight above … in absolute value"."""
    return float(condition.removeprefix("some minimiser has no weight above ").removesuffix(" in absolute value"))


def check(problem: ct.Problem, engine: str, tol: float = 1e-6) -> None:
    solution, best = solved(problem, tol, engine=engine), oracle(problem).value
    slack = 1e-9 * (abs(best) + problem.constant_loss)  # the accuracy of the oracle
    assert solution.gap <= tol
    assert solution.objective <= best * (1 + tol) + slack
    assert solution.dual_bound <= best + slack


@pytest.mark.parametrize(("kind", "penalty", "engine"), in_pairs(KINDS, EVERY_PENALTY, ["numba", "numpy"]), ids=str)
def test_huber(kind: str, penalty: ct.Penalty, engine: str) -> None:
    check(instance(kind, Huber(), penalty), engine)


def median_problem(labelled: int, penalty: ct.Penalty, lam: float) -> ct.Problem:
    rng = np.random.default_rng(2)
    plain = instance("weighted edges")
    X, y, nodes = rows_of(Absolute(), rng.standard_normal((12, 1)), 3, rng)
    y[~np.isin(nodes, rng.permutation(12)[:labelled])] = np.nan
    return ct.Problem(plain.graph, ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=12), Absolute(), penalty, lam)


@pytest.mark.slow
@engines
@penalties
@pytest.mark.parametrize("labelled", [4, 12])
def test_absolute_error(labelled: int, penalty: ct.Penalty, engine: str) -> None:
    check(median_problem(labelled, penalty, 0.1), engine)


@penalties
def test_both_engines_do_the_same(penalty: ct.Penalty) -> None:
    for problem in (instance("few points", Huber(), penalty), median_problem(12, penalty, 0.1)):
        a, b = (solved(problem, engine=engine) for engine in (any_n(), "numpy"))
        assert a.n_iter == b.n_iter
        assert a.objective == pytest.approx(b.objective, rel=1e-9)


def test_algorithm_1_takes_it_too() -> None:
    problem = instance("all labelled", Huber())
    solution = ct.algorithm1(problem, 500, sigma=0.05, tau=10.0)
    assert solution.objective == pytest.approx(oracle(problem).value, rel=1e-4)


def test_a_path_of_it() -> None:
    problem = instance("few labelled", Huber())
    with pytest.warns(ct.NotConverged, match="no weight above"):
        path = ct.solve_path(problem, n_lams=3, tol=1e-5)
    assert {s.status for _, s in path} <= {ct.Status.OPTIMAL, ct.Status.CONDITIONAL}
    assert len(path.solutions[0].clusters()) == 1
