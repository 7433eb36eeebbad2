"""Triton kernels of `exact`: what takes torch dozens of small launches is one. To be launched without fp fusion."""

from __future__ import annotations

import triton
import triton.language as tl

HALF = tl.constexpr(2**26)
UPPER = tl.constexpr(-(2**27))


@triton.jit
def _two_sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@triton.jit
def _upper_half(a):
    return ((a.to(tl.int64, bitcast=True) + HALF) & UPPER).to(tl.float64, bitcast=True)


@triton.jit
def _two_product(a, b):
    product = a * b
    a_upper = _upper_half(a)
    b_upper = _upper_half(b)
    a_lower = a - a_upper
    b_lower = b - b_upper
    error = ((a_upper * b_upper - product) + a_upper * b_lower + a_lower * b_upper) + a_lower * b_lower
    return product + 0.0 * error, error


@triton.jit
def two(a, b, out, error, size, PRODUCT: tl.constexpr, BLOCK: tl.constexpr):
    """out + error ← a·b, or a + b, entry by entry."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(a + at, mask=at < size, other=0.0)
    y = tl.load(b + at, mask=at < size, other=0.0)
    if PRODUCT:
        s, e = _two_product(x, y)
    else:
        s, e = _two_sum(x, y)
    tl.store(out + at, s, mask=at < size)
    tl.store(error + at, e, mask=at < size)


@triton.jit
def in_pairs(
    hi, lo, out_hi, out_lo, size, m, inner, LO: tl.constexpr, LEVELS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Sums of hi + lo (·, m, inner) along the middle, in pairs, then pairs of those: zeros fill m up to 2^LEVELS."""
    r = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, 1 << LEVELS).to(tl.int64)  # times `inner`, which can be large
    at = (r // inner * m * inner + r % inner)[:, None] + (k * inner)[None, :]
    there = (r < size)[:, None] & (k < m)[None, :]
    h = tl.load(hi + at, mask=there, other=0.0)
    rest = tl.zeros_like(h)
    if LO:
        rest = tl.load(lo + at, mask=there, other=0.0)
    for level in tl.static_range(LEVELS):
        a, b = tl.split(tl.reshape(h, (BLOCK, (1 << LEVELS) >> (level + 1), 2)))
        c, d = tl.split(tl.reshape(rest, (BLOCK, (1 << LEVELS) >> (level + 1), 2)))
        h, e = _two_sum(a, b)
        rest = c + (d + e)
    tl.store(out_hi + r, tl.reshape(h, (BLOCK,)), mask=r < size)
    tl.store(out_lo + r, tl.reshape(rest, (BLOCK,)), mask=r < size)
