"""The problem: graph, datasets, loss, penalty and λ."""

from __future__ import annotations

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
from coterie.problem.penalties.by_column import by_column
from coterie.problem.strengths import as_strengths


@dataclass(frozen=True, eq=False)
class Problem:
    """min_w  f(w) + g(Dw) = Σ_{i ∈ M} L_i(w_i) + λ Σ_e A_e φ(w_i − w_j).

    Parameters
    ----------
    graph : EmpiricalGraph
        The nodes, the edges E and their weights A_e.
    data : LocalDatasets
        With the same number of nodes as the graph.
    loss : Loss, default=SquaredError()
        L_i of the labelled nodes M.
    penalty : Penalty, default=TotalVariation()
        φ of the difference of two neighbours' weights.
    lam : float, default=0.001
        λ ≥ 0. At 0 the nodes do not influence each other.
    strength : array of shape (n,), default=None
        s_k, how much a difference in each column counts, relative to λ; None: one. With total variation
        φ(z) = Σ s_k |z_k|, with group total variation √Σ s_k² z_k², with squared variation Σ s_k z_k². 0: every
        node is alone in this coefficient (where it has no labels, the mean of the labelled nodes of its component is
        reported); ∞: all nodes of a component have the same one, at every λ.

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)])
    >>> data = ct.LocalDatasets.from_rows([[1.0], [1.0]], [1.0, 3.0], nodes=[0, 2], n_nodes=3)
    >>> problem = ct.Problem(graph, data, lam=0.5)
    >>> problem.M.tolist(), problem.n_features
    ([0, 2], 1)
    """

    graph: EmpiricalGraph
    data: LocalDatasets
    loss: Loss = SquaredError()
    penalty: Penalty = TotalVariation()
    lam: float = 1e-3
    strength: Array | None = None

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
        if self.strength is not None:
            strength = as_strengths(self.strength, self.n_features)
            by_column(self.penalty, strength)
            object.__setattr__(self, "strength", None if (strength == 1).all() else strength)
        self.loss.validate(self.data.labelled)

    @cached_property
    def bound(self) -> BoundProblem:
        """The problem as solvers take it, with its losses bound to their rows."""
        from coterie.kernels.blas import threads_for

        rows = self.data.labelled
        with threads_for(rows.m.max(initial=0) * self.n_features):
            f = self.loss.bind(rows)
        penalty = self.penalty if self.strength is None else by_column(self.penalty, self.strength)
        return BoundProblem(self.graph, rows.M, f, self.n_features, penalty, self.lam)

    @property
    def n_features(self) -> int:
        """The length n of each weight vector: the columns of X, times the classes where each has weights of its own."""
        return self.loss.n_weights(self.data.n_features)

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
    def constant_loss(self) -> float:
        """The loss of the best constant model: what relative gaps are measured against when the optimum is 0."""
        return self.bound.constant_loss

    def objective(self, w: Array) -> float:
        """Return f(w) + g(Dw).

        Parameters
        ----------
        w : array of shape (V, n)
            Weights of every node.

        Returns
        -------
        float
            The value of the objective.
        """
        return self.bound.objective(w)

    def __repr__(self) -> str:
        strength = "" if self.strength is None else f", strength={self.strength.tolist()}"
        return f"Problem({self.graph!r}, {self.data!r}, {self.loss!r}, {self.penalty!r}, lam={self.lam:.6g}{strength})"


def bound(problem: Problem | BoundProblem) -> BoundProblem:
    """Return the problem with its losses bound; one that is bound already as it is."""
    if isinstance(problem, BoundProblem):
        return problem
    if not isinstance(problem, Problem):
        raise TypeError(f"a Problem is needed, got {problem!r}")
    return problem.bound
