"""A problem as matrices, for solvers that know nothing of graphs.

Weights are one vector x of length Vn, node by node: weight k of node i is x[i n + k].
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array, kron

import coterie as ct
from benchmarks.families import grid_edges

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Stacked:
    """Σ_r share_r ℓ(y_r, (Zx)_r) + Σ c |Bx|, plus what the loss charges the weights of labelled nodes.

    Attributes
    ----------
    by_class : list of (R, Vn) sparse; y, share : (R,)
        Labelled rows, block by block, at the weights of each class (of the only one, mostly); 1/m_i of each row.
    B : (En, Vn) sparse; c : (En,)
        Differences over the edges, coordinate by coordinate; λA_e of each.
    charged : (|M| n,)
        The weights of labelled nodes.
    """

    by_class: list[Any]
    y: Array
    share: Array
    B: Any
    c: Array
    charged: Array

    @classmethod
    def of(cls, problem: ct.Problem) -> Stacked:
        rows, n, V = problem.data.labelled, problem.n_features, problem.graph.n_nodes
        node, p = np.repeat(rows.M, rows.m), rows.X.shape[1]
        starts = np.arange(0, rows.X.size + 1, p)
        by_class = []
        for first in range(0, n, p):
            columns = node[:, None] * n + np.arange(first, first + p)
            by_class.append(csr_array((rows.X.ravel(), columns.ravel(), starts), shape=(len(node), V * n)))
        B = kron(problem.graph.D, eye_array(n), format="csr")
        charged = (rows.M[:, None] * n + np.arange(n)).ravel()
        return cls(by_class, rows.y, np.repeat(1.0 / rows.m, rows.m), B, np.repeat(problem.c, n), charged)

    @property
    def Z(self) -> Any:
        """The rows, where there is one class."""
        (only,) = self.by_class
        return only

    @property
    def least_squares(self) -> tuple[Any, Array]:
        """A and b with Σ_r share_r (y_r − (Zx)_r)² = ‖Ax − b‖²."""
        root = np.sqrt(self.share)
        A = self.Z.copy()
        A.data *= np.repeat(root, np.diff(A.indptr))
        return A, root * self.y


def is_quadratic(problem: ct.Problem) -> bool:
    """Whether the problem is a quadratic program as the models here write it."""
    plain = isinstance(problem.loss, ct.Lasso) or problem.loss == ct.SquaredError()
    return plain and isinstance(problem.penalty, ct.TotalVariation)


def alpha_of(problem: ct.Problem) -> float:
    """The strength of ‖w_i‖₁ at labelled nodes, which Lasso calls alpha."""
    return problem.loss.alpha if isinstance(problem.loss, ct.Lasso) else problem.loss.l1


def noisy_image(problem: ct.Problem) -> Array | None:
    """The image, where the problem is to denoise one on a square grid; otherwise None."""
    side, c = isqrt(problem.graph.n_nodes), problem.c
    if problem.graph.n_edges != 2 * side * (side - 1) or problem.loss != ct.SquaredError():
        return None
    edges = ct.EmpiricalGraph.from_edges(grid_edges(side)).edges
    data = problem.data
    plain = np.array_equal(data.nodes, np.arange(side**2)) and (data.X == 1).all() and (c == c[0]).all()
    if not plain or not np.array_equal(edges, problem.graph.edges):
        return None
    return data.y.reshape(side, side)
