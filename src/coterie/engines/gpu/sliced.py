"""Dx and sums over rows in Triton kernels: parts of cut rows, Dᵀu, and DᵀSDx of dual repair, S in single precision."""

from __future__ import annotations

import torch

from coterie.engines.gpu import sum_kernels
from coterie.engines.gpu.corrections import Laplacian
from coterie.engines.gpu.edges import Edges
from coterie.engines.gpu.exact import Tensor
from coterie.engines.gpu.layout import Layout

COLUMNS = 4  # that are added up together
TOGETHER = 512  # numbers that a program subtracts
PARTS = 128  # of a row that are added up side by side


def join(layout: Layout, parts: Tensor, out: Tensor) -> None:
    """Put what the parts of each cut row add up to where its node is."""
    width = parts[0].numel()
    sum_kernels.join[(layout.hubs,)](
        *(parts, layout.begin, out[layout.whole :]), XS=width, W=1 << (width - 1).bit_length(), BLOCK=PARTS
    )


def differences(i: Tensor, j: Tensor, x: Tensor) -> Tensor:
    """Dx of x (V, n): one pass, where a library takes three and is slow for short rows."""
    (_, n), x = x.shape, x.contiguous()
    out, width = x.new_empty((len(i), n)), 1 << (n - 1).bit_length()
    block = max(TOGETHER // width, 1)
    if len(i):
        sum_kernels.differences[(-(-len(i) // block),)](i, j, x, out, len(i), n, W=width, BLOCK=block)
    return out


def divergence(layout: Layout, u: Tensor) -> Tensor:
    """Dᵀu of duals (E, n) in double precision."""
    out, parts = (u.new_zeros((rows, layout.stride)) for rows in (layout.size, len(layout.row_node)))
    width = min(COLUMNS, layout.widths[0])
    for target, first, count in ((out, 0, layout.slabs), (parts, layout.slabs, len(parts) // layout.C)):
        if count:
            sum_kernels.row_sums[(count, -(-layout.n // width))](
                *(layout.offset, layout.edge, u, target, first, layout.n),
                XS=layout.stride,
                C=layout.C,
                UN=layout.slots,
                W=width,
                num_warps=layout.warps,
            )
    if layout.hubs:
        join(layout, parts, out)
    return layout.nodes_out(out)


class SlicedLaplacian(Laplacian):
    """DᵀSD on the layout's rows."""

    def __init__(self, edges: Edges, layout: Layout, S: Tensor) -> None:
        super().__init__(edges, S)
        self.layout, self.packed = layout, layout.at_both_ends(S, torch.float32, 1.0)

    def apply(self, x: Tensor, out: Tensor) -> None:
        layout = self.layout
        inside = layout.nodes_in(x, torch.float64, layout.stride)
        product, parts = torch.zeros_like(inside), inside.new_empty((len(layout.row_node), layout.stride))
        for target, first, count in ((product, 0, layout.slabs), (parts, layout.slabs, len(parts) // layout.C)):
            if count:
                sum_kernels.laplacian[(count,)](
                    *(layout.offset, layout.neighbour, layout.row_node, self.packed, inside, target, first),
                    **layout.shape,
                    UN=layout.slots,
                    CUT=target is parts,
                    num_warps=layout.warps,
                )
        if layout.hubs:
            join(layout, parts, product)
        out.copy_(layout.nodes_out(product))
