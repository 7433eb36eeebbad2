"""The problem as solvers take it: its losses are bound to their rows, once, whatever happens to the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from coterie.kernels.choice import Either
from coterie.problem.arrays import Array
from coterie.problem.graph import EmpiricalGraph
from coterie.problem.losses.base import LocalLosses, check_strength
from coterie.problem.penalties import Penalty
from coterie.problem.penalties.by_column import ByColumn

flow = Either("flow")


@dataclass(frozen=True, eq=False)
class BoundProblem:
    """min_w  f(w) + g(Dw) = Σ_{i ∈ M} L_i(w_i) + λ Σ_e A_e φ(w_i − w_j).

    Attributes
    ----------
    graph : EmpiricalGraph
    M : array of shape (|M|,)
        The labelled nodes, ascending.
    f : LocalLosses
        L_i of the labelled nodes.
    n_features : int
        The length n of each weight vector.
    penalty : Penalty
        With its strengths by column, where there are any.
    lam : float
        λ ≥ 0.
    """

    graph: EmpiricalGraph
    M: NDArray[np.int64]
    f: LocalLosses
    n_features: int
    penalty: Penalty
    lam: float

    def __repr__(self) -> str:
        known = f"{len(self.M)} of them labelled, {self.n_features} features"
        return f"BoundProblem({self.graph!r}, {known}, {type(self.f).__name__}, {self.penalty!r}, lam={self.lam:.6g})"

    def at(self, lam: float) -> BoundProblem:
        """Return the problem with another λ and the same losses."""
        check_strength(lam, "lam")
        return replace(self, lam=lam)

    @property
    def labelled(self) -> NDArray[np.int64] | slice:
        """M as an index; a slice where that is all nodes, which copies nothing."""
        return slice(None) if len(self.M) == self.graph.n_nodes else self.M

    @property
    def sees_all(self) -> bool:
        """Whether every node has a loss, and that sees every direction: duals can leave nothing that none takes up."""
        return len(self.M) == self.graph.n_nodes and self.f.sees_all

    @cached_property
    def c(self) -> Array:
        """λA_e, the strength on each edge."""
        return self.lam * self.graph.weights

    @property
    def by_column(self) -> ByColumn | None:
        """The penalty, where it has a strength for each column."""
        return self.penalty if isinstance(self.penalty, ByColumn) else None

    @property
    def strength(self) -> Array | None:
        """s_k of each column; None: all are one."""
        return None if self.by_column is None else np.array(self.by_column.strength)

    @cached_property
    def undetermined(self) -> NDArray[np.int64]:
        """Nodes whose component has no label: any common weight there is optimal, and zero is reported.

        At λ = 0 every node is a component of its own, unless some strength is infinite.
        """
        if len(self.M) == self.graph.n_nodes:
            return np.empty(0, dtype=np.int64)
        coupled = self.lam > 0 or (self.by_column is not None and bool(self.by_column.tied.any()))
        component = self.graph.components if coupled else np.arange(self.graph.n_nodes)
        return np.flatnonzero(~np.isin(component, component[self.M]))

    def inside(self, w: Array) -> Array:
        """Weights inside the bounds: at no cost, as clipping brings no two nodes further apart."""
        return w if self.f.bounds is None else np.clip(w, *self.f.bounds)

    def objective(self, w: Array) -> float:
        """f(w) + g(Dw); ∞ where that is too large for a float."""
        value = float(self.f.exact(w[self.labelled]).sum()) + self.variation(w)
        return np.inf if np.isnan(value) else value

    def variation(self, w: Array) -> float:
        """g(Dw)."""
        if self.penalty.kernel is None:
            return float(self.penalty.value(self.graph.D @ w, self.c))
        return float(flow.variation(self.penalty.kernel, self.graph.edges, self.c, w))

    @cached_property
    def constant_loss(self) -> float:
        """The loss of the best constant model: what relative gaps are measured against when the optimum is 0."""
        if self.f.below is not None:
            return self.f.below.constant_loss
        return float(self.f.value(np.zeros((len(self.M), self.n_features))).sum())
