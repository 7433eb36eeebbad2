"""Units in which rows and labels are of order one: no constant of the method then knows what the user measures in.

Units are powers of two, so that going there and back rounds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.base import LocalLosses
from coterie.problem.reuse import reused
from coterie.solver.bound import condition
from coterie.solver.certificate import Certificate
from coterie.solver.solution import Record, Solution

LARGEST_EXPONENT = 500  # of a unit
FAINTEST = 1e-120  # a strength that small beside losses of order one: squares of its duals could vanish


@dataclass(frozen=True, eq=False)
class Units:
    """A problem in units of its own: weights are to be multiplied by `weight`, objectives by `value`."""

    problem: BoundProblem
    weight: float = 1.0
    value: float = 1.0

    @classmethod
    def of(cls, problem: BoundProblem) -> Units:
        """Choose units by the root mean square of X and of y."""
        design = problem.f.below
        if design is None or not len(problem.M):
            return cls(problem)
        design.refuse_tiny()
        return cls.given(
            problem, reused(power_of_two, design.X), reused(power_of_two, design.y) if design.psi.scales else 1.0
        )

    @classmethod
    def given(cls, problem: BoundProblem, x: float, y: float) -> Units:
        """Measure X and y in these. (The square of a weight may be no number where that over a value is one.)"""
        changed = reused(_in_units, problem.f, x, y)
        if changed is None or (x == 1 and y == 1):
            _refuse_faint(problem, problem)
            return cls(problem)
        f, value = changed
        weight = y / x
        inner = replace(problem, f=f, lam=problem.lam * (weight / value * weight ** (problem.penalty.degree - 1)))
        _refuse_faint(problem, inner)
        return cls(inner, weight, value)

    def into(self, w: Array, u: Array) -> tuple[Array, Array]:
        """Weights and duals in these units."""
        return w / self.weight, u * (self.weight / self.value)

    def ratio_into(self, omega: float) -> float:
        """Sizes of duals over those of weights, in these units."""
        return omega * (self.weight / self.value * self.weight)

    def back(self, solution: Solution) -> Solution:
        """The solution in the units of the user."""
        return replace(
            solution,
            w=_times(solution.w, self.weight),
            u=_times(solution.u, self.value / self.weight),
            objective=solution.objective * self.value,
            dual_bound=solution.dual_bound * self.value,
            condition=condition(solution.reach * self.weight) if solution.condition else "",
            reach=solution.reach * self.weight,
            history=tuple(map(self.record, solution.history)),
        )

    def proof_back(self, proof: Certificate) -> Certificate:
        """The certificate in the units of the user."""
        bound, per_weight = proof.bound, self.value / self.weight
        return replace(
            proof,
            objective=proof.objective * self.value,
            bound=replace(
                bound,
                value=bound.value * self.value,
                weight_bound=bound.weight_bound * self.weight,
                residual_l1=bound.residual_l1 * per_weight,
            ),
            u=proof.u * per_weight,
            bound_before_charge=proof.bound_before_charge * self.value,
        )

    def record(self, record: Record) -> Record:
        return record._replace(objective=record.objective * self.value, dual_bound=record.dual_bound * self.value)

    def telling(self, callback: Callable[[Record], None] | None) -> Callable[[Record], None] | None:
        """A callback that is told in the units of the user."""
        return None if callback is None else lambda record: callback(self.record(record))


def _in_units(f: LocalLosses, x: float, y: float) -> tuple[LocalLosses, float] | None:
    """The losses in these units; those of a path keep what is computed of them for all λ."""
    return f.in_units(x, y)


def _times(x: Array, factor: float) -> Array:
    """x · factor in the place of x, which can be the largest array there is, and is nobody else's."""
    return x if factor == 1 else np.multiply(x, factor, out=x)


def _refuse_faint(problem: BoundProblem, inner: BoundProblem) -> None:
    """Refuse edges and ridges that double precision cannot tell from none; `inner` is the problem in its units."""
    faint = np.flatnonzero((problem.c > 0) & (inner.c < FAINTEST))
    if faint.size:
        i, j = problem.graph.edges[faint[0]]
        raise ValueError(
            f"the edge between nodes {i} and {j} has the strength lam × weight = {problem.c[faint[0]]:.3g}, "
            "which vanishes beside the losses: remove the edge, or make lam or its weight larger"
        )
    assert problem.f.below is not None
    assert inner.f.below is not None
    faint = np.flatnonzero((problem.f.below.ridge > 0) & (inner.f.below.ridge < FAINTEST))
    if faint.size:
        ridge = problem.f.below.ridge[faint[0]]
        raise ValueError(
            f"the ridge of column {faint[0]} is {ridge:.3g}, which vanishes beside the losses: make it larger, or 0"
        )


def power_of_two(x: Array) -> float:
    """The power of two nearest to the root mean square of the entries that are not zero; 1 where there is none.

    Its square is a number, too, so that what is smaller than 1e-150 stays small.
    """
    largest = float(np.abs(x).max(initial=0.0))
    return nearest_power(largest, *squares(x, largest))


def squares(x: Array, largest: float) -> tuple[float, int]:
    """The sum of squares of entries, in units of the largest, and how many are not zero."""
    if largest == 0:
        return 0.0, 0
    there = x[x != 0] / largest
    return float((there * there).sum()), len(there)


def nearest_power(largest: float, total: float, count: float) -> float:
    """That power, where the squares of so many entries add up to `total` in units of the largest."""
    if largest == 0:
        return 1.0
    exponent = np.round(np.log2(largest) + 0.5 * np.log2(total / count))
    return float(2.0 ** np.clip(exponent, -LARGEST_EXPONENT, LARGEST_EXPONENT))
