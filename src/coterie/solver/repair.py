"""Dual repair: the feasible edge flow nearest to u that leaves nothing where nothing may be left."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coterie.problem import Problem
from coterie.problem.arrays import Array

ROUNDS = 5
CG_STEPS = 10
LEAST_WEIGHT = 0.1  # of an edge without slack, against 1 for an edge with all of it


def repair(problem: Problem, u: Array, rounds: int = ROUNDS) -> Array:
    """Return u in the domain of g* with N Dᵀu small.

    N projects each node's vector onto the directions in which its loss is flat: everything at an
    unlabelled node, null(X_i) at a node with m_i < n. Each round moves u by the least-squares
    correction −S D N φ, (N Dᵀ S D N) φ = N Dᵀ u, with more weight S on edges that have slack, found by a few
    conjugate-gradient steps, and clips the result.
    """
    u = problem.penalty.into_domain(u, problem.c)
    u = _silence_undetermined(problem, u)
    N = flat_projection(problem)
    if N is None or problem.graph.n_edges == 0:
        return u
    D, c = problem.graph.D, problem.c
    full = problem.penalty.slack(np.zeros_like(u), c)
    for _ in range(rounds):
        rest = N(D.T @ u)
        if not rest.any():
            break
        S = np.maximum(problem.penalty.slack(u, c), LEAST_WEIGHT * full)
        diagonal = abs(D).T @ S

        def laplacian(x: Array, S: Array = S) -> Array:
            return N(D.T @ (S * (D @ x)))

        potential = _conjugate_gradients(laplacian, rest, N, diagonal)
        u = problem.penalty.into_domain(u - S * (D @ potential), c)
    return u


def flat_projection(problem: Problem) -> Callable[[Array], Array] | None:
    """Return N as a function on node vectors (V, n), or None when no loss is flat anywhere."""
    M, flat = problem.M, problem.f.flat
    everywhere_labelled = len(M) == problem.graph.n_nodes
    if everywhere_labelled and flat is None:
        return None

    def N(x: Array) -> Array:
        x = x.copy()
        x[M] = 0.0 if flat is None else np.matmul(flat, x[M][:, :, None])[:, :, 0]
        return x

    return N


def _silence_undetermined(problem: Problem, u: Array) -> Array:
    silent = np.isin(problem.graph.edges[:, 0], problem.undetermined)
    return np.where(silent[:, None], 0.0, u)


def _conjugate_gradients(
    apply: Callable[[Array], Array], rest: Array, N: Callable[[Array], Array], diagonal: Array
) -> Array:
    """A few Jacobi-preconditioned steps on a projected Laplacian, all coordinates at once."""
    inverse = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)
    x, r = np.zeros_like(rest), rest
    z = N(inverse * r)
    p, rz = z, float(np.vdot(r, z))
    enough = 1e-30 * rz
    for _ in range(CG_STEPS):
        if rz <= enough:
            break
        Ap = apply(p)
        curvature = float(np.vdot(p, Ap))
        if curvature <= 0:
            break
        alpha = rz / curvature
        x, r = x + alpha * p, r - alpha * Ap
        z = N(inverse * r)
        rz, before = float(np.vdot(r, z)), rz
        p = z + (rz / before) * p
    return x
