"""The rows behind a loss, on a device: what `coterie.problem.losses.design` does, with the same charges for rounding.

Margins and sums over rows are added up in pairs (`exact`), as by `coterie.kernels.reference.rows`, whose constants
these are; a device's exp, log and log1p are within 2 units in the last place, less than what is charged there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from coterie.engines.gpu.exact import EPS, Tensor, sum_exactly, total, two_product, two_sum
from coterie.kernels.reference.blocks import blocks
from coterie.kernels.reference.exact import FAINT
from coterie.problem.losses.design import Design


class Block(NamedTuple):
    """Nodes with similar numbers of rows: X (k, m, n), y, s and where a row is there (k, m); s = 0 where none is."""

    nodes: Tensor
    X: Tensor
    y: Tensor
    s: Tensor
    there: Tensor
    m: Tensor


class Support(NamedTuple):
    """Affine functions below the losses, see `coterie.problem.losses.design.Support`."""

    at: Tensor
    q: Tensor
    low: Tensor
    rounding_bound: Tensor


class Rows:
    """The rows of all labelled nodes, in blocks. Duals of rows are lists, one tensor (k, m) for each block."""

    def __init__(self, design: Design, device: Any) -> None:
        self.is_squared, self.n, self.K = design.is_squared, design.X.shape[1], design.n_nodes
        self.ridge = torch.as_tensor(design.ridge, device=device)
        self.device = device
        parts: Any = blocks
        self.blocks = [self._block(design, *part) for part in parts(design.starts)] if self.K else []

    def _block(self, design: Design, nodes: Any, rows: Any, there: Any) -> Block:
        parts = design.X[rows] * there[:, :, None], design.y[rows] * there, design.s[rows] * there
        X, y, s = (torch.as_tensor(np.ascontiguousarray(part), device=self.device) for part in parts)
        there = torch.as_tensor(there, device=self.device)
        return Block(torch.as_tensor(nodes, device=self.device), X, y, s, there, there.sum(1, keepdim=True).double())

    def _empty(self, *shape: int) -> Tensor:
        return torch.zeros((self.K, *shape), dtype=torch.float64, device=self.device)

    def margins(self, block: Block, w: Tensor) -> tuple[Tensor, Tensor]:
        """⟨x_r, w_i⟩ of every row, as hi + lo."""
        return sum_exactly(*two_product(block.X, w[block.nodes][:, None, :].expand_as(block.X)), dim=2)

    def residuals(self, block: Block, w: Tensor) -> Tensor:
        """y_r − ⟨x_r, w_i⟩, from twice the precision rounded to one float."""
        hi, lo = self.margins(block, w)
        hi, error = two_sum(block.y, -hi)
        return hi + (error - lo)

    def wrong_margins(self, block: Block, w: Tensor) -> Tensor:
        """The margin of every row on the wrong side of its label, rounded to one float."""
        hi, lo = self.margins(block, w)
        return torch.where(block.y > 0.5, -hi - lo, hi + lo)

    def values(self, w: Tensor) -> Tensor:
        """L_i(w_i), with residuals in twice the precision."""
        out = self._empty()
        for block in self.blocks:
            if self.is_squared:
                e = self.residuals(block, w)
                terms = block.s * e * e
            else:
                terms = block.s * _softplus(self.wrong_margins(block, w))
            at = w[block.nodes]
            value, low = sum_exactly(terms, None, 1)
            more, rest = sum_exactly(self.ridge * at * at, None, 1)
            value, error = two_sum(value, more)
            out[block.nodes] = value + (low + rest + error)
        return out

    def misses(self, block: Block, w: Tensor) -> Tensor:
        """How far each margin may be off before it is rounded to one float."""
        reach = block.y.abs() + (block.X * w[block.nodes][:, None, :]).abs().sum(2)
        return (self.n * EPS) ** 2 * reach + FAINT

    def ceiling(self, level: float, w: Tensor) -> float:
        """What an objective at w can be at most, where `level` was computed."""
        squares, sums = 0.0, 0.0
        for block in self.blocks:
            miss = self.misses(block, w)
            squares, sums = squares + total(block.s * miss**2), sums + total(block.s * miss)
        return (level**0.5 + squares**0.5) ** 2 if self.is_squared else level + sums

    def slopes(self, w: Tensor) -> tuple[list[Tensor], Tensor]:
        """The duals of rows and of ridge that are best at w."""
        a = []
        for block in self.blocks:
            if self.is_squared:
                a.append(-2 * block.s * self.residuals(block, w))
            else:
                side = torch.where(block.y > 0.5, -1.0, 1.0).to(torch.float64)
                a.append(block.s * _chance(self.wrong_margins(block, w)) * side)
        return a, 2 * self.ridge * w

    def moved(self, a: list[Tensor], b: Tensor, step: Tensor) -> tuple[list[Tensor], Tensor]:
        """The duals of squared error, had the weights been moved by `step`."""
        each = zip(self.blocks, a, strict=True)
        return [
            dual + 2 * block.s * (block.X * step[block.nodes][:, None, :]).sum(2) for block, dual in each
        ], b + 2 * self.ridge * step

    def forces(self, a: list[Tensor], b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Σ_r a_r x_r + b at every node in twice the precision, and a bound on the error of that."""
        q, low, bound = (self._empty(self.n) for _ in range(3))
        for block, dual in zip(self.blocks, a, strict=True):
            product, error = two_product(dual[:, :, None].expand_as(block.X), block.X)
            size = b[block.nodes].abs() + (product.abs() + FAINT * (block.X != 0)).sum(1)
            hi, rest = sum_exactly(product, error, 1)
            q[block.nodes], error = two_sum(hi, b[block.nodes])
            low[block.nodes] = rest + error
            bound[block.nodes] = size * ((block.m + 2.0) * EPS) ** 2
        return q, low, bound

    def support(self, a: list[Tensor], b: Tensor, w: Tensor) -> Support:
        """What these duals prove."""
        at = self._empty()
        for block, dual in zip(self.blocks, a, strict=True):
            at[block.nodes] = self._lower_bounds(block, dual, b[block.nodes], w)
        return Support(at, *self.forces(a, b))

    def _lower_bounds(self, block: Block, a: Tensor, b: Tensor, w: Tensor) -> Tensor:
        """What the duals a and b prove of L_i at w_i, less all rounding: see `kernels.reference.rows`."""
        s = torch.where(block.there, block.s, 1.0)
        doubts = self.misses(block, w) * a.abs()
        if self.is_squared:
            first, second = -a * self.residuals(block, w), -a * (a / (4 * s))
            doubts = doubts + 4 * EPS * (first.abs() + second.abs())
        else:
            t = (a.abs() / s).clamp(max=1.0)
            first, second = a.abs() * self.wrong_margins(block, w), s * _entropy(t)
            side = torch.where(t <= 0.5, t, (1 - t).clamp(min=EPS))
            tilt = 1 + torch.where(side > 0, side.log().abs(), 0.0)
            doubts = doubts + 8 * EPS * (first.abs() + second.abs() + a.abs() * tilt)
        value, low = sum_exactly(*two_sum(first, second), dim=1)
        bound, at = FAINT + doubts.sum(1), w[block.nodes]
        ridged = self.ridge > 0
        if bool(ridged.any()):
            B, W, penalty = b[:, ridged], at[:, ridged], self.ridge[ridged]
            first, second = B * W, -B * (B / (4 * penalty))
            bound = bound + 4 * EPS * (first.abs() + second.abs()).sum(1)
            more, rest = sum_exactly(*two_sum(first, second), dim=1)
            value, error = two_sum(value, more)
            low = low + (rest + error)
        return (value + low) - bound - 2 * EPS * value.abs()


def _softplus(x: Tensor) -> Tensor:
    """log(1 + e^x), accurate where it is tiny."""
    return x.clamp(min=0.0) + torch.log1p(torch.exp(-x.abs()))


def _chance(x: Tensor) -> Tensor:
    """1/(1 + e^−x), accurate where it is tiny."""
    t = torch.exp(-x.abs())
    return torch.where(x > 0, 1.0, t) / (1 + t)


def _entropy(t: Tensor) -> Tensor:
    """−t log t − (1 − t) log(1 − t)."""
    return -torch.where(t > 0, t * t.log(), 0.0) - torch.where(t < 1, (1 - t) * torch.log1p(-t), 0.0)
