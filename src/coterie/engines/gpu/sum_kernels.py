"""Triton kernels for Dx, and for sums: over the rows of a `layout`, the parts of cut rows, and long vectors."""

from __future__ import annotations

import triton
import triton.language as tl

from coterie.engines.gpu.kernels import entry
from coterie.engines.gpu.node_kernels import row_at


@triton.jit
def laplacian(
    offset, neighbour, row_node, S, x, out, first,
    N: tl.constexpr, XS: tl.constexpr, C: tl.constexpr, UN: tl.constexpr,
    W0: tl.constexpr, W1: tl.constexpr, W2: tl.constexpr, CUT: tl.constexpr,
):  # fmt: skip
    """out ← Σ_e S_e (x_i − x_j) over the entries of each row."""
    slab = tl.program_id(0) + first
    ln = tl.arange(0, C)
    row = tl.program_id(0) * C + ln
    i = row
    if CUT:
        i = tl.load(row_node + row)
    lo = tl.load(offset + slab)
    count = (tl.load(offset + slab + 1) - lo).to(tl.int32)
    neighbour += lo
    S += lo * N
    _chunk_laplacian(neighbour, S, x, out, i, row, count, ln, N, XS, C, UN, 0, W0)
    if W1 > 0:
        _chunk_laplacian(neighbour, S, x, out, i, row, count, ln, N, XS, C, UN, W0, W1)
    if W2 > 0:
        _chunk_laplacian(neighbour, S, x, out, i, row, count, ln, N, XS, C, UN, W0 + W1, W2)


@triton.jit
def _chunk_laplacian(
    neighbour, S, x, out, i, row, count, ln,
    N: tl.constexpr, XS: tl.constexpr, C: tl.constexpr, UN: tl.constexpr, K0: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    un = tl.arange(0, UN)
    k = tl.arange(0, W)
    xi = tl.load(x + row_at(i, XS, K0, W))
    acc = tl.zeros((C, UN, W), xi.dtype)
    for d in range(0, count, C * UN):
        p = d + un[None, :] * C + ln[:, None]
        pm = p < count
        m = pm[:, :, None] & (k >= 0)[None, None, :]
        j = tl.load(neighbour + p, mask=pm, other=0)
        s = tl.load(S + entry(d, un, ln, N, C, K0, W), mask=m, other=0.0)
        xj = tl.load(x + j[:, :, None] * XS + K0 + k[None, None, :], mask=m, other=0.0)
        acc += s.to(xi.dtype) * (xi[:, None, :] - xj)
    tl.store(out + row_at(row, XS, K0, W), tl.sum(acc, 1))


@triton.jit
def differences(i, j, x, out, size, n, W: tl.constexpr, BLOCK: tl.constexpr):
    """out ← x_i − x_j for every edge, x (·, n)."""
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, W)
    inside = (e < size)[:, None] & (k < n)[None, :]
    a = tl.load(i + e, mask=e < size, other=0).to(tl.int64)
    b = tl.load(j + e, mask=e < size, other=0).to(tl.int64)
    high = tl.load(x + a[:, None] * n + k[None, :], mask=inside, other=0.0)
    low = tl.load(x + b[:, None] * n + k[None, :], mask=inside, other=0.0)
    tl.store(out + e[:, None] * n + k[None, :], high - low, mask=inside)


@triton.jit
def row_sums(
    offset, edge, u, out, first, n,
    XS: tl.constexpr, C: tl.constexpr, UN: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """out ← Σ ±u_e over the entries of each row, for W columns of u (E, n) at a time; `edge` is ±(e + 1), or 0."""
    slab = tl.program_id(0) + first
    ln = tl.arange(0, C)
    k = tl.program_id(1) * W + tl.arange(0, W)
    un = tl.arange(0, UN)
    lo = tl.load(offset + slab)
    count = (tl.load(offset + slab + 1) - lo).to(tl.int32)
    edge += lo
    acc = tl.zeros((C, UN, W), tl.float64)
    for d in range(0, count, C * UN):
        p = d + un[None, :] * C + ln[:, None]
        e = tl.load(edge + p, mask=p < count, other=0)
        at = (tl.abs(e) - 1).to(tl.int64)[:, :, None] * n + k[None, None, :]
        flow = tl.load(u + at, mask=(e != 0)[:, :, None] & (k < n)[None, None, :], other=0.0)
        acc += tl.where((e > 0)[:, :, None], flow, -flow)
    at = (tl.program_id(0) * C + ln)[:, None] * XS + k[None, :]
    tl.store(out + at, tl.sum(acc, 1), mask=(k < n)[None, :] & (ln >= 0)[:, None])


@triton.jit
def join(parts, begin, out, XS: tl.constexpr, W: tl.constexpr, BLOCK: tl.constexpr):
    """out ← Σ parts (·, XS) of each node whose row is cut, from begin[h] to begin[h + 1], always in the same order."""
    h = tl.program_id(0)
    first = tl.load(begin + h)
    last = tl.load(begin + h + 1)
    k = tl.arange(0, W)
    acc = tl.zeros((BLOCK, W), parts.dtype.element_ty)
    for p in range(first, last, BLOCK):
        part = p + tl.arange(0, BLOCK)
        inside = (part < last)[:, None] & (k < XS)[None, :]
        acc += tl.load(parts + part[:, None] * XS + k[None, :], mask=inside, other=0.0)
    tl.store(out + h * XS + k, tl.sum(acc, 0), mask=k < XS)


@triton.jit
def partial_sums(x, high, low, size, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """high + low ← sums of STEPS entries of x each, BLOCK apart, in twice the precision."""
    lane = tl.arange(0, BLOCK)
    begin = tl.program_id(0).to(tl.int64) * (STEPS * BLOCK)
    hi = tl.zeros((BLOCK,), tl.float64)
    lo = tl.zeros((BLOCK,), tl.float64)
    for step in range(STEPS):
        at = begin + step * BLOCK + lane
        a = tl.load(x + at, mask=at < size, other=0.0)
        s = hi + a
        t = s - hi
        lo += (hi - (s - t)) + (a - t)
        hi = s
    tl.store(high + tl.program_id(0) * BLOCK + lane, hi)
    tl.store(low + tl.program_id(0) * BLOCK + lane, lo)
