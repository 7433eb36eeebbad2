"""Sums and products of tensors whose rounding errors are known, whatever order a device adds in.

`two_sum` and `two_product` are those of `coterie.kernels.reference.exact`. Sums come in two ways:

* *In pairs* (`sum_exactly`), with the errors kept: what `coterie.kernels.reference.sums` states of its sums
  holds here: numbers meet in other pairs, in as many levels.
* *In any order* (`in_any_order`), for sums that a library or atomic additions make. Every number x is cut into three
  (Rump, Ogita and Oishi's extraction): with B the largest |x|, 2^p ≥ the number of terms, σ₀ the power of two ≥ 2^p B
  and σ₁ = 2^(p − 53) σ₀, the first parts are multiples of 2⁻⁵³σ₀ and the second ones of 2⁻⁵³σ₁. Their partial sums are
  such multiples, too, and below σ₀ (σ₁), so that no order of additions rounds. What is left of x is at most 2⁻⁵³σ₁.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from coterie.kernels.reference.exact import EPS

Tensor = Any

HALF, UPPER = 2**26, -(2**27)  # half a unit of the upper 26 bits of a float, and their mask
UNIT = 2.0**-53
FEW, STEPS, LANES = 1 << 14, 32, 128  # entries that the host adds up, and how a kernel takes more
TOGETHER, SHORT = 1024, 64  # numbers that a program takes, and the longest sums that it makes
LARGEST = 2.0**900  # numbers above it are not cut: nothing is proven of them


def two_sum(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """a + b as s + error, exactly."""
    if a.is_cuda:
        return _by_kernel(a, b, product=False)
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """a·b as product + error, exactly, but for 2⁻¹⁰⁷² where parts underflow; nan where it overflows."""
    if a.is_cuda:
        return _by_kernel(a, b, product=True)
    product = a * b
    a_upper, b_upper = _upper_half(a), _upper_half(b)
    a_lower, b_lower = a - a_upper, b - b_upper
    error = ((a_upper * b_upper - product) + a_upper * b_lower + a_lower * b_upper) + a_lower * b_lower
    return product + 0.0 * error, error


def _by_kernel(a: Tensor, b: Tensor, product: bool) -> tuple[Tensor, Tensor]:
    from coterie.engines.gpu import exact_kernels

    a, b = (part.contiguous() for part in torch.broadcast_tensors(a, b))
    out, error = torch.empty_like(a), torch.empty_like(a)
    if a.numel():
        exact_kernels.two[(-(-a.numel() // TOGETHER),)](
            *(a, b, out, error, a.numel()), PRODUCT=product, BLOCK=TOGETHER, enable_fp_fusion=False
        )
    return out, error


def _upper_half(a: Tensor) -> Tensor:
    return ((a.view(torch.int64) + HALF) & UPPER).view(torch.float64)


def sum_exactly(hi: Tensor, lo: Tensor | None, dim: int) -> tuple[Tensor, Tensor]:
    """Σ of hi + lo along a dimension, as hi + lo: in pairs, then pairs of those, and so on."""
    m = hi.shape[dim]
    if hi.is_cuda and 0 < m <= SHORT:
        return _in_pairs(hi, lo, dim)
    lo = torch.zeros_like(hi) if lo is None else lo
    if m == 0:
        return hi.sum(dim), lo.sum(dim)
    while m > 1:
        half = (m + 1) // 2
        pairs = m - half
        s, error = two_sum(hi.narrow(dim, 0, pairs), hi.narrow(dim, half, pairs))
        rest = lo.narrow(dim, 0, pairs) + (lo.narrow(dim, half, pairs) + error)
        odd = half - pairs
        hi = torch.cat([s, hi.narrow(dim, pairs, odd)], dim) if odd else s
        lo = torch.cat([rest, lo.narrow(dim, pairs, odd)], dim) if odd else rest
        m = half
    return hi.select(dim, 0), lo.select(dim, 0)


def _in_pairs(hi: Tensor, lo: Tensor | None, dim: int) -> tuple[Tensor, Tensor]:
    from coterie.engines.gpu import exact_kernels

    hi, lo = hi.contiguous(), None if lo is None else lo.contiguous()
    m, shape = hi.shape[dim], hi.shape[:dim] + hi.shape[dim + 1 :]
    out, rest = hi.new_empty(shape), hi.new_empty(shape)
    levels = (m - 1).bit_length()
    block = TOGETHER >> levels
    if out.numel():
        exact_kernels.in_pairs[(-(-out.numel() // block),)](
            *(hi, hi if lo is None else lo, out, rest, out.numel(), m, math.prod(hi.shape[dim + 1 :])),
            LO=lo is not None,
            LEVELS=levels,
            BLOCK=block,
            enable_fp_fusion=False,
        )
    return out, rest


def total(x: Tensor) -> float:
    """The sum of all entries, rounded once: exactly, but for what `_shortened` loses."""
    x = x.reshape(-1)
    while x.device.type == "cuda" and len(x) > FEW:
        x = _shortened(x)
    numbers = x.cpu().numpy()
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):  # it is infinite, or no number
        with np.errstate(all="ignore"):
            return float(numbers.sum())


def _shortened(x: Tensor) -> Tensor:
    """Fewer numbers with the same sum: sums of STEPS entries each, one after the other, and their errors.

    Errors are added up in plain floats, which loses STEPS² u² Σ|x| at most: far less than one rounding of the sum.
    """
    from coterie.engines.gpu import sum_kernels

    x = x.contiguous()
    programs = -(-len(x) // (STEPS * LANES))
    sums = x.new_empty((2, programs * LANES))
    sum_kernels.partial_sums[(programs,)](x, sums[0], sums[1], len(x), STEPS=STEPS, BLOCK=LANES)
    return sums.view(-1)


def in_any_order(add: Callable[[Tensor], Tensor], x: Tensor, terms: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sums of rows of x, which `add` makes in whatever order, as hi + lo; and how far that may be from the truth.

    `terms` (·, 1) is how many rows each sum has. hi is exact. lo is rounded when its two parts are added, by half a
    unit of at most terms · 2⁻⁵³σ₀; the last part is added up in plain floats, and its terms are at most 2⁻⁵³σ₁. Both
    are charged eight times: up to four more numbers of the size of the sum can be added to hi + lo, whose errors, and
    the rounding of lo, that covers.
    """
    largest = float(x.abs().max()) if x.numel() else 0.0
    most = float(terms.max()) if terms.numel() else 0.0
    if largest == 0 or not largest < LARGEST:
        hi = add(x)
        return hi, torch.zeros_like(hi), torch.zeros_like(hi) if largest == 0 else torch.full_like(hi, math.nan)
    p = math.ceil(math.log2(most + 2))
    sigma = math.ldexp(1.0, p + math.frexp(largest)[1])
    hi, x = _extract(add, sigma, x)
    finer = sigma * math.ldexp(UNIT, p)
    middle, x = _extract(add, finer, x)
    lo = middle + add(x)
    bound = 8 * terms * (UNIT * UNIT * sigma + terms * (UNIT * UNIT * finer))
    return hi, lo, bound.expand_as(hi)


def _extract(add: Callable[[Tensor], Tensor], sigma: float, x: Tensor) -> tuple[Tensor, Tensor]:
    """The sums of what x has above 2⁻⁵³σ, and the rest of x."""
    above = (x + sigma) - sigma
    return add(above), x - above


__all__ = ["EPS", "Tensor", "in_any_order", "sum_exactly", "total", "two_product", "two_sum"]
