"""What a solver returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.solver.clusters import Clusters


class Status(Enum):
    """How a solve ended; the value is a sentence for people.

    Examples
    --------
    >>> import coterie as ct
    >>> ct.Status.OPTIMAL.value
    'The certified gap is within the tolerance.'
    """

    OPTIMAL = "The certified gap is within the tolerance."
    CONDITIONAL = "The gap is within the tolerance, but only under a condition that is not proven."
    ITERATIONS_DONE = "The number of iterations asked for was run; the gap says how far from optimal the result is."
    ITERATION_LIMIT = "The iteration limit was reached before the gap was within the tolerance."
    TIME_LIMIT = "The time limit was reached before the gap was within the tolerance."
    STALLED = "Rounding errors keep the gap from falling further; it is above the tolerance."
    INTERRUPTED = "The solve was interrupted; this is the best certified answer until then."


class Record(NamedTuple):
    """One line of the history: the best objective and bound so far.

    Attributes
    ----------
    n_iter : int
        How many iterations had been run.
    objective, dual_bound : float
        The best ones until then.
    gap : float
        The relative gap between them.
    seconds : float
        The time since the solve began.

    Examples
    --------
    >>> import coterie as ct
    >>> ct.Record(n_iter=10, objective=1.0, dual_bound=0.9, gap=0.1, seconds=0.01).gap
    0.1
    """

    n_iter: int
    objective: float
    dual_bound: float
    gap: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights with a certificate of how good they are.

    Attributes
    ----------
    w : array of shape (V, n)
        The weights of every node.
    u : array of shape (E, n)
        The dual variables of every edge, feasible: the certificate can be computed again from w and u.
    objective, dual_bound : float
        f(w) + g(Dw), and a lower bound on what any weights can reach.
    gap : float
        (objective − dual_bound) / max(|objective|, 1e-8 × loss of the best constant model).
    unconditional : bool
        Whether the bound is proven; otherwise `condition` says what it rests on.
    condition : str
        Empty where the bound is proven.
    status : Status
        How the solve ended.
    n_iter : int
        The number of iterations.
    seconds : float
        The time that the solve took.
    history : tuple of Record
        One line per computed gap.
    undetermined : array of int
        Nodes in components without any label; their weights are zero by convention.
    graph : EmpiricalGraph
        The graph that w and u live on.
    reach : float, default=inf
        The largest weight that the condition allows a minimiser; infinite where there is no condition.

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)])
    >>> data = ct.LocalDatasets.from_rows([[1.0], [1.0]], [1.0, 3.0], nodes=[0, 2], n_nodes=3)
    >>> solution = ct.solve(ct.Problem(graph, data, lam=0.5))
    >>> solution.status.name, solution.unconditional, solution.w.shape
    ('OPTIMAL', True, (3, 1))
    """

    w: Array
    u: Array
    objective: float
    dual_bound: float
    gap: float
    unconditional: bool
    condition: str
    status: Status
    n_iter: int
    seconds: float
    history: tuple[Record, ...]
    undetermined: NDArray[np.int64]
    graph: EmpiricalGraph
    reach: float = float("inf")

    def clusters(self) -> Clusters:
        """Return the partition of the nodes into connected sets with equal weights.

        Returns
        -------
        Clusters
            Jointly and by coordinate.
        """
        return Clusters.of(self.graph, self.w)

    def __repr__(self) -> str:
        return (
            f"Solution({self.status.name}, objective {self.objective:.6g}, gap {self.gap:.2g}"
            f"{'' if self.unconditional else ' (conditional)'}, {self.n_iter} iterations, {self.seconds:.2g} s)"
        )


class NotConverged(UserWarning):
    """The gap is above the tolerance that was asked for, or rests on a condition that is not proven.

    Examples
    --------
    >>> import warnings
    >>> import coterie as ct
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ct.NotConverged)  # where an answer must be optimal
    """
