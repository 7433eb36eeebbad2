"""Triton kernels over slabs of nodes (`layout`): one pass is the dual half of an iteration and the primal one after it.

A program has one slab: C nodes, whose entries it goes through UN slots at a time. Coordinates come in up to three
chunks of W0, W1 and W2; a chunk that is not there has width 0, and the compiler drops it. Sums over slots are kept
apart until the end, so that no addition waits for another one.

Nodes come first in every block of entries, (C, UN, W): of dimensions along which a load is not contiguous the compiler
gives the first to the lanes of a warp. One lane then has one node, in gathers as in streams. With slots first, lanes of
gathers had several slots, and traded numbers with each other through shared memory.
"""

from __future__ import annotations

import triton
import triton.language as tl

from coterie.engines.gpu.node_kernels import LONG, primal, row_at, state

L1 = tl.constexpr(0)
L2 = tl.constexpr(1)
SQUARED = tl.constexpr(2)


@triton.jit
def entry(d, un, ln, N: tl.constexpr, C: tl.constexpr, K0: tl.constexpr, W: tl.constexpr):
    """Where a chunk of the duals of slots d, d + C, … lies, from the slab's first; (C, UN, W)."""
    k = tl.arange(0, W)
    return (d + un * C)[None, :, None] * N + K0 * C + ln[:, None, None] * W + k[None, None, :]


@triton.jit
def _place(d, un, ln, e, N: tl.constexpr, C: tl.constexpr, K0: tl.constexpr, W: tl.constexpr, ONCE: tl.constexpr):
    """Where a chunk of the duals of slots d, d + C, … lies: at its end, or with ONCE in the row of edge |e| − 1."""
    if ONCE:
        at = (tl.abs(e) - 1).to(tl.int64)[:, :, None] * N + K0 + tl.arange(0, W)[None, None, :]
    else:
        at = entry(d, un, ln, N, C, K0, W)
    return at


@triton.jit
def _of_slots(numbers, p, count):
    """Numbers of entries p, as far as there are any."""
    return tl.load(numbers + p, mask=p < count, other=0, eviction_policy="evict_first")


@triton.jit
def _dual(u, at, m, e, ONCE: tl.constexpr):
    """A chunk of duals, with the sign that this end sees."""
    if ONCE:  # the other end wants it, too
        value = tl.load(u + at, mask=m, other=0.0)
        value = tl.where((e > 0)[:, :, None], value, -value)
    else:
        value = tl.load(u + at, mask=m, other=0.0, eviction_policy="evict_first")
    return value


@triton.jit
def _pull(u, x, xi, at, m, e, j, sg, XS: tl.constexpr, K0: tl.constexpr, W: tl.constexpr, ONCE: tl.constexpr):
    """A chunk of u, and of u + σ(x_i − x_j)."""
    k = tl.arange(0, W)
    now = _dual(u, at, m, e, ONCE)
    xj = x + j[:, :, None] * XS + K0 + k[None, None, :]
    if not ONCE or XS >= LONG:
        xj = tl.load(xj, mask=m, other=0.0, eviction_policy="evict_last")
    else:
        xj = tl.load(xj, mask=m, other=0.0)
    return now, now + sg[:, :, None] * (xi[:, None, :] - xj)


@triton.jit
def _prox(t, b, sg, shrink, KIND: tl.constexpr):
    """The dual step of a chunk; `shrink` is the factor of L2."""
    if KIND == L1:
        out = tl.minimum(tl.maximum(t, -b[:, :, None]), b[:, :, None])
    elif KIND == L2:
        out = t * shrink[:, :, None]
    else:
        both = 2 * b + sg
        out = t * tl.where(both > 0, 2 * b / tl.where(both > 0, both, 1.0), 0.0)[:, :, None]
    return out


@triton.jit
def _move(
    u_out, u0, u0_out, u_hat, at, m, e, now, h, fa, fb, fg,
    ANCHOR: tl.constexpr, KEEP: tl.constexpr, PROBE: tl.constexpr, ONCE: tl.constexpr,
):  # fmt: skip
    """u ← a û + b u + g u₀; return it, and û − u₀ where it is asked for. With ONCE, first ends write."""
    new = fa * h + fb * now
    away = h
    own = m
    if ONCE:
        own = m & (e > 0)[:, :, None]
    if ANCHOR or PROBE:
        old = _dual(u0, at, m, e, ONCE)
        away = h - old
        if ANCHOR:
            new += fg * old
        if KEEP:
            tl.store(u0_out + at, h, mask=own, eviction_policy="evict_first")
    tl.store(u_out + at, new, mask=own, eviction_policy="evict_first")
    if PROBE:
        tl.store(u_hat + at, h, mask=own, eviction_policy="evict_first")
    return tl.where(m, new, 0.0), away


@triton.jit
def edge_step(
    offset, neighbour, edge, box, sigma, row_node, u, u0, u_hat, u_out, u0_out, x, x_out, w, w0, w_hat,
    tau, label, P, q, sums, sums_hat, moves, residual, travel, scalars, factors, first,
    N: tl.constexpr, XS: tl.constexpr, C: tl.constexpr, UN: tl.constexpr,
    W0: tl.constexpr, W1: tl.constexpr, W2: tl.constexpr, KIND: tl.constexpr,
    BOX: tl.constexpr, SIGMA: tl.constexpr, ANCHOR: tl.constexpr, KEEP: tl.constexpr,
    NODES: tl.constexpr, PROBE: tl.constexpr, CUT: tl.constexpr, ONCE: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """û = prox(u + σDx) and u ← a û + b u + g u₀ at one slab's entries, and the primal half of the next iteration.

    `scalars` are a strength and a step, `factors` (a, b, g) of this iteration, and of the next with whether
    w moves then. BOX: strengths differ. SIGMA: 0, all edges have that step; 1, it times √c; 2, steps are given. Slabs
    are those from `first` on.
    Without NODES, sums are stored instead; CUT: of parts of rows, whose nodes are `row_node`. With PROBE, û is stored,
    too, with its sums, the sums of û − u, and |û − u|²/σ and |û − u₀|²/σ, half of each at either end. With ONCE, duals
    are kept by edge, for both ends, and go from u and u0 to u_out and u0_out, since the other end may be late. AHEAD:
    neighbours of the next slots, and weights, are loaded before they are needed.
    """
    b_all = tl.load(scalars)
    sg_all = tl.load(scalars + 1)
    ea = tl.load(factors)
    eb = tl.load(factors + 1)
    eg = tl.load(factors + 2)
    slab = tl.program_id(0) + first
    ln = tl.arange(0, C)
    row = tl.program_id(0) * C + ln
    i = row
    if CUT:
        i = tl.load(row_node + row)
    lo = tl.load(offset + slab)
    count = (tl.load(offset + slab + 1) - lo).to(tl.int32)
    neighbour += lo
    box += lo if BOX else 0
    sigma += lo if SIGMA == 2 else 0
    if ONCE:
        edge += lo
    else:
        begin = tl.multiple_of(lo * N, C)  # not `lo`: lanes would then load each other's neighbours, and trade them
        u += begin
        u0 += begin
        u_hat += begin
        u_out += begin
        u0_out += begin
    un = tl.arange(0, UN)
    x0 = tl.load(x + row_at(i, XS, 0, W0))
    a0 = tl.zeros((C, UN, W0), x0.dtype)
    x1 = x0
    x2 = x0
    a1 = a0
    a2 = a0
    if W1 > 0:
        x1 = tl.load(x + row_at(i, XS, W0, W1))
        a1 = tl.zeros((C, UN, W1), x0.dtype)
    if W2 > 0:
        x2 = tl.load(x + row_at(i, XS, W0 + W1, W2))
        a2 = tl.zeros((C, UN, W2), x0.dtype)
    h0s = a0
    h1s = a1
    h2s = a2
    d0s = a0
    d1s = a1
    d2s = a2
    r2 = tl.zeros((C, UN), x0.dtype)
    t2 = tl.zeros((C, UN), x0.dtype)
    if AHEAD:
        t, of, w_0, w_1, w_2 = state(w, tau, label, i, N, C, W0, W1, W2)
        j_next = _of_slots(neighbour, un[None, :] * C + ln[:, None], count)
    for d in range(0, count, C * UN):
        p = d + un[None, :] * C + ln[:, None]
        pm = p < count
        if AHEAD:
            j = j_next
            j_next = _of_slots(neighbour, p + C * UN, count)
        else:
            j = _of_slots(neighbour, p, count)
        e = j
        if ONCE:
            e = _of_slots(edge, p, count)
            pm = e != 0
        if BOX:
            b = tl.load(box + p, mask=pm, other=0.0, eviction_policy="evict_first")
        else:
            b = tl.zeros((C, UN), x0.dtype) + b_all
        if SIGMA == 2:
            sg = tl.load(sigma + p, mask=pm, other=0.0, eviction_policy="evict_first")
        elif SIGMA == 1:
            sg = sg_all * tl.sqrt(b)
        else:
            sg = tl.zeros((C, UN), x0.dtype) + sg_all
        k0 = tl.arange(0, W0)
        m0 = pm[:, :, None] & (k0 >= 0)[None, None, :]
        at0 = _place(d, un, ln, e, N, C, 0, W0, ONCE)
        n0, t0 = _pull(u, x, x0, at0, m0, e, j, sg, XS, 0, W0, ONCE)
        long2 = b
        if KIND == L2:
            long2 = tl.sum(t0 * t0, 2)
        if W1 > 0:
            k1 = tl.arange(0, W1)
            m1 = pm[:, :, None] & (k1 >= 0)[None, None, :]
            at1 = _place(d, un, ln, e, N, C, W0, W1, ONCE)
            n1, t1 = _pull(u, x, x1, at1, m1, e, j, sg, XS, W0, W1, ONCE)
            if KIND == L2:
                long2 += tl.sum(t1 * t1, 2)
        if W2 > 0:
            k2 = tl.arange(0, W2)
            m2 = pm[:, :, None] & (k2 >= 0)[None, None, :]
            at2 = _place(d, un, ln, e, N, C, W0 + W1, W2, ONCE)
            n2, t2_ = _pull(u, x, x2, at2, m2, e, j, sg, XS, W0 + W1, W2, ONCE)
            if KIND == L2:
                long2 += tl.sum(t2_ * t2_, 2)
        shrink = b
        if KIND == L2:
            long = tl.sqrt(long2)
            shrink = tl.where(long > b, b / tl.where(long > 0, long, 1.0), 1.0)
        per = tl.where(sg > 0, 0.5 / tl.where(sg > 0, sg, 1.0), 0.0)
        h0 = _prox(t0, b, sg, shrink, KIND)
        moved, away = _move(u_out, u0, u0_out, u_hat, at0, m0, e, n0, h0, ea, eb, eg, ANCHOR, KEEP, PROBE, ONCE)
        a0 += moved
        if PROBE:
            h0s += tl.where(m0, h0, 0.0)
            d0s += tl.where(m0, h0 - n0, 0.0)
            r2 += tl.sum(tl.where(m0, (h0 - n0) * (h0 - n0), 0.0), 2) * per
            t2 += tl.sum(tl.where(m0, away * away, 0.0), 2) * per
        if W1 > 0:
            h1 = _prox(t1, b, sg, shrink, KIND)
            moved, away = _move(u_out, u0, u0_out, u_hat, at1, m1, e, n1, h1, ea, eb, eg, ANCHOR, KEEP, PROBE, ONCE)
            a1 += moved
            if PROBE:
                h1s += tl.where(m1, h1, 0.0)
                d1s += tl.where(m1, h1 - n1, 0.0)
                r2 += tl.sum(tl.where(m1, (h1 - n1) * (h1 - n1), 0.0), 2) * per
                t2 += tl.sum(tl.where(m1, away * away, 0.0), 2) * per
        if W2 > 0:
            h2 = _prox(t2_, b, sg, shrink, KIND)
            moved, away = _move(u_out, u0, u0_out, u_hat, at2, m2, e, n2, h2, ea, eb, eg, ANCHOR, KEEP, PROBE, ONCE)
            a2 += moved
            if PROBE:
                h2s += tl.where(m2, h2, 0.0)
                d2s += tl.where(m2, h2 - n2, 0.0)
                r2 += tl.sum(tl.where(m2, (h2 - n2) * (h2 - n2), 0.0), 2) * per
                t2 += tl.sum(tl.where(m2, away * away, 0.0), 2) * per
    s0 = tl.sum(a0, 1)
    s1 = tl.sum(a1, 1)
    s2 = tl.sum(a2, 1)
    if NODES:
        if not AHEAD:
            t, of, w_0, w_1, w_2 = state(w, tau, label, i, N, C, W0, W1, W2)
        primal(
            w, w0, w_hat, x_out, P, q, i, t, of, w_0, w_1, w_2, s0, s1, s2, factors + 4,
            N, XS, C, W0, W1, W2, ANCHOR, KEEP, ONCE,
        )  # fmt: skip
    else:
        tl.store(sums + row_at(row, N, 0, W0), s0)
        if W1 > 0:
            tl.store(sums + row_at(row, N, W0, W1), s1)
        if W2 > 0:
            tl.store(sums + row_at(row, N, W0 + W1, W2), s2)
    if PROBE:
        tl.store(residual + row, tl.sum(r2, 1))
        tl.store(travel + row, tl.sum(t2, 1))
        tl.store(sums_hat + row_at(row, N, 0, W0), tl.sum(h0s, 1))
        tl.store(moves + row_at(row, N, 0, W0), tl.sum(d0s, 1))
        if W1 > 0:
            tl.store(sums_hat + row_at(row, N, W0, W1), tl.sum(h1s, 1))
            tl.store(moves + row_at(row, N, W0, W1), tl.sum(d1s, 1))
        if W2 > 0:
            tl.store(sums_hat + row_at(row, N, W0 + W1, W2), tl.sum(h2s, 1))
            tl.store(moves + row_at(row, N, W0 + W1, W2), tl.sum(d2s, 1))
