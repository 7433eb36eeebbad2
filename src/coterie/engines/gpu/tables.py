"""The matrices P and vectors q of affine primal updates q + Pv, as kernels read them."""

from __future__ import annotations

from typing import Any

import torch

from coterie.engines.gpu.exact import Tensor
from coterie.engines.gpu.layout import Layout


class Tables:
    """P and q of K nodes, numbered in the layout's order.

    One lane is one node: the upper triangle of P, an entry of C nodes side by side, so that lanes that read the same
    entry read one stretch of memory. Where coordinates lie in lanes (duals that are kept once), whole rows instead.
    """

    def __init__(self, K: int, layout: Layout, dtype: Any) -> None:
        N, C, n = layout.N, layout.C, layout.n
        self.n, self.whole, device = n, layout.once, layout.device
        self.q = torch.zeros((max(K, 1), N), dtype=dtype, device=device)
        if self.whole:
            self.P = self.q.new_zeros((max(K, 1), N, N))
        else:
            self.P = self.q.new_zeros((-(-max(K, 1) // C), N * (N + 1) // 2, C))
            row, column = torch.triu_indices(n, n, device=device)
            self.taken, self.place = row * n + column, row * N - row * (row + 1) // 2 + column

    def fill(self, P: Tensor, q: Tensor) -> None:
        """Keep P (K, n, n), which are symmetric, and q (K, n)."""
        K, n = q.shape
        self.q[:, :n] = q
        if self.whole:
            self.P[:, :n, :n] = P
            return
        blocks, entries, C = self.P.shape
        inside = self.P.new_zeros((blocks * C, entries))
        inside[:K, self.place] = P.reshape(K, n * n)[:, self.taken].to(self.P.dtype)
        self.P.copy_(inside.view(blocks, C, entries).transpose(1, 2))
