"""How far from optimal is an answer, at most?

For any u and any q_i in the domain of L_i*, Fenchel's inequality on every node and edge gives, for
every minimiser w*,

    P* ≥ −Σ_{i∈M} L_i*(q_i) − g*(u) + Σ_i ⟨q_i + (Dᵀu)_i, w*_i⟩,        q_i = 0 at unlabelled nodes.

The last sum vanishes when q = −Dᵀu, the dual of the paper. It cannot always: at unlabelled nodes, and
along directions that the data of a node do not see, (Dᵀu)_i would have to be zero to the last bit. So u
is first *repaired*, to make that sum small, and what is left is *charged* at the worst w*_i inside a box
that provably holds a minimiser (`enclosure.py`), or else inside a stated box: then the bound is conditional.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.kernels.flow import divergence
from coterie.problem import Problem
from coterie.problem.arrays import Array
from coterie.solver.enclosure import enclosure
from coterie.solver.repair import repair

FLOOR = 1e-8  # relative gaps divide by the objective, or by this part of the objective of zero weights
ROUNDING = 16 * np.finfo(float).eps  # each sum below is charged this much of the size of its terms


@dataclass(frozen=True, eq=False)
class Certificate:
    """A primal value, a lower bound on the optimum, and the dual point that proves it."""

    objective: float
    dual_bound: float
    unconditional: bool
    condition: str
    u: Array


def certify(problem: Problem, w: Array, u: Array) -> Certificate:
    """Bound the optimum of `problem` from below, with a dual point near u; w helps and is not changed."""
    objective = problem.objective(w)
    u = repair(problem, u)
    bound, unconditional, condition = _dual_bound(problem, w, u, objective)
    return Certificate(objective, bound, unconditional, condition, u)


def relative_gap(problem: Problem, objective: float, bound: float) -> float:
    """(P − D) / max(|P|, FLOOR × objective of zero weights); zero when both vanish."""
    difference = max(objective - bound, 0.0)
    if difference == 0.0:
        return 0.0
    return difference / max(abs(objective), FLOOR * problem.scale, np.finfo(float).tiny)


def _dual_bound(problem: Problem, w: Array, u: Array, level: float) -> tuple[float, bool, str]:
    M = problem.M
    rest = np.empty_like(w)
    divergence(problem.graph.edges, u, rest)
    q, conjugate = problem.f.conjugate(-rest[M], w[M])
    rest[M] += q
    g = problem.penalty.conjugate(u, problem.c)
    box = enclosure(problem, level)
    unconditional, condition = True, ""
    if box is None:
        reach = 10 * np.abs(w).max(initial=0.0) or 1.0
        box = np.full_like(w, -reach), np.full_like(w, reach)
        unconditional = not rest.any()
        condition = "" if unconditional else f"some minimiser has no weight above {reach:.3g} in absolute value"
    charge = charge_of(rest, *box)
    size = np.abs(conjugate).sum() + abs(g) + abs(charge) + abs(level)
    bound = float(-conjugate.sum() - g + charge - ROUNDING * size)
    return bound if np.isfinite(bound) else -np.inf, unconditional, condition


def charge_of(rest: Array, low: Array, high: Array) -> float:
    """min Σ_i ⟨rest_i, w_i⟩ over low ≤ w ≤ high, never positive when the box holds zero."""
    with np.errstate(invalid="ignore"):  # 0 × ∞: no rest, no charge
        terms = np.where(rest > 0, rest * low, rest * high)
    return float(terms[rest != 0].sum())
