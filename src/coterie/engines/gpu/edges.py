"""Edges in objective and certificate, on a device: see `coterie.kernels.reference.flow`, whose functions these are."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from coterie.engines.gpu.exact import EPS, Tensor, in_any_order, total
from coterie.kernels import L1, L2, SQUARED
from coterie.kernels.reference.flow import LEAST_WEIGHT, PUSHED, PUSHED_WEIGHT
from coterie.problem import BoundProblem


class Edges:
    """The edges of a problem with their strengths c, the incidence matrix D, and g."""

    def __init__(self, problem: BoundProblem, device: Any) -> None:
        graph = problem.graph
        self.kind, self.V, self.n, self.device = problem.penalty.kernel, graph.n_nodes, problem.n_features, device
        self.E = graph.n_edges
        ends = torch.as_tensor(np.ascontiguousarray(graph.edges.T.astype(np.int32)), device=device)
        self.i, self.j = ends[0], ends[1]
        self.c = torch.as_tensor(problem.c, device=device)[:, None]
        self.degree = (_counts(self.i, self.V) + _counts(self.j, self.V))[:, None].double()
        self.Dt = self._transposed()
        self.sliced: Callable[[Tensor], Tensor] | None = None  # a kernel for Dᵀu, where there is one …
        self.subtracted: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None  # … and one for Dw

    def _transposed(self) -> Tensor:
        """Dᵀ, one row per node."""
        node = torch.cat([self.i, self.j])
        order = torch.argsort(node, stable=True)
        rows = torch.zeros(self.V + 1, dtype=torch.int32, device=self.device)
        rows[1:] = torch.cumsum(self.degree[:, 0].long(), 0)
        sign = torch.where(order < self.E, 1.0, -1.0).double()
        return _matrix(rows, (order % max(self.E, 1)).int(), sign, (self.V, self.E))

    def differences(self, w: Tensor) -> Tensor:
        """Dw."""
        if self.subtracted is not None:
            return self.subtracted(self.i, self.j, w)
        return w.index_select(0, self.i) - w.index_select(0, self.j)

    def divergence(self, u: Tensor) -> Tensor:
        """Dᵀu."""
        if self.sliced is not None and u.shape[1] == self.n:
            return self.sliced(u)
        return self.Dt @ u if self.E else torch.zeros((self.V, u.shape[1]), dtype=u.dtype, device=self.device)

    def at_ends(self, values: Tensor) -> Tensor:
        """Σ_{e∋i} of values (E, n) at every node: |Dᵀ| values."""
        whole = _matrix(self.Dt.crow_indices(), self.Dt.col_indices(), self.Dt.values().abs(), self.Dt.shape)
        return whole @ values if self.E else self.divergence(values)

    def exact_divergence(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Dᵀu as hi + lo, and how far that may be from the truth."""
        return in_any_order(self.divergence, u, self.degree)

    def across(self, u: Tensor, w: Tensor) -> float:
        """⟨u, Dw⟩, less what rounding may have added."""
        terms = u * self.differences(w)
        return total(terms) - 4 * EPS * total(terms.abs())

    def variation(self, w: Tensor) -> float:
        """g(Dw)."""
        return total(self.variations(w))

    def variations(self, w: Tensor) -> Tensor:
        """The terms of g(Dw), (E, 1)."""
        d = self.differences(w)
        part = (d.abs() if self.kind == L1 else d * d).sum(1, keepdim=True)
        return self.c * (part.sqrt() if self.kind == L2 else part)

    def conjugate(self, u: Tensor) -> float:
        """g*(u) for u in its domain."""
        if self.kind != SQUARED:
            return 0.0
        size, there = u.abs(), self.c > 0
        return total(torch.where(there, size * (size / (4 * torch.where(there, self.c, 1.0))), 0.0))

    def dual_step(self, u: Tensor, sigma: Tensor) -> Tensor:
        """The proximal map of g* with steps σ_e."""
        if self.kind == SQUARED:
            return u * (2 * self.c / (2 * self.c + sigma))
        return self.into_domain(u)

    def into_domain(self, u: Tensor) -> Tensor:
        """The nearest point where g* is finite."""
        if self.kind == L1:
            return torch.minimum(torch.maximum(u, -self.c), self.c)
        if self.kind == L2:
            length = _lengths(u)
            return u * torch.where(length > self.c, self.c / length, 1.0)
        return torch.where(self.c > 0, u, 0.0)

    def slack_weights(self, u: Tensor, marks: Tensor) -> Tensor:
        """The share that each edge and coordinate takes of a correction; `marks` are those of the last one."""
        if self.kind == SQUARED:
            return self.c.float().expand_as(u).contiguous()
        size = u.abs() if self.kind == L1 else _lengths(u)
        marks = marks if self.kind == L1 else marks[:, :1]
        least = torch.where(marks == PUSHED, PUSHED_WEIGHT, LEAST_WEIGHT) * self.c
        return torch.maximum(self.c - size, least).float().expand_as(u).contiguous()

    def pushed(self, u: Tensor) -> Tensor:
        """Marks of edges that were pushed out of their domain."""
        if self.kind == SQUARED:
            return torch.zeros_like(u, dtype=torch.float32)
        size = u.abs() if self.kind == L1 else _lengths(u)
        return torch.where(size > self.c, PUSHED, 0.0).float().expand_as(u).contiguous()

    def stretch(self, u: Tensor) -> float:
        """By how much the domain of g* would have to be stretched to hold u."""
        if self.kind == SQUARED or not self.E:
            return 1.0
        size = u.abs().amax(1, keepdim=True) if self.kind == L1 else _lengths(u)
        return float(torch.where(size > self.c, size / self.c, 1.0).max())

    def joins(self, u: Tensor, margin: float) -> Tensor:
        """Where an edge joins its nodes, (E, n): its dual is below c_e (1 − margin)."""
        size = _lengths(u) if self.kind == L2 else u.abs()
        return size < self.c * (1 - margin)


def _lengths(u: Tensor) -> Tensor:
    return (u * u).sum(1, keepdim=True).sqrt()


def _counts(ends: Tensor, V: int) -> Tensor:
    return torch.bincount(ends, minlength=V)


def _matrix(rows: Tensor, columns: Tensor, values: Tensor, shape: Any) -> Tensor:
    """A sparse matrix by rows."""
    with warnings.catch_warnings():  # torch calls these a prototype
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(rows, columns, values, size=shape, check_invariants=False)
