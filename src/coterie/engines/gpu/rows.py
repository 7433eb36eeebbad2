"""The rows behind a loss, on a device: what `coterie.problem.losses.design` does, with the same charges for rounding.

Margins and sums over rows are added up in pairs (`exact`), as by `coterie.kernels.reference.rows`, whose constants
these are; `psi` has the formulas of single rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from coterie.engines.gpu.exact import EPS, Tensor, sum_exactly, total, two_product, two_sum
from coterie.engines.gpu.psi import FAMILIES
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
        self.psi = FAMILIES[design.psi.kernel](design.psi)
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

    def arguments(self, block: Block, w: Tensor) -> Tensor:
        """e = direction·⟨x_r, w_i⟩ + shift of every row, from twice the precision rounded to one float."""
        (hi, lo), way = self.margins(block, w), self.psi.direction(block.y)
        hi, error = two_sum(self.psi.shift(block.y), way * hi)
        return hi + (error + way * lo)

    def values(self, w: Tensor) -> Tensor:
        """L_i(w_i), with residuals in twice the precision."""
        out = self._empty()
        for block in self.blocks:
            at = w[block.nodes]
            value, low = sum_exactly(block.s * self.psi.psi(self.arguments(block, w), block.y), None, 1)
            more, rest = sum_exactly(self.ridge * at * at, None, 1)
            value, error = two_sum(value, more)
            out[block.nodes] = value + (low + rest + error)
        return out if self.is_squared else torch.where(out.isnan(), torch.inf, out)  # sums that overflow

    def misses(self, block: Block, w: Tensor) -> Tensor:
        """How far each margin may be off before it is rounded to one float."""
        reach = block.y.abs() + (block.X * w[block.nodes][:, None, :]).abs().sum(2)
        return (self.n * EPS) ** 2 * reach + FAINT

    def ceiling(self, level: float, w: Tensor) -> float:
        """What an objective at w can be at most, where `level` was computed."""
        doubt = sum(total(self._doubts(block, w)) for block in self.blocks)
        return float((level**0.5 + doubt**0.5) ** 2) if self.is_squared else level + doubt

    def _doubts(self, block: Block, w: Tensor) -> Tensor:
        """How far s_r ψ, as computed, may be off; of squared error s_r times the square of how far e_r may be off."""
        miss = self.misses(block, w)
        if self.is_squared:
            return block.s * miss**2
        t = self.psi.slope(self.arguments(block, w), block.y)
        return block.s * (self.psi.steepest(t, block.y, miss) * miss + self.psi.value_rounding(t, block.y))

    def slopes(self, w: Tensor) -> tuple[list[Tensor], Tensor]:
        """The duals of rows and of ridge that are best at w."""
        psi, blocks = self.psi, self.blocks
        a = [block.s * psi.slope(self.arguments(block, w), block.y) * psi.direction(block.y) for block in blocks]
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
        psi, y, s = self.psi, block.y, torch.where(block.there, block.s, 1.0)
        force = a * psi.direction(y)
        t, (lowest, highest) = force / s, psi.given.domain(y)
        first, second = force * self.arguments(block, w), -s * psi.conjugate(t, y)
        second = torch.where((t < lowest) | (t > highest), -torch.inf, second)
        doubts = self.misses(block, w) * a.abs() + 8 * EPS * (first.abs() + second.abs())
        doubts = doubts + s * psi.conjugate_rounding(t, y)
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
