"""The problem: graph, datasets, loss, penalty and λ."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from coterie.kernels.choice import Either
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows, LocalDatasets
from coterie.problem.graph import EmpiricalGraph
from coterie.problem.losses import LocalLosses, Loss, SquaredError
from coterie.problem.losses.base import check_strength
from coterie.problem.penalties import Penalty, TotalVariation

flow = Either("flow")


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
        _ = self.f  # a loss refuses labels it cannot use here, at the door

    @property
    def n_features(self) -> int:
        """The length n of each weight vector."""
        return self.data.n_features

    @property
    def M(self) -> NDArray[np.int64]:
        """The labelled nodes."""
        return self.data.labelled.M

    @property
    def labelled(self) -> NDArray[np.int64] | slice:
        """M as an index; a slice where that is all nodes, which copies nothing."""
        return slice(None) if len(self.M) == self.graph.n_nodes else self.M

    @cached_property
    def f(self) -> LocalLosses:
        """L_i of the labelled nodes."""
        from coterie.kernels.blas import THREADS_PAY, one_thread

        rows = self.data.labelled
        if self.loss not in rows.bound:
            threads_pay = rows.m.max(initial=0) * self.n_features > THREADS_PAY
            with nullcontext() if threads_pay else one_thread():
                rows.bound[self.loss] = self.loss.bind(rows)
        return rows.bound[self.loss]

    @cached_property
    def c(self) -> Array:
        """λA_e, the strength on each edge."""
        return self.lam * self.graph.weights

    @cached_property
    def undetermined(self) -> NDArray[np.int64]:
        """Nodes whose component has no label: any common weight there is optimal, and zero is reported.

        At λ = 0 every node is a component of its own.
        """
        if len(self.M) == self.graph.n_nodes:
            return np.empty(0, dtype=np.int64)
        component = np.arange(self.graph.n_nodes) if self.lam == 0 else self.graph.components
        return np.flatnonzero(~np.isin(component, component[self.M]))

    def objective(self, w: Array) -> float:
        """f(w) + g(Dw)."""
        return float(
            self.f.exact(w[self.labelled]).sum() + flow.variation(self.penalty.kernel, self.graph.edges, self.c, w)
        )

    @cached_property
    def scale(self) -> float:
        """The loss of the best constant model: what relative gaps are measured against when the optimum is 0."""
        if self.f.design is not None:
            return self.f.design.scale
        return float(self.f.value(np.zeros((len(self.M), self.n_features))).sum())

    def with_losses(self, M: NDArray[np.int64], f: LocalLosses, lam: float) -> Problem:
        """Return the problem with the losses f at the nodes M, whatever its rows are, and another λ."""
        none = np.empty(0)
        rows = LabelledRows(
            M, np.zeros(len(M), dtype=np.int64), np.empty((0, self.n_features)), none, none, {self.loss: f}
        )
        data = LocalDatasets(rows.X, rows.y, np.empty(0, dtype=np.int64), self.graph.n_nodes, rows.weights)
        data.__dict__["labelled"] = rows
        return replace(self, data=data, lam=lam)
