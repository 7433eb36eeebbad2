"""Duals in twice the precision: what rounding leaves of ρ is taken up by second floats.

ρ = Σ_r a_r x_r + b + s + Dᵀu of duals that are floats is rounding at best, and rounding times far away weights can be
more than the gap. Fenchel's inequality holds for any real duals. So each is a sum of two floats, hi + lo: `hi` is
evaluated as always, and `lo` costs at most (docs/certificate.md has the proof)

    row, squared error   |lo| |⟨x, w⟩ − y − hi/2s| + lo²/4s          ridge, squared variation: alike
    row, logistic        |lo| (|z| + |log t| + |log(1 − t)| + 1),   t = |hi|/s,  |lo| ≤ ½ min(|hi|, s − |hi|)
    total variation      |lo| |Dw|,   and the bound is divided by 1 + δ where |lo| ≤ δ c         alpha: alike

Corrections come from one `JointSystem` of all rows and edges; whatever they are, the bound is proven with them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from coterie.kernels.choice import Either
from coterie.kernels.interruption import time_is_up
from coterie.kernels.kinds import LOGISTIC
from coterie.kernels.reference.exact import EPS, two_sum
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.design import Design
from coterie.proofs.ellipsoids import WIDER
from coterie.proofs.rest import Rest
from coterie.solver.whole.joint_system import JointSystem

flow = Either("flow")

ROUNDS = 8  # of correction; mostly four do
RESERVE = 1e-6  # of their curvature is what rows count with while edges try alone
TIGHT = 1e-8  # of its strength: the room that every dual has
FUSED = 1e-6  # of the largest weight: differences that are next to nothing
FURTHEST = 1e-13  # of its strength: what the second float of an edge may add


class Duals(NamedTuple):
    """Of rows (N,) and ridge (|M|, n), of edges (E, n), and of alpha (V, n), zero where there is none."""

    a: Array
    b: Array
    u: Array
    s: Array


class Twofold(NamedTuple):
    """Duals hi + lo of a problem."""

    problem: BoundProblem
    design: Design
    hi: Duals
    lo: Duals

    def rest(self, w: Array) -> Rest:
        """ρ of hi + lo."""
        (rho, low, rounding_bound), (more, lower, unsure) = self._forces(self.hi), self._forces(self.lo)
        rho, rounded = two_sum(rho, more)
        low = low + lower
        rounding_bound = rounding_bound + unsure + 2 * EPS * (np.abs(low) + np.abs(rounded))
        rho = rho + (rounded + low)
        return Rest(rho, rounding_bound + EPS * np.abs(rho), w)

    def _forces(self, duals: Duals) -> tuple[Array, Array, Array]:
        """ρ of these duals as hi + low, and how far that may be from the truth."""
        rho, low, rounding_bound = np.empty((3, *duals.s.shape))
        flow.exact_divergence(self.problem.graph.edges, duals.u, rho, low, rounding_bound)
        flow.add_exactly(duals.s, rho, low, rounding_bound)
        M, (q, q_low, q_doubt) = self.problem.M, self.design.forces(duals.a, duals.b)
        rho[M], rounded = two_sum(rho[M], q)
        rounding_bound[M] += q_doubt + 2 * EPS * (np.abs(rounded) + np.abs(low[M]) + np.abs(q_low))
        low[M] += rounded + q_low
        return rho, low, rounding_bound

    def cost(self, w: Array) -> float:
        """What lo takes off the bound at w, at most."""
        hi, lo, M = self.hi, self.lo, self.problem.M
        rows = self._row_costs(w[M])
        ridge = _quadratic(lo.b, w[M], hi.b, self.design.ridge)
        i, j = self.problem.graph.edges.T
        edges = np.abs(lo.u) * np.abs(w[i] - w[j])
        if self.problem.penalty.degree == 2:
            edges = _quadratic(lo.u, w[i] - w[j], hi.u, self.problem.c[:, None])
        ground = np.abs(lo.s) * np.abs(w)
        return sum(float(part.sum()) for part in (rows, ridge, edges, ground)) * WIDER

    def _row_costs(self, w: Array) -> Array:
        design, a, lo = self.design, self.hi.a, np.abs(self.lo.a)
        if design.psi.kernel == LOGISTIC:
            owner = np.repeat(np.arange(len(w)), np.diff(design.starts))
            terms = design.X * w[owner]
            margin = np.abs(terms.sum(axis=1)) + (w.shape[1] + 2) * EPS * np.abs(terms).sum(axis=1)
            t, left = np.abs(a) / design.s, (design.s - np.abs(a)) / design.s
            steep = margin - np.log(t, where=lo > 0, out=np.zeros_like(t)) - np.log(left, where=lo > 0, out=0 * t) + 1
            return np.where(lo > 0, lo * steep, 0.0)
        best, _ = design.slopes(w)
        off = (np.abs(a - best) + 4 * EPS * (np.abs(a) + np.abs(best))) / (2 * design.s) + design.misses(w)
        return lo * off + lo * (lo / (4 * design.s))

    def stretch(self) -> float:
        """δ: the duals of edges and alpha are in a domain that is larger by this part, at most."""
        parts, box = [], self.problem.f.l1_box
        if self.problem.penalty.degree == 1:
            parts.append(_part(_sizes(self.problem, self.lo.u), self.problem.c))
        if box is not None:
            parts.append(_part(np.abs(self.lo.s[self.problem.M]), box[1]))
        return max(parts, default=0.0) * WIDER


def twofold_duals(
    problem: BoundProblem, design: Design, w: Array, u: Array, s: Array | None, fixed: NDArray[np.bool_]
) -> Twofold:
    """Duals near those that are best at w, whose ρ is as small as second floats can make it.

    `fixed` (V, n) marks weights along which nothing is seen, and so nothing can be left.
    """
    system = JointSystem(problem, design)
    hi = Duals(*design.slopes(w[problem.M]), u, np.zeros_like(w) if s is None else s)
    found = Twofold(problem, design, hi, Duals(*map(np.zeros_like, hi)))
    bend = design.bend(w[problem.M])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what comes of that is not taken
        found = _corrected(system, found, bend * RESERVE, w, fixed, edges_only=True)
        return _corrected(system, found, bend, w, fixed)


def _corrected(
    system: JointSystem, duals: Twofold, bend: Array, w: Array, fixed: NDArray[np.bool_], edges_only: bool = False
) -> Twofold:
    """The best of a few rounds of correction. Where edges can do it alone, rows stay what is best at w."""
    best, least = duals, np.inf
    for _ in range(ROUNDS):
        rest = duals.rest(w)
        size = float((np.abs(rest.rho) + rest.rounding_bound).sum())
        if edges_only and not size < 0.5 * least:
            break
        if size < least:
            best, least = duals, size
        done = time_is_up() or np.abs(rest.rho).sum() <= rest.rounding_bound.sum()
        more = None if done else _correction(system, duals.hi, bend, w, rest.rho, fixed)
        if more is None:
            break
        if edges_only:
            more = more._replace(a=np.zeros_like(more.a), b=np.zeros_like(more.b))
        duals = _moved(duals, more, system)
    return best


def _correction(
    system: JointSystem, hi: Duals, bend: Array, w: Array, rho: Array, fixed: NDArray[np.bool_]
) -> Duals | None:
    """What all duals together can do against ρ at least cost; None where that cannot be found."""
    S = _shares(system, hi, w)
    K = system.curvature(S, system.ridge)
    factors = system.factorised(K, bend, fixed.ravel())
    if factors is None:
        return None
    step, pull = factors.solve(-rho.ravel(), len(bend))
    ridge = (system.ridge * step).reshape(w.shape)[system.problem.M]
    more = Duals(pull, ridge, *system.unflat(S @ (system.D @ step)))
    return more if all(np.isfinite(part).all() for part in more) else None


def _shares(system: JointSystem, hi: Duals, w: Array) -> Any:
    """How much of a correction each edge takes: as it has room for, and as the difference across it costs.

    The dual of an edge of group total variation can turn, even where it has no room to grow.
    """
    n, penalty, edges = w.shape[1], system.problem.penalty, system.edges
    d, flat = system.D @ w.ravel(), system.flat(hi.u, hi.s)
    theta = np.abs(d)
    if penalty.couples:
        theta[edges] = np.repeat(np.linalg.norm(d[edges].reshape(-1, n), axis=1), n)
    theta += FUSED * (float(np.abs(w).max(initial=0.0)) or 1.0)
    room = system.slack(flat, TIGHT) / theta
    if penalty.degree == 2:
        room[edges] = 2 * system.c[edges]
    if not penalty.couples:
        return sparse.diags_array(room)
    turn = system.c / theta
    turn[edges.stop :] = room[edges.stop :]
    u = flat[edges].reshape(-1, n)
    along = np.divide(u, np.linalg.norm(u, axis=1, keepdims=True), out=np.zeros_like(u), where=u != 0)
    blocks = along[:, :, None] * along[:, None, :] * (room - turn)[edges].reshape(-1, n)[:, :, None]
    E, m = len(blocks), len(flat)
    turned = sparse.bsr_array((blocks, np.arange(E), np.arange(E + 1)), shape=(E * n, E * n))
    rest = sparse.csr_array((m - E * n, m - E * n))
    return sparse.diags_array(turn) + sparse.block_diag([turned, rest], format="csr")


def _moved(duals: Twofold, more: Duals, system: JointSystem) -> Twofold:
    """hi + lo + more, with hi in its domain and lo small."""
    problem, design = duals.problem, duals.design
    low = [one + two for one, two in zip(duals.lo, more, strict=True)]
    a, b, u, s = (one + two for one, two in zip(duals.hi, low, strict=True))
    u, s = system.unflat(system.inside(system.flat(u, s)))
    if design.psi.kernel == LOGISTIC:
        a = np.where(design.y > 0.5, np.clip(a, -design.s, 0.0), np.clip(a, 0.0, design.s))
    hi = Duals(a, b, u, s)
    a, b, u, s = (two - (new - one) for one, two, new in zip(duals.hi, low, hi, strict=True))
    if design.psi.kernel == LOGISTIC:
        a = np.where(np.abs(a) <= 0.5 * np.minimum(np.abs(hi.a), design.s - np.abs(hi.a)), a, 0.0)
    most = FURTHEST * system.c
    if problem.penalty.degree == 2:
        most[system.edges] = np.where(system.c[system.edges] > 0, np.inf, 0.0)
    u, s = system.unflat(np.clip(system.flat(u, s), -most, most))
    return Twofold(problem, design, hi, Duals(a, b, u, s))


def _part(size: Array, of: Array) -> float:
    """The largest size/of; where `of` is 0, so is size."""
    return float(np.divide(size, of, out=np.zeros_like(size), where=of > 0).max(initial=0.0))


def _quadratic(lo: Array, at: Array, hi: Array, strength: Array) -> Array:
    """|lo| |at − hi/2h| + lo²/4h, for h = strength > 0 and lo = 0 elsewhere."""
    strength = np.broadcast_to(strength, lo.shape)
    there = strength > 0
    half = np.divide(hi, 2 * strength, out=np.zeros_like(lo), where=there)
    off = np.abs(at - half) + 4 * EPS * (np.abs(at) + np.abs(half))
    lo = np.abs(lo)
    return lo * (off + np.divide(lo, 4 * strength, out=np.zeros_like(lo), where=there))


def _sizes(problem: BoundProblem, u: Array) -> Array:
    """|u_e| at most, in the norm of the penalty's domain. (No squares: they could vanish.)"""
    size = np.abs(u)
    return size.sum(axis=1) if problem.penalty.couples else size.max(axis=1, initial=0.0)
