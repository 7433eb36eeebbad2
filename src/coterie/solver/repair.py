"""Dual repair: the feasible edge flow nearest to u that leaves nothing where nothing may be left."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coterie.kernels import flow, register
from coterie.problem import Problem
from coterie.problem.arrays import Array

ROUNDS = 5
CG_STEPS = 10
CLEAN = 1e-15  # of the largest strength: a rest that small is rounding


def repair(problem: Problem, u: Array, rounds: int = ROUNDS) -> Array:
    """Return u in the domain of g* with N Dᵀu small.

    N projects each node's vector onto the directions in which its loss is flat: everything at an
    unlabelled node, null(X_i) at a node with m_i < n. Each round moves u by the least-squares
    correction −S D N φ, (N Dᵀ S D N) φ = N Dᵀ u, with more weight S on edges that have slack, found by a few
    conjugate-gradient steps, and clips the result.
    """
    u = problem.penalty.into_domain(u, problem.c)
    _silence_undetermined(problem, u)
    if problem.graph.n_edges == 0 or (len(problem.M) == problem.graph.n_nodes and problem.f.seen is None):
        return u
    edges = register(problem.n_features), problem.penalty.kernel, problem.graph.edges, problem.c, u
    keep = flat_projection(problem)
    rest = np.empty((problem.graph.n_nodes, problem.n_features))
    diagonal = np.empty_like(rest)
    for _ in range(rounds):
        flow.divergence(problem.graph.edges, u, rest)
        keep(rest)
        if np.abs(rest).max() <= CLEAN * problem.c.max():
            break
        flow.laplacian_diagonal(*edges, diagonal)

        def laplacian(x: Array, out: Array) -> None:
            flow.laplacian(*edges, x, out)
            keep(out)

        flow.correct(*edges, _conjugate_gradients(laplacian, rest, keep, diagonal))
    return u


def flat_projection(problem: Problem) -> Callable[[Array], None]:
    """Return N as a function that works in place on node vectors (V, n)."""
    seen = problem.f.seen
    place = np.full(problem.graph.n_nodes, -1)
    place[problem.M] = np.arange(len(problem.M))
    room = register(problem.n_features)
    rows = np.empty((0, 0, 0)) if seen is None else seen
    return lambda x: flow.keep_flat(room, place, seen is None, rows, x)


def _silence_undetermined(problem: Problem, u: Array) -> None:
    if len(problem.undetermined):
        u[np.isin(problem.graph.edges[:, 0], problem.undetermined)] = 0.0


def _conjugate_gradients(
    apply: Callable[[Array, Array], None], rest: Array, keep: Callable[[Array], None], diagonal: Array
) -> Array:
    """A few Jacobi-preconditioned steps on a projected Laplacian, all coordinates at once."""
    inverse = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)
    x, r, Ap = np.zeros_like(rest), rest, np.empty_like(rest)
    z = inverse * r
    keep(z)
    p, rz = z.copy(), float(np.vdot(r, z))
    enough = 1e-30 * rz
    for _ in range(CG_STEPS):
        if rz <= enough:
            break
        apply(p, Ap)
        curvature = float(np.vdot(p, Ap))
        if curvature <= 0:
            break
        alpha = rz / curvature
        x += alpha * p
        r -= alpha * Ap
        np.multiply(inverse, r, out=z)
        keep(z)
        rz, before = float(np.vdot(r, z)), rz
        p *= rz / before
        p += z
    return x
