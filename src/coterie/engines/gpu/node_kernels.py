"""Triton kernels for the primal half of an iteration, at the nodes of one slab (`layout`)."""

from __future__ import annotations

import triton
import triton.language as tl

LONG = tl.constexpr(32)  # with duals kept once: numbers of a vector x from which on it is to stay in fast memory


@triton.jit
def row_at(i, XS: tl.constexpr, K0: tl.constexpr, W: tl.constexpr):
    """Where a chunk of the vectors of nodes i (C,) lies."""
    return i[:, None] * XS + K0 + tl.arange(0, W)[None, :]


@triton.jit
def _own(i, N: tl.constexpr, C: tl.constexpr, K0: tl.constexpr, W: tl.constexpr):
    """Where a chunk of the weights of nodes i (C,) lies: as that of a slot's duals."""
    return ((i // C) * (C * N) + K0 * C + (i % C) * W)[:, None] + tl.arange(0, W)[None, :]


@triton.jit
def _dot(
    P, of, has, r, v0, v1, v2,
    N: tl.constexpr, C: tl.constexpr, W0: tl.constexpr, W1: tl.constexpr, W2: tl.constexpr, ONCE: tl.constexpr,
):  # fmt: skip
    """Row r of each node's matrix times v."""
    s = tl.sum(_entries(P, of, has, r, N, C, 0, W0, ONCE) * v0, 1)
    if W1 > 0:
        s += tl.sum(_entries(P, of, has, r, N, C, W0, W1, ONCE) * v1, 1)
    if W2 > 0:
        s += tl.sum(_entries(P, of, has, r, N, C, W0 + W1, W2, ONCE) * v2, 1)
    return s


@triton.jit
def _entries(P, of, has, r, N: tl.constexpr, C: tl.constexpr, K0: tl.constexpr, W: tl.constexpr, ONCE: tl.constexpr):
    """A chunk of row r of each node's matrix, kept as `tables` has it."""
    k = K0 + tl.arange(0, W)
    if ONCE:
        at = of[:, None].to(tl.int64) * (N * N) + r * N + k[None, :]
    else:
        low = tl.minimum(k, r)
        place = low * N - low * (low + 1) // 2 + tl.maximum(k, r)
        at = (of // C)[:, None].to(tl.int64) * (N * (N + 1) // 2 * C) + place[None, :] * C + (of % C)[:, None]
    return tl.load(P + at, mask=has[:, None] & (k >= 0)[None, :], other=0.0)


@triton.jit
def _update(
    P, q, of, has, v, v0, v1, v2, N: tl.constexpr, C: tl.constexpr,
    W0: tl.constexpr, W1: tl.constexpr, W2: tl.constexpr, K0: tl.constexpr, W: tl.constexpr, ONCE: tl.constexpr,
):  # fmt: skip
    """A chunk of the primal update: q + Pv where there is a loss, else v itself."""
    k = tl.arange(0, W)
    out = tl.load(q + row_at(of, N, K0, W), mask=has[:, None] & (k >= 0)[None, :], other=0.0)
    for r in tl.static_range(W):
        s = _dot(P, of, has, K0 + r, v0, v1, v2, N, C, W0, W1, W2, ONCE)
        out += tl.where(k[None, :] == r, s[:, None], 0.0)
    return tl.where(has[:, None], out, v)


@triton.jit
def _finish(
    w, w0, w_hat, x_out, i, wi, h, fa, fb, fg, move,
    N: tl.constexpr, XS: tl.constexpr, C: tl.constexpr, K0: tl.constexpr, W: tl.constexpr,
    ANCHOR: tl.constexpr, KEEP: tl.constexpr, ONCE: tl.constexpr,
):  # fmt: skip
    """x ← 2ŵ − w (ŵ in dual steps), and either w ← a ŵ + b w + g w₀, or ŵ is kept."""
    at = _own(i, N, C, K0, W)
    x = h if KEEP else 2 * h - wi
    if not ONCE or XS >= LONG:
        tl.store(x_out + row_at(i, XS, K0, W), x, eviction_policy="evict_last")
    else:
        tl.store(x_out + row_at(i, XS, K0, W), x)
    if KEEP:
        tl.store(w_hat + at, h)
    elif move > 0:
        new = fa * h + fb * wi
        if ANCHOR:
            new += fg * tl.load(w0 + at)
        tl.store(w + at, new)
    else:
        tl.store(w_hat + at, h)


@triton.jit
def node_step(
    w, w0, w_hat, x_out, sums, tau, label, P, q, factors, first,
    N: tl.constexpr, XS: tl.constexpr, C: tl.constexpr, W0: tl.constexpr, W1: tl.constexpr, W2: tl.constexpr,
    ANCHOR: tl.constexpr, KEEP: tl.constexpr, ONCE: tl.constexpr,
):  # fmt: skip
    """The primal half alone, from sums (·, N) = Dᵀu; `factors` are (a, b, g) of the iteration and whether w moves."""
    i = (first + tl.program_id(0)) * C + tl.arange(0, C)
    t, of, w_0, w_1, w_2 = state(w, tau, label, i, N, C, W0, W1, W2)
    a0 = tl.load(sums + row_at(i, N, 0, W0))
    a1 = a0
    a2 = a0
    if W1 > 0:
        a1 = tl.load(sums + row_at(i, N, W0, W1))
    if W2 > 0:
        a2 = tl.load(sums + row_at(i, N, W0 + W1, W2))
    primal(
        w, w0, w_hat, x_out, P, q, i, t, of, w_0, w_1, w_2, a0, a1, a2, factors,
        N, XS, C, W0, W1, W2, ANCHOR, KEEP, ONCE,
    )  # fmt: skip


@triton.jit
def state(
    w, tau, label, i, N: tl.constexpr, C: tl.constexpr, W0: tl.constexpr, W1: tl.constexpr, W2: tl.constexpr
):  # fmt: skip
    """Steps, numbers of losses and chunks of the weights of nodes i."""
    t = tl.load(tau + i)[:, None]
    of = tl.load(label + i)
    w_0 = tl.load(w + _own(i, N, C, 0, W0))
    w_1 = w_0
    w_2 = w_0
    if W1 > 0:
        w_1 = tl.load(w + _own(i, N, C, W0, W1))
    if W2 > 0:
        w_2 = tl.load(w + _own(i, N, C, W0 + W1, W2))
    return t, of, w_0, w_1, w_2


@triton.jit
def primal(
    w, w0, w_hat, x_out, P, q, i, t, of, w_0, w_1, w_2, a0, a1, a2, factors,
    N: tl.constexpr, XS: tl.constexpr, C: tl.constexpr, W0: tl.constexpr, W1: tl.constexpr, W2: tl.constexpr,
    ANCHOR: tl.constexpr, KEEP: tl.constexpr, ONCE: tl.constexpr,
):  # fmt: skip
    """ŵ = q + P(w − τs), or w − τs where there is no loss; in dual steps q − Ps."""
    fa = tl.load(factors)
    fb = tl.load(factors + 1)
    fg = tl.load(factors + 2)
    move = tl.load(factors + 3)
    has = of >= 0
    v0 = -a0 if KEEP else w_0 - t * a0
    v1 = v0
    v2 = v0
    if W1 > 0:
        v1 = -a1 if KEEP else w_1 - t * a1
    if W2 > 0:
        v2 = -a2 if KEEP else w_2 - t * a2
    h0 = v0
    h1 = v1
    h2 = v2
    if tl.max(of, 0) >= 0:
        h0 = _update(P, q, of, has, v0, v0, v1, v2, N, C, W0, W1, W2, 0, W0, ONCE)
        if W1 > 0:
            h1 = _update(P, q, of, has, v1, v0, v1, v2, N, C, W0, W1, W2, W0, W1, ONCE)
        if W2 > 0:
            h2 = _update(P, q, of, has, v2, v0, v1, v2, N, C, W0, W1, W2, W0 + W1, W2, ONCE)
    _finish(w, w0, w_hat, x_out, i, w_0, h0, fa, fb, fg, move, N, XS, C, 0, W0, ANCHOR, KEEP, ONCE)
    if W1 > 0:
        _finish(w, w0, w_hat, x_out, i, w_1, h1, fa, fb, fg, move, N, XS, C, W0, W1, ANCHOR, KEEP, ONCE)
    if W2 > 0:
        _finish(w, w0, w_hat, x_out, i, w_2, h2, fa, fb, fg, move, N, XS, C, W0 + W1, W2, ANCHOR, KEEP, ONCE)
