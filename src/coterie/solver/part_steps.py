"""Steps of a problem of which every rank holds a part: as `balance.py` has them, with sums over ranks."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from coterie.engines.mpi.norm import lanczos
from coterie.engines.mpi.part import Part
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.solver.balance import EVEN, LANCZOS_STEPS, UNEVEN, Steps


def steps_of(part: Part, outline: BoundProblem) -> Steps:
    """Choose s_e, d_i, η and ω, or the steps of dual ascent; values of nodes and edges are those of the part."""
    problem, crew, edges = part.problem, part.crew, outline.graph.n_edges
    total = crew.sum(float(problem.c[: part.counted].sum()))
    s = np.sqrt(problem.c * (edges / total)) if problem.lam > 0 and edges else np.ones(problem.graph.n_edges)
    ends = problem.graph.edges.ravel()
    d = part.told(np.bincount(ends, weights=np.repeat(s, 2), minlength=problem.graph.n_nodes))
    d[d == 0] = 1.0
    ascent = _ascent(part, outline, s, d)
    if ascent is not None:
        return Steps(s, d, ascent=ascent)
    eta = 1.0
    if edges:
        alpha, beta = lanczos(part, s, d, LANCZOS_STEPS)
        eta = max(1.0, 0.98 / np.sqrt(float(eigvalsh_tridiagonal(alpha, beta[:-1])[-1])))
    return Steps(s, d, eta, _first_omega(part, outline, d))


def _ascent(part: Part, outline: BoundProblem, s: Array, d: Array) -> Array | None:
    """Steps of accelerated dual ascent, or None where some loss is not strongly and evenly convex."""
    problem, crew, q = part.problem, part.crew, part.problem.f.quadratic
    if q is None:
        return None
    if crew.any(len(problem.M) < part.own or q.row_space is not None or bool((_range(q.h) > EVEN).any())):
        return None
    share = np.ones(len(d))
    share[problem.M] = q.h.min(axis=1) / d[problem.M]
    share = part.told(share)
    i, j = problem.graph.edges.T
    poorer, richer = np.minimum(share[i], share[j]), np.maximum(share[i], share[j])
    uneven = crew.sum(float(np.sqrt(richer / poorer)[: part.counted].sum()))
    return None if uneven > UNEVEN * outline.graph.n_edges else 0.5 * s * poorer


def _range(h: Array) -> Array:
    """Condition numbers."""
    return h.max(axis=1) / np.maximum(h.min(axis=1), np.finfo(float).tiny)


def _first_omega(part: Part, outline: BoundProblem, d: Array) -> float:
    """Typical size of u over typical size of w, which is that of one model for the rows that all ranks know."""
    pooled, _ = outline.f.pooled(np.zeros(len(outline.M), dtype=np.int64), 1)
    weight, strength = part.crew.sums(float(d[: part.own].sum()), float((part.counted_c**2).sum()))
    size = np.sqrt(weight * float((pooled**2).sum()))
    flow = np.sqrt(2 * outline.n_features * strength)
    return float(flow / size) if size > 0 and flow > 0 else 1.0
