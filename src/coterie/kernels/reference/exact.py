"""Sums and products of arrays whose rounding errors are known, entry by entry.

A number is held as hi + lo, as in the compiled kernels. Without a fused multiply–add, the error of a product comes from
Dekker's formula: factors are split into halves of 26 bits, whose products are exact.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np

EPS = 2.0**-52  # twice the unit roundoff, to be on the safe side
FAINT = 2.0**-900  # more than all that underflow can take from a sum, even times EPS²

HALF, UPPER = np.int64(2**26), np.int64(-(2**27))  # half a unit of the upper 26 bits of a float, and their mask


def quiet(function: Any) -> Any:
    """Let nan and inf come up without warnings, as in compiled code: they say that nothing is proven."""

    @wraps(function)
    def silently(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return silently


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b as s + error, exactly."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def add(hi, lo, a):
    """hi + lo + a."""
    hi, error = two_sum(hi, a)
    return hi, lo + error


def two_product(a, b):
    """a·b as product + error, exactly, but for 2⁻¹⁰⁷² where parts underflow.

    Where a·b overflows, or the product of the upper halves does (within 2⁻²⁵ of the largest float), the error is no
    finite number; the product is made nan, and nothing is proven of it.
    """
    product = a * b
    a_upper, b_upper = _upper_half(a), _upper_half(b)
    a_lower, b_lower = a - a_upper, b - b_upper
    error = ((a_upper * b_upper - product) + a_upper * b_lower + a_lower * b_upper) + a_lower * b_lower
    return product + 0.0 * error, error


def _upper_half(a):
    """The nearest number of 26 bits: what is left of `a` has 26 bits and a sign (Dekker, Veltkamp).

    It is rounded on its bits. Veltkamp's product with 2²⁷ + 1 would overflow above 2⁹⁹⁶; this does so only next to the
    largest float, where inf leaves nan.
    """
    return ((a.view(np.int64) + HALF) & UPPER).view(np.float64)
