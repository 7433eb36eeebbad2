"""The problem: graph, datasets, loss, penalty and λ."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from coterie.problem.arrays import Array
from coterie.problem.bound_problem import BoundProblem
from coterie.problem.datasets import LocalDatasets
from coterie.problem.graph import EmpiricalGraph
from coterie.problem.losses import LocalLosses, Loss, SquaredError
from coterie.problem.losses.base import check_strength
from coterie.problem.penalties import Penalty, TotalVariation


@dataclass(frozen=True, eq=False)
class Problem:
    """min_w  f(w) + g(Dw) = Σ_{i ∈ M} L_i(w_i) + λ Σ_e A_e φ(w_i − w_j).

    Parameters
    ----------
    graph : EmpiricalGraph
    data : LocalDatasets
        With the same number of nodes as the graph.
    loss : Loss
    penalty : Penalty
    lam : float
        λ ≥ 0. At 0 the nodes do not speak to each other.
    """

    graph: EmpiricalGraph
    data: LocalDatasets
    loss: Loss = SquaredError()
    penalty: Penalty = TotalVariation()
    lam: float = 1e-3

    def __post_init__(self) -> None:
        for name, kind in (
            ("graph", EmpiricalGraph),
            ("data", LocalDatasets),
            ("loss", Loss),
            ("penalty", Penalty),
        ):
            given = getattr(self, name)
            if not isinstance(given, kind):
                hint = ", an instance and not the class" if isinstance(given, type) else ""
                raise TypeError(f"{name} must be a {kind.__name__}{hint}; got {given!r}")
        if self.graph.n_nodes != self.data.n_nodes:
            raise ValueError(
                f"the graph has {self.graph.n_nodes} nodes but the data {self.data.n_nodes}; "
                "give n_nodes=graph.n_nodes to LocalDatasets.from_rows"
            )
        check_strength(self.lam, "lam")
        self.loss.validate(self.data.labelled)

    @cached_property
    def bound(self) -> BoundProblem:
        """The problem as solvers take it, with its losses bound to their rows."""
        from coterie.kernels.blas import THREADS_PAY, one_thread

        rows = self.data.labelled
        threads_pay = rows.m.max(initial=0) * self.n_features > THREADS_PAY
        with nullcontext() if threads_pay else one_thread():
            f = self.loss.bind(rows)
        return BoundProblem(self.graph, rows.M, f, self.n_features, self.penalty, self.lam)

    @property
    def n_features(self) -> int:
        """The length n of each weight vector."""
        return self.data.n_features

    @property
    def M(self) -> NDArray[np.int64]:
        """The labelled nodes."""
        return self.data.labelled.M

    @property
    def f(self) -> LocalLosses:
        """L_i of the labelled nodes."""
        return self.bound.f

    @property
    def c(self) -> Array:
        """λA_e, the strength on each edge."""
        return self.bound.c

    @property
    def undetermined(self) -> NDArray[np.int64]:
        """Nodes whose component has no label: any common weight there is optimal, and zero is reported."""
        return self.bound.undetermined

    @property
    def scale(self) -> float:
        """The loss of the best constant model: what relative gaps are measured against when the optimum is 0."""
        return self.bound.scale

    def objective(self, w: Array) -> float:
        """f(w) + g(Dw)."""
        return self.bound.objective(w)


def bound(problem: Problem | BoundProblem) -> BoundProblem:
    """Return the problem with its losses bound; one that is bound already as it is."""
    if isinstance(problem, BoundProblem):
        return problem
    if not isinstance(problem, Problem):
        raise TypeError(f"a Problem is needed, got {problem!r}")
    return problem.bound
